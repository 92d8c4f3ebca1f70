// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const explainLong = `Explain the recommendation for one workload: the evidence, the steps to the number,
the profile's policy, the runtime settings, the last OOM kills with the limit at that time, the conditions (Applied
names the guard that stopped a change), and what to do next.

WORKLOAD is a name, or kind and name as in kubectl: web, deploy/web, deployment.apps/web. Nothing is written to the
cluster.`

const explainExample = `  kubectl memfit explain deployment/web -n shop

  # The steps of the first container, for a script
  kubectl memfit explain web -o json | jq -r '.status.containers[0].reasons[]'`

func explainCommand() *cobra.Command {
	return newWorkloadVerb(&cobra.Command{
		Use:   "explain WORKLOAD [-n NAMESPACE] [-o FORMAT]",
		Short: "Explain a recommendation: evidence, formula, bounds, guards, kills",
		Long:  explainLong, Example: explainExample,
	}).withRun(explain)
}

// newWorkloadVerb returns a verb that takes the name of one workload and prints a page about it.
func newWorkloadVerb(cmd *cobra.Command) *verb {
	cmd.Args = exactlyOne("name one workload, as in: kubectl memfit " + cmd.Name() +
		" deployment/web (kubectl memfit status lists them)")
	v := newVerb(cmd)
	v.addOutput("", listing.OfPage...)
	cmd.ValidArgsFunction = v.completeArgs(1, workloads)
	return v
}

func explain(v *verb) error {
	rec, err := v.recommendation()
	if err != nil {
		return err
	}
	profiles, err := v.cluster.Profiles(v.Context())
	governing := report.Governing(rec, profiles)
	switch {
	case err == nil:
	case governing == nil:
		v.warn("the bounds of the profile are unavailable: %v", err)
	default:
		v.warn("the cluster's defaults for the profile are unavailable: %v", err)
	}
	explanation := report.Explain(rec, governing)
	return v.page("WorkloadExplanation", explanation, explanation.Write)
}
