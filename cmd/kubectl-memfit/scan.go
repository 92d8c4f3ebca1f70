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

const scanLong = `List the workloads of a cluster with their runtimes and how each is known, the use of the fullest
pod against its limit, and the OOM kills of the last days. It needs no profile, no webhook, and not even memfit in the
cluster.

Where memfit's agent runs, it detects the runtime. Elsewhere image, command and variables suggest one, shown with a
question mark: check it before you declare it.

  --write DIR  writes a MemoryProfile for each runtime of each namespace, for the workloads that have none, with the
               commands that opt them in. They recommend; no pod gets a setting or a size. Existing files are unchanged

Nothing is written to the cluster.`

const scanExample = `  kubectl memfit scan -A

  # Profiles to begin with, for Git; -R, because there is a folder for each namespace
  kubectl memfit scan -A --write profiles
  kubectl apply -R -f profiles`

func scanCommand() *cobra.Command {
	v := readingAll(&cobra.Command{
		Use:   "scan [-n NAMESPACE | -A] [--write DIR] [-o FORMAT]",
		Short: "List every workload with its runtime, use and kills, and write profiles",
		Long:  scanLong, Example: scanExample,
	})
	var folder string
	v.Flags().StringVar(&folder, "write", "", "folder for profiles")
	v.lists(inventory.WorkloadOrders)
	return v.runs(func(v *verb) error { return scan(v, folder) })
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

// writeProfiles writes the files that do not exist yet, and lists them.
func writeProfiles(v *verb, folder string, files []inventory.File) error {
	if len(files) == 0 {
		v.note("No profiles to write: each workload has one, or its runtime is unknown")
	}
	written := 0
	for _, f := range files {
		path := filepath.Join(folder, filepath.FromSlash(f.Path))
		err := writeNew(path, f.Text)
		switch {
		case errors.Is(err, fs.ErrExist):
			v.note("Skipped %s: it exists", path)
		case err != nil:
			return fmt.Errorf("writing profiles: %w", err)
		default:
			written++
			v.note("Wrote %s", path)
		}
	}
	if written > 0 {
		// -R, because profiles are in one folder per namespace, and kubectl does not read subfolders by default.
		v.note("Check the suggestions, then: kubectl apply -R -f %s", folder)
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

// inventory reads the input of top and scan. Only pods are required; it reports what else it cannot read.
func (v *verb) inventory() (*inventory.Inventory, error) {
	ctx := v.Context()
	warn := func(what string, err error) {
		if err != nil && !apierrors.IsNotFound(err) { // the cluster serves the kind
			v.warn("could not read %s: %v", what, err)
		}
	}
	recs, err := v.cluster.Recommendations(v.Context())
	warn("recommendations", err)
	records, err := v.records(recs)
	warn("the classes of nodes", err)
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

// records indexes recommendations. On error, pods of DaemonSets have no class of nodes.
func (v *verb) records(recs []v1alpha1.MemoryRecommendation) (records inventory.Records, err error) {
	records = inventory.RecordsOf(recs)
	if records.ByNode() {
		err = v.cluster.EachNode(v.Context(), records.AddNode)
	}
	return records, err
}
