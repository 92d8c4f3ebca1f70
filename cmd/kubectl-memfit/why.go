// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/format"
)

const whyLong = `Show on one page what happened to the memory of a pod: the last OOM kill with the minute before it and the process that died, what filled
its containers, what memfit did about its workload, and what to do next.

It reads the pod's MemorySnapshot, which the agent of its node writes (docs/guide/agent.md), the pod's owner, and the recommendations of its
namespace. Of a workload it reads the pod with the newest kill or stall, and standard error names the others.
Where no such pod exists any more, it shows what the recommendation recorded. Nothing is written to the cluster.`

const whyExample = `  kubectl memfit why pod/web-6d5f7c9b8-x2x7k -n shop

  # The pod of a workload that was killed last
  kubectl memfit why deployment/web -n shop

  # A step of a pipeline, as status shows it
  kubectl memfit why "tekton: build/unit" -n ci`

func whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why pod/NAME|WORKLOAD [-n NAMESPACE] [-o FORMAT]",
		Short: "Show what happened to a pod's memory: the kill, the minute before it, what filled it",
		Long:  whyLong, Example: whyExample,
		Args: oneOf("name one pod or workload, as in: kubectl memfit why pod/web-6d5f7c9b8-x2x7k"),
	}
	r := reading(cmd, oneNamespace)
	o := pageFlags(cmd, listing.OfPage)
	cmd.ValidArgsFunction = firstOf(r.completePods)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		options, _, err := o.options(cmd)
		if err != nil {
			return err
		}
		v, err := r.view(cmd.Context())
		if err != nil {
			return err
		}
		return v.why(cmd, args[0], options)
	}
	return cmd
}

func (v view) why(cmd *cobra.Command, name string, options listing.Options) error {
	rec, _ := v.find(name) // nil: a pod is named, or a workload that no profile governs
	snapshot, err := v.snapshot(cmd, name, rec)
	if err == nil {
		rec = v.recommendationOf(cmd, snapshot.Name, snapshot.Status.NodeName)
	} else {
		if pod, isPod := podName(name); isPod && rec == nil {
			rec = report.OfRecord(v.recs, pod)
		}
		if rec == nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: the answer is from the recommendation alone: %v\n", err)
	}
	why := report.WhyOf(snapshot, rec)
	return page(cmd, options, "PodExplanation", why, why.Write)
}

// recommendationOf finds the recommendation of a pod's workload; nil: no profile governs it.
func (v view) recommendationOf(cmd *cobra.Command, pod, node string) *v1alpha1.MemoryRecommendation {
	owner, err := v.Owner(cmd.Context(), v.Namespace, pod, inventory.DeclaredIn(v.recs))
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %v; its workload is known only where memfit recorded a kill of it\n", err)
	}
	if owner == nil {
		return report.OfRecord(v.recs, pod)
	}
	return report.OfOwner(v.onNode(cmd, node), *owner)
}

// onNode leaves out recommendations for other classes of nodes than a node's.
func (v view) onNode(cmd *cobra.Command, node string) []v1alpha1.MemoryRecommendation {
	if !slices.ContainsFunc(v.recs, report.OfNodeClass) {
		return v.recs
	}
	labels, err := v.NodeLabels(cmd.Context(), node)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %v; its class is unknown\n", err)
		return v.recs
	}
	return report.OnNode(v.recs, labels)
}

// snapshot reads the snapshot of a pod as kubectl takes it: web-7d9f8, pod/web-7d9f8. Of a workload it is that of the
// pod with the newest kill or stall, and standard error names the others. rec is the recommendation of the workload
// that is named; nil: its name is compared with those of the pods' owners.
func (s site) snapshot(
	cmd *cobra.Command, name string, rec *v1alpha1.MemoryRecommendation,
) (*v1alpha1.MemorySnapshot, error) {
	pod, isPod := podName(name)
	var noPod error
	if isPod {
		snapshot, err := s.Snapshot(cmd.Context(), s.Namespace, pod)
		if err == nil || !errors.Is(err, cluster.ErrNoPod) || strings.Contains(name, "/") {
			return snapshot, err
		}
		noPod = err
	}
	choice, err := s.Choose(cmd.Context(), s.Namespace, name, rec)
	if err != nil {
		if noPod != nil && errors.Is(err, cluster.ErrNoPod) {
			err = noPod
		}
		return nil, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Pod %s of %s has the newest %s (%s)%s\n", choice.Pod, choice.Workload, choice.Event,
		format.Time(choice.Newest), others(choice.Others))
	return s.Snapshot(cmd.Context(), s.Namespace, choice.Pod)
}

// others lists the other pods of a workload.
func others(pods []string) string {
	if len(pods) == 0 {
		return "; the workload has no other pod"
	}
	return "; the others: " + report.SomeOf(pods)
}
