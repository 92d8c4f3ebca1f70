// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const explainLong = `Explain the recommendation for one workload: the evidence, the steps from there to the number, what the profile allows, the
runtime settings, every OOM kill with the limit at that time, the conditions (Applied names the guard that stopped a change), and
what to do next.

WORKLOAD is a name, or kind and name as kubectl takes them: web, deploy/web, deployment.apps/web. Nothing is written to the cluster.`

const explainExample = `  kubectl memfit explain deployment/web -n shop

  # The steps of the first container, for a script
  kubectl memfit explain web -o json | jq -r '.status.containers[0].reasons[]'`

func explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain WORKLOAD [-n NAMESPACE] [-o FORMAT]",
		Short: "Explain a recommendation: evidence, formula, bounds, guards, kills",
		Long:  explainLong, Example: explainExample,
	}
	return aboutWorkload(cmd, pageFlags(cmd, listing.OfPage), explain)
}

// aboutWorkload makes cmd a verb about one workload: its name is checked, and completes.
func aboutWorkload(
	cmd *cobra.Command, o *output,
	run func(cmd *cobra.Command, v view, rec *v1alpha1.MemoryRecommendation, options listing.Options) error,
) *cobra.Command {
	cmd.Args = oneOf("name one workload, as in: kubectl memfit " + cmd.Name() +
		" deployment/web (kubectl memfit status lists them)")
	r := reading(cmd, oneNamespace)
	cmd.ValidArgsFunction = firstOf(r.completeWorkloads)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		options, _, err := o.options(cmd)
		if err != nil {
			return err
		}
		v, err := r.view(cmd.Context())
		if err != nil {
			return err
		}
		rec, err := v.find(args[0])
		if err != nil {
			return err
		}
		return run(cmd, v, rec, options)
	}
	return cmd
}

func explain(cmd *cobra.Command, v view, rec *v1alpha1.MemoryRecommendation, options listing.Options) error {
	governing := report.Governing(rec, v.profiles)
	switch {
	case v.unread == nil:
	case governing == nil:
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: the bounds of the profile are unavailable: %v\n", v.unread)
	default:
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: what the profile inherits from the cluster is unavailable: %v\n", v.unread)
	}
	explanation := report.Explain(rec, governing)
	return page(cmd, options, "WorkloadExplanation", explanation, explanation.Write)
}
