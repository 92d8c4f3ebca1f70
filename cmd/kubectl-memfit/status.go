// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const statusLong = `Show the workloads that memfit governs, most urgent first: not managed, stalled,
killed recently, memory that drifts, a size that waits to be applied, no recommendation yet, the rest.

  LIMIT    of running pods -> recommended; (Hold) until there is a recommendation
  USE      highest use of one replica in the last two hours, and its share of the limit
  OOMS     OOM kills counted so far; "recently" within the profile's drift.window (24h by default)
  MEMORY   shape of memory over time, and the time until the limit is reached
  APPLIED  whether running pods have the recommended size, and if not, why
  PODS     (-o wide) pods that run with the profile's settings / pods it governs

kubectl get memoryrecommendations --watch prints changes.

Colors only on a terminal; NO_COLOR=1 turns them off. Nothing is written to the cluster.`

const statusExample = `  # What should I do next?
  kubectl memfit status -n shop

  # Everywhere, with requests and summaries
  kubectl memfit status -A -o wide

  # Highest use first
  kubectl memfit status -A --sort-by use

  # Workloads that were killed recently
  kubectl memfit status -A -o json | jq -r '.items[] | select(.oomObserved) | .namespace + "/" + .name'`

func statusCommand() *cobra.Command {
	v := readingAll(&cobra.Command{
		Use:   "status [-n NAMESPACE | -A] [-o FORMAT]",
		Short: "Show what memfit found, worst first, and what to do next",
		Long:  statusLong, Example: statusExample,
	})
	v.lists(report.Orders)
	return v.runs(status)
}

func status(v *verb) error {
	recs, err := v.cluster.Recommendations(v.Context())
	if err != nil {
		return err
	}
	ctx := v.Context()
	profiles, unread := v.cluster.Profiles(ctx)
	unknown := func(rec v1alpha1.MemoryRecommendation) bool { return report.Governing(&rec, profiles) == nil }
	status := report.NewStatus(recs, profiles)
	switch {
	case unread == nil:
		status.Seek(v.cluster.Askers(ctx), profiles)
	case len(recs) == 0 || slices.ContainsFunc(recs, unknown):
		// A user with a role in one namespace cannot read ClusterMemoryProfiles, and usually does not need them.
		v.warn("could not read the status of profiles: %v", unread)
	}
	if len(recs) == 0 && v.options.Format.IsTable() {
		fmt.Fprint(v.ErrOrStderr(), report.NothingGoverned(v.cluster.Namespace, profiles))
	}
	status.Sort(v.order)
	return status.Write(v.OutOrStdout(), v.options)
}
