// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

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
	watch := cmd.Flags().BoolP("watch", "w", false, "then print the line of each workload that changes, until interrupted")
	lists(cmd, report.Orders, func(cmd *cobra.Command, _ []string, q query) error {
		if *watch {
			return watchStatus(cmd, q)
		}
		return status(cmd, q)
	})
	return cmd
}

// found is what one cluster answered.
type found struct {
	view
	status report.Status
}

func status(cmd *cobra.Command, q query) error {
	answers, err := askAll(cmd, q.sites, statusOf)
	if len(answers) == 0 {
		return err
	}
	statuses := make([]report.Status, 0, len(answers))
	for _, a := range answers {
		if len(a.recs) == 0 && q.options.Format.IsTable() {
			text := report.NothingGoverned(a.Namespace, a.profiles)
			if a.name != "" {
				text = "Cluster " + a.name + ": " + text
			}
			fmt.Fprint(cmd.ErrOrStderr(), text)
		}
		statuses = append(statuses, a.status)
	}
	all := report.Join(statuses)
	all.Sort(q.order)
	return errors.Join(all.Write(cmd.OutOrStdout(), q.options), err)
}

func statusOf(ctx context.Context, s site, errs io.Writer) (found, error) {
	v, err := s.view(ctx)
	if err != nil {
		return found{}, err
	}
	// The workloads are what was asked for. Who has a role in one namespace sees no profiles of the cluster, and mostly
	// misses none.
	if v.unread != nil && (len(v.recs) == 0 || v.unknownProfile()) {
		fmt.Fprintf(errs, "warning: could not read the status of profiles: %v\n", v.unread)
	}
	f := found{view: v, status: report.NewStatus(v.name, v.recs, v.profiles)}
	if v.unread == nil { // else a profile may be there that could not be read
		f.status.Seek(v.Askers(ctx, v.Namespace), v.profiles)
	}
	return f, nil
}
