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

It runs the webhook's code for every Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, CronJob, PodTemplate,
ReplicationController and Argo Rollout. Every other object, and every workload that no profile governs, passes through
byte for byte. An unreadable document is reported and also passes through. In a workload that changes, order and
comments remain; anchors and merge keys are expanded, blank lines removed, and indentation normalized.

Profiles come from --profile and from FILE itself. Which one governs a workload is decided as in a cluster, by
annotation memfit.dev/profile or by selector. If --profile holds exactly one profile, it also governs every workload
that does not opt out and that nothing else governs. ConfigMaps in FILE are read for the names of their keys,
Namespaces for their annotations, and MemoryRecommendations for sizes of new pods and for live heaps. It does not see
what only a cluster has: limits that a LimitRange adds, and changes by other webhooks.

Standard error lists the set and the skipped settings, with reasons (--quiet omits it).

Exit codes:
  0  done; with -o diff: no changes
  1  -o diff: changes
  2  the file of --profile or a flag cannot be used; nothing was written
  3  everything was written, but a document cannot be read and is unchanged, or a workload requests a profile that is
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
				return fmt.Errorf("%s: name manifests with -f, for example -f %s", args[0], args[0])
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
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "do not list set and skipped settings")
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

// read reads manifests and profiles, at most one of them from stdin.
func (f injectFlags) read(stdin io.Reader) (manifests, profiles []byte, err error) {
	switch {
	case f.file == "":
		return nil, nil, fmt.Errorf("name the manifests: -f FILE, or -f - for standard input")
	case f.file == "-" && f.profile == "-":
		return nil, nil, fmt.Errorf("-f and --profile cannot both be standard input")
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
		return nil, nil, fmt.Errorf("%s is empty: it must hold a MemoryProfile or a ClusterMemoryProfile", f.profile)
	}
	return manifests, profiles, nil
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name) //nolint:gosec // the user names the file
}
