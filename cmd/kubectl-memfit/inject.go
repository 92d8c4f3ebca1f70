// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/offline"
)

const injectLong = `Show what memfit's webhook would set on the pods of the workloads in FILE, without a cluster.

The command runs the webhook's code for every Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, CronJob,
PodTemplate, ReplicationController and Argo Rollout. It copies all other objects, and workloads without a profile, byte
for byte. It reports documents that it cannot read, and copies them too. In changed workloads it keeps order and
comments, but expands anchors and merge keys, removes blank lines and normalizes indentation.

Profiles come from --profile and from FILE. As in a cluster, the annotation memfit.dev/profile or a selector decides
which profile governs a workload. If --profile holds exactly one profile, that profile also governs every workload
that has no other profile and does not opt out. In FILE the command also reads the keys of ConfigMaps, the labels and
annotations of Namespaces, and the sizes and live heaps in MemoryRecommendations. Limits from a LimitRange and changes
by other webhooks exist only in a cluster, so they are missing.

Standard error lists the settings that were set or skipped, with reasons (--quiet omits the list).

Exit codes:
  0  done; with -o diff: no changes
  1  -o diff: changes
  2  a flag or the file of --profile is invalid; nothing was written
  3  everything was written, but a document is unreadable and unchanged, or a workload requests a profile that is
     missing or ambiguous`

const injectExample = `  # What would the profile change?
  kubectl memfit inject -f deployment.yaml --profile profile.yaml -o diff

  # In a pipe
  helm template . | kubectl memfit inject -f - --profile profile.yaml | kubectl apply -f -`

type injectFlags struct {
	file, profile, output, namespace string
	quiet                            bool
}

var injectFormats = []string{"yaml", "diff"}

func injectCommand() *cobra.Command {
	var f injectFlags
	cmd := &cobra.Command{
		Use:   "inject -f FILE [--profile FILE] [-o yaml|diff]",
		Short: "Show or write what the webhook would inject, offline",
		Long:  injectLong, Example: injectExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q: name manifests with -f, as in -f %s", args[0], args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runInject(f, cmd) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "filename", "f", "", "manifests to inject into; - reads standard input (required)")
	flags.StringVar(&f.profile, "profile", "", "file with MemoryProfiles or ClusterMemoryProfiles; - reads standard input")
	outputFlag(cmd, &f.output, injectFormats[0], injectFormats)
	flags.StringVarP(&f.namespace, "namespace", "n", "default", "namespace of objects without one")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "do not list settings that were set or skipped")
	return cmd
}

func runInject(f injectFlags, cmd *cobra.Command) error {
	manifests, profiles, err := f.read(cmd.InOrStdin())
	if err != nil {
		return err
	}
	result, err := offline.Inject(manifests, offline.Options{Namespace: f.namespace, Profiles: profiles})
	if err != nil {
		return fmt.Errorf("%s: %w", f.profile, err)
	}
	out := result.YAML()
	if f.output == "diff" {
		if out, err = result.Diff(); err != nil {
			return err
		}
	}
	if _, err := cmd.OutOrStdout().Write(out); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	notes := result.Problems
	if !f.quiet {
		notes = slices.Concat(result.Notes, result.Problems)
	}
	for _, n := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), n)
	}
	switch {
	case len(result.Problems) > 0:
		return exit(exitProblem)
	case f.output == "diff" && len(out) > 0:
		return exit(exitDiffers)
	}
	return nil
}

// read checks the flags and reads manifests and profiles, at most one of them from stdin.
func (f injectFlags) read(stdin io.Reader) (manifests, profiles []byte, err error) {
	switch {
	case f.file == "":
		return nil, nil, fmt.Errorf("no manifests: name a file with -f FILE, or standard input with -f -")
	case f.file == "-" && f.profile == "-":
		return nil, nil, fmt.Errorf("-f and --profile cannot both read standard input")
	}
	if _, err := listing.Parse(f.output, injectFormats); err != nil {
		return nil, nil, err
	}
	if manifests, err = readFile(f.file, stdin); err != nil {
		return nil, nil, fmt.Errorf("reading manifests: %w", err)
	}
	if f.profile == "" {
		return manifests, nil, nil
	}
	if profiles, err = readFile(f.profile, stdin); err != nil {
		return nil, nil, fmt.Errorf("reading profiles: %w", err)
	}
	if len(bytes.TrimSpace(profiles)) == 0 {
		return nil, nil, fmt.Errorf("%s is empty: name a file with a MemoryProfile or ClusterMemoryProfile", f.profile)
	}
	return manifests, profiles, nil
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name) //nolint:gosec // the user names the file
}
