// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const statusLong = `Show the workloads that memfit governs, the one that most needs attention first: killed recently,
memory that drifts, a size that waits to be applied, no recommendation yet, the rest.

  LIMIT    of running pods -> recommended; (Hold) until there is a recommendation
  USE      the most that one replica used in the last two hours, and its share of the limit
  OOMS     OOM kills counted so far; "recently" within the profile's drift.window (24h by default)
  MEMORY   what memory does over time, and how long until the limit is reached
  APPLIED  whether running pods have the recommended size, and if not, why
  PODS     (-o wide) pods that run with the profile's settings / pods it governs

With --watch, a line is printed anew when something in it changes (that takes the right to watch). -o csv has a line
for each container, with sizes in MiB. With several --context, clusters are read at the same time and the worst
workload of all comes first.

Colors only on a terminal; NO_COLOR=1 turns them off. Nothing is written to the cluster.`

const statusExample = `  # What should I do next?
  kubectl memfit status -n shop

  # Everywhere, with requests and summaries
  kubectl memfit status -A -o wide

  # Two clusters, the fullest first
  kubectl memfit status -A --context east,west --sort-by use

  # Workloads that were killed recently
  kubectl memfit status -A -o json | jq -r '.items[] | select(.oomObserved) | .namespace + "/" + .name'

  # Columns of your own
  kubectl memfit status -A -o custom-columns=NAME:.name,KILLS:.oomKills --sort-by .oomKills`

func statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [-n NAMESPACE | -A] [--watch] [-o FORMAT]",
		Short: "Show what memfit found, worst first, and what to do next",
		Long:  statusLong, Example: statusExample, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	r := reading(cmd, allClusters)
	o := listFlags(cmd, listing.OfList, report.Orders)
	watch := cmd.Flags().BoolP("watch", "w", false, "then print the line of each workload that changes, until interrupted")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		options, order, err := o.options(cmd)
		if err != nil {
			return err
		}
		sites, err := r.sites()
		if err != nil {
			return err
		}
		columns(&options, sites)
		if *watch {
			return watchStatus(cmd, sites, options, order)
		}
		return status(cmd, sites, options, order)
	}
	return cmd
}

// found is what one cluster answered.
type found struct {
	siteRecommendations
	profiles []report.Profile
	status   report.Status
}

func status(cmd *cobra.Command, sites []site, options listing.Options, order string) error {
	answers, err := askAll(cmd, sites, statusOf)
	if len(answers) == 0 {
		return err
	}
	statuses := make([]report.Status, 0, len(answers))
	for _, a := range answers {
		if len(a.recs) == 0 && options.Format.IsTable() {
			text := report.NothingGoverned(a.namespace, a.profiles)
			if a.name != "" {
				text = "Cluster " + a.name + ": " + text
			}
			fmt.Fprint(cmd.ErrOrStderr(), text)
		}
		statuses = append(statuses, a.status)
	}
	all := report.Join(statuses)
	all.Sort(order)
	return errors.Join(all.Write(cmd.OutOrStdout(), options), err)
}

func statusOf(ctx context.Context, s site, errs io.Writer) (found, error) {
	recs, err := s.Recommendations(ctx, s.namespace)
	if err != nil {
		return found{}, err
	}
	a := siteRecommendations{s, recs}
	profiles, err := a.Profiles(ctx, a.namespace)
	// The workloads are what was asked for. Who has a role in one namespace sees no profiles of the cluster, and mostly
	// misses none.
	if err != nil && (len(a.recs) == 0 || a.unknownProfile(profiles)) {
		fmt.Fprintf(errs, "warning: could not read the status of profiles: %v\n", err)
	}
	report.Bound(a.recs, profiles)
	f := found{siteRecommendations: a, profiles: profiles, status: report.NewStatus(a.name, a.recs, profiles)}
	if err == nil { // else a profile may be there that could not be read
		f.status.Seek(a.Askers(ctx, a.namespace), profiles)
	}
	return f, nil
}

// unknownProfile reports whether a workload is governed by a profile that is not among these.
func (a siteRecommendations) unknownProfile(profiles []report.Profile) bool {
	return slices.ContainsFunc(
		a.recs, func(rec v1alpha1.MemoryRecommendation) bool { return report.Governing(&rec, profiles) == nil },
	)
}
