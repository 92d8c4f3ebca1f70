// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
)

const scanLong = `List the workloads of a cluster: the runtime and its evidence, the memory use of the fullest pod and
its limit, and the OOM kills of the last 7 days. The command also works in a cluster without memfit.

memfit's agent detects the runtime. Without an agent, the image, command and environment variables may suggest a
runtime, which is shown with a question mark: check it before you declare it in a profile.

  --write DIR  write a MemoryProfile for each namespace and runtime whose workloads have no profile, with the commands
               that opt these workloads in. The profiles only recommend and change no pod. Existing files are kept

Nothing is written to the cluster.`

const scanExample = `  kubectl memfit scan -A

  # First profiles for Git, in one folder for each namespace (apply -R reads them all)
  kubectl memfit scan -A --write profiles
  kubectl apply -R -f profiles`

func scanCommand() *cobra.Command {
	v := newVerbAllNamespaces(&cobra.Command{
		Use:   "scan [-n NAMESPACE | -A] [--write DIR] [-o FORMAT]",
		Short: "List all workloads with runtime, use and OOM kills, and write profiles",
		Long:  scanLong, Example: scanExample,
	})
	var folder string
	v.Flags().StringVar(&folder, "write", "", "folder to write profiles to")
	v.addListFlags(inventory.WorkloadOrders)
	return v.withRun(func(v *verb) error { return scan(v, folder) })
}

func scan(v *verb, folder string) error {
	in, err := v.inventory()
	if err != nil {
		return err
	}
	all := inventory.Workloads(in.Containers(), time.Now())
	inventory.SortWorkloads(all, v.order)
	if err := inventory.WriteScan(v.OutOrStdout(), all, v.options); err != nil || folder == "" {
		return err
	}
	return writeProfiles(v, folder, inventory.Profiles(all))
}

// writeProfiles writes the files that do not exist yet, and lists all files on standard error.
func writeProfiles(v *verb, folder string, files []inventory.File) error {
	if len(files) == 0 {
		v.note("No profiles to write: every workload has a profile or an unknown runtime")
	}
	written := 0
	for _, f := range files {
		path := filepath.Join(folder, filepath.FromSlash(f.Path))
		err := writeNew(path, f.Text)
		switch {
		case errors.Is(err, fs.ErrExist):
			v.note("Skipped %s: the file exists", path)
		case err != nil:
			return fmt.Errorf("writing profiles: %w", err)
		default:
			written++
			v.note("Wrote %s", path)
		}
	}
	if written > 0 {
		// By default kubectl does not read subfolders, and each namespace has its own.
		v.note("Check the suggested runtimes, then: kubectl apply -R -f %s", folder)
	}
	return nil
}

func writeNew(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the folder of --write; names are checked
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// inventory reads the input of top and scan. It fails only if pods are unreadable, and otherwise prints warnings.
func (v *verb) inventory() (*inventory.Inventory, error) {
	ctx := v.Context()
	warn := func(what string, err error) {
		if err != nil && !apierrors.IsNotFound(err) { // not found: the cluster does not serve the kind
			v.warn("could not read %s: %v", what, err)
		}
	}
	recs, err := v.cluster.Recommendations(ctx)
	warn("recommendations", err)
	records, err := v.records(recs)
	warn("the labels of nodes", err)
	in := inventory.New(records)
	if err := v.cluster.EachPod(ctx, in.AddPod); err != nil {
		return nil, err
	}
	warn("metrics.k8s.io", v.cluster.EachUse(ctx, in.AddUse))
	warn("snapshots", v.cluster.EachSnapshot(ctx, in.AddSnapshot))
	if len(in.Containers()) == 0 && v.options.Format.IsTable() {
		v.note("No pod runs in %s", v.place())
	}
	return in, nil
}

// records indexes recommendations by workload. With an error, the records lack the node classes of DaemonSets.
func (v *verb) records(recs []v1alpha1.MemoryRecommendation) (records inventory.Records, err error) {
	records = inventory.RecordsOf(recs)
	if records.ByNode() {
		err = v.cluster.EachNode(v.Context(), records.AddNode)
	}
	return records, err
}
