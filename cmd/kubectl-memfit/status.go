// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const statusLong = `Show the workloads that memfit governs, the one that most needs you first: killed lately, memory that drifts, a size that waits to be
applied, no number yet, the rest.

  LIMIT    what running pods have -> what is recommended; (Hold) while there is no number
  USE      the most that one replica used in the last two hours, and its share of the limit
  OOMS     OOM kills counted so far; "lately" within the profile's drift.window (24h by default)
  MEMORY   what memory does over time, and how long until the limit is reached
  APPLIED  whether running pods have the recommended size, and if not, why
  PODS     (-o wide) pods that run with the profile's settings / pods it governs

Colours only on a terminal; NO_COLOR=1 turns them off. Nothing is written to the cluster.`

const statusExample = `  # What should I do next?
  kubectl memfit status -n shop

  # Everywhere, with requests and summaries
  kubectl memfit status -A -o wide

  # Workloads that were killed lately
  kubectl memfit status -A -o json | jq -r '.workloads[] | select(.oomObserved) | .namespace + "/" + .name'`

func statusCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status [-n NAMESPACE | -A] [-o wide|json|yaml]",
		Short: "Show what memfit found, worst first, and what to do next",
		Long:  statusLong, Example: statusExample, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	r := reading(cmd, true)
	r.noHeadersFlag(cmd)
	outputFlag(cmd, &output, "", "wide", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := known(output, "", "wide", "json", "yaml"); err != nil {
			return err
		}
		return r.status(cmd, output)
	}
	return cmd
}

func (r *reader) status(cmd *cobra.Command, output string) error {
	a, err := r.ask(cmd.Context())
	if err != nil {
		return err
	}
	profiles, err := a.Profiles(cmd.Context(), a.namespace)
	// The workloads are what was asked for. Who has a role in one namespace sees no profiles of the cluster, and mostly
	// misses none.
	if err != nil && (len(a.recs) == 0 || a.unknownProfile(profiles)) {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: without what profiles say of themselves: %v\n", err)
	}
	report.Bound(a.recs, profiles)
	status := report.NewStatus(a.recs, profiles)
	if err == nil { // else a profile may be there that could not be read
		status.Seek(a.Askers(cmd.Context(), a.namespace), profiles)
	}
	table := report.Table{
		Namespaces: a.namespace == "", Wide: output == "wide", NoHeaders: r.noHeaders, Colours: colours(cmd),
	}
	switch {
	case output == "json" || output == "yaml":
		return encode(cmd.OutOrStdout(), output, status)
	case len(a.recs) == 0:
		_, err := io.WriteString(cmd.ErrOrStderr(), report.NothingGoverned(a.namespace, profiles))
		return errors.Join(err, status.WriteUnserved(cmd.OutOrStdout(), table))
	}
	return status.Write(cmd.OutOrStdout(), table)
}

// unknownProfile tells whether a workload is governed by a profile that is not among these.
func (a answer) unknownProfile(profiles []report.Profile) bool {
	return slices.ContainsFunc(
		a.recs, func(rec v1alpha1.MemoryRecommendation) bool { return report.Governing(&rec, profiles) == nil },
	)
}

// colours are for terminals that have them and people who want them.
func colours(cmd *cobra.Command) report.Colours {
	return report.Colours(printers.AllowsColorOutput(cmd.OutOrStdout()))
}

// noHeadersFlag adds --no-headers, as kubectl's own listings have it.
func (r *reader) noHeadersFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.noHeaders, "no-headers", false, "print nothing but the lines of the table, for scripts")
}

// outputFlag adds -o with its values, which complete.
func outputFlag(cmd *cobra.Command, output *string, standard string, values ...string) {
	cmd.Flags().StringVarP(output, "output", "o", standard, strings.Join(values, ", "))
	// fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func known(output string, values ...string) error {
	if slices.Contains(values, output) {
		return nil
	}
	return exit{
		exitFailed, fmt.Errorf("-o %s is not known: use %s", output, strings.TrimPrefix(strings.Join(values, ", "), ", ")),
	}
}
