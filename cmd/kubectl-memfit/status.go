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

const statusLong = `Show the workloads that memfit governs, most urgent first: not managed, stalled, OOM-killed
recently, drifting memory, a size that is not applied yet, no recommendation yet, all others.

  LIMIT    limit of running pods -> recommended limit; (Hold) until a recommendation exists
  USE      highest use of one replica in the last two hours, and its share of the limit
  OOMS     OOM kills so far; "recently" means within the profile's drift.window (24h by default)
  MEMORY   shape of memory over time, and the time until the limit is reached
  APPLIED  whether running pods have the recommended size, and if not, why
  PODS     (-o wide) pods with the profile's settings / governed pods

To watch for changes: kubectl get memoryrecommendations --watch

Colors only on a terminal; NO_COLOR=1 turns them off. Nothing is written to the cluster.`

const statusExample = `  # What should I do next?
  kubectl memfit status -n shop

  # Everywhere, with requests and summaries
  kubectl memfit status -A -o wide

  # Highest use first
  kubectl memfit status -A --sort-by use

  # Workloads with recent OOM kills
  kubectl memfit status -A -o json | jq -r '.items[] | select(.oomObserved) | .namespace + "/" + .name'`

func statusCommand() *cobra.Command {
	v := newVerbAllNamespaces(&cobra.Command{
		Use:   "status [-n NAMESPACE | -A] [-o FORMAT]",
		Short: "Show governed workloads, most urgent first, and what to do next",
		Long:  statusLong, Example: statusExample,
	})
	v.addListFlags(report.Orders)
	return v.withRun(status)
}

func status(v *verb) error {
	ctx := v.Context()
	recs, err := v.cluster.Recommendations(ctx)
	if err != nil {
		return err
	}
	profiles, err := v.cluster.Profiles(ctx)
	lacksProfile := func(rec v1alpha1.MemoryRecommendation) bool { return report.Governing(&rec, profiles) == nil }
	status := report.NewStatus(recs, profiles)
	switch {
	case err == nil:
		status.AddUnserved(v.cluster.Candidates(ctx), profiles)
	case len(recs) == 0 || slices.ContainsFunc(recs, lacksProfile):
		// A user with a role in one namespace cannot read ClusterMemoryProfiles, and usually does not need them.
		v.warn("could not read the status of profiles: %v", err)
	}
	if len(recs) == 0 && v.options.Format.IsTable() {
		fmt.Fprint(v.ErrOrStderr(), report.NothingGoverned(v.cluster.Namespace, profiles))
	}
	status.Sort(v.order)
	return status.Write(v.OutOrStdout(), v.options)
}
