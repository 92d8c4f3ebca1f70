// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
)

const scanLong = `List what runs in a cluster: every workload with its runtime and how that is known, the use of its fullest pod against the limit,
and the OOM kills of the last days. It needs neither a profile nor the webhook, and not even memfit in the cluster.

Where memfit's agent runs, the runtime is what it found inside. Elsewhere it is what image, command and variables suggest, with a
question mark: check it before you declare it.

  --write DIR  writes a MemoryProfile for each runtime of each namespace, for the workloads that have none, with the commands that
               opt them in. They recommend sizes, and change none. Files that exist stay as they are

Nothing is written to the cluster.`

const scanExample = `  kubectl memfit scan -A

  # Profiles to begin with, for Git; -R, because there is a folder for each namespace
  kubectl memfit scan -A --write profiles
  kubectl apply -R -f profiles`

func scanCommand() *cobra.Command {
	var output, folder string
	cmd := &cobra.Command{
		Use:   "scan [-n NAMESPACE | -A] [--write DIR] [-o json|yaml]",
		Short: "List every workload with its runtime, use and kills, and write profiles",
		Long:  scanLong, Example: scanExample, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	r := reading(cmd, true)
	r.noHeadersFlag(cmd)
	outputFlag(cmd, &output, "", "json", "yaml")
	cmd.Flags().StringVar(&folder, "write", "", "folder for profiles")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := known(output, "", "json", "yaml"); err != nil {
			return err
		}
		return r.scan(cmd, folder, output)
	}
	return cmd
}

func (r *reader) scan(cmd *cobra.Command, folder, output string) error {
	in, namespace, err := r.inventory(cmd)
	if err != nil {
		return err
	}
	all := inventory.Workloads(inventory.Containers(in), in.Recommendations, time.Now())
	switch {
	case output != "":
		err = encode(cmd.OutOrStdout(), output, map[string]any{"workloads": all})
	case len(all) == 0:
		fmt.Fprintf(cmd.ErrOrStderr(), "No pod runs in %s\n", place(namespace))
	default:
		table := inventory.Table{Namespaces: namespace == "", NoHeaders: r.noHeaders}
		err = inventory.WriteScan(cmd.OutOrStdout(), all, table)
	}
	if err != nil || folder == "" {
		return err
	}
	return writeProfiles(cmd, folder, inventory.Profiles(all))
}

// writeProfiles writes files that are not there yet, and says which.
func writeProfiles(cmd *cobra.Command, folder string, files []inventory.File) error {
	if len(files) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "No profile is written: each workload has one, or nothing says what it runs")
	}
	written := 0
	for _, f := range files {
		path := filepath.Join(folder, filepath.FromSlash(f.Path))
		err := writeNew(path, f.Text)
		switch {
		case errors.Is(err, fs.ErrExist):
			fmt.Fprintf(cmd.ErrOrStderr(), "%s exists and stays as it is\n", path)
		case err != nil:
			return exit{exitFailed, fmt.Errorf("writing profiles: %w", err)}
		default:
			written++
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is written\n", path)
		}
	}
	if written > 0 {
		// -R: kubectl reads a folder's own files only, and profiles lie in a folder for each namespace.
		fmt.Fprintf(cmd.ErrOrStderr(), "Check what is suggested, then: kubectl apply -R -f %s\n", folder)
	}
	return nil
}

func writeNew(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // below the folder of --write; names are checked
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// inventory reads what top and scan are about. Pods are what was asked for; the rest adds to it, and what cannot be
// read is told.
func (r *reader) inventory(cmd *cobra.Command) (in inventory.Input, namespace string, err error) {
	c, namespace, err := r.open()
	if err != nil {
		return in, "", err
	}
	ctx := cmd.Context()
	if in.Pods, err = c.Pods(ctx, namespace); err != nil {
		return in, "", exit{exitFailed, err}
	}
	warn := func(without string, err error) {
		if err != nil && !cluster.NotServed(err) {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: without %s: %v\n", without, err)
		}
	}
	in.Snapshots, err = c.Snapshots(ctx, namespace)
	warn("what agents found", err)
	in.Recommendations, err = c.Recommendations(ctx, namespace)
	warn("what profiles declare", err)
	in.Used, err = c.Used(ctx, namespace)
	warn("metrics.k8s.io", err)
	return in, namespace, nil
}

// chosen are the pods that were named.
func chosen(pods []corev1.Pod, names []string, where string) ([]corev1.Pod, error) {
	var out []corev1.Pod
	for _, text := range names {
		name, err := podName(text)
		if err != nil {
			return nil, err
		}
		found := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name })
		if found < 0 {
			return nil, fmt.Errorf("there is no pod %s in %s", name, where)
		}
		for i := range pods { // a StatefulSet's pods have one name in many namespaces
			if pods[i].Name == name {
				out = append(out, pods[i])
			}
		}
	}
	return out, nil
}
