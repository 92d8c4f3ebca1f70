// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/format"
)

const whyLong = `Show what happened to the memory of a pod: the last OOM kill, the minute before it and the killed
process, what filled the containers, what memfit did for the workload, and what to do next.

The command reads the pod's MemorySnapshot, which the agent on the node writes (docs/guide/agent.md), the pod's owner,
and the recommendations of the namespace. For a workload, it shows the pod with the newest OOM kill or stall; standard
error names the other pods. If the pods no longer exist, it shows what the MemoryRecommendation recorded. Nothing is
written to the cluster.`

const whyExample = `  kubectl memfit why pod/web-6d5f7c9b8-x2x7k -n shop

  # The pod of a workload with the newest OOM kill
  kubectl memfit why deployment/web -n shop

  # A pipeline step, as named by kubectl memfit status
  kubectl memfit why "tekton: build/unit" -n ci`

func whyCommand() *cobra.Command {
	v := newVerb(&cobra.Command{
		Use:   "why pod/NAME|WORKLOAD [-n NAMESPACE] [-o FORMAT]",
		Short: "Show what happened to a pod's memory: the kill, the minute before it, what filled it",
		Long:  whyLong, Example: whyExample,
		Args: exactlyOne("name one pod or workload, as in: kubectl memfit why pod/web-6d5f7c9b8-x2x7k"),
	})
	v.addOutput("", listing.OfPage...)
	v.ValidArgsFunction = v.completeArgs(1, inspectedPods)
	return v.withRun(why)
}

func why(v *verb) error {
	recs, err := v.cluster.Recommendations(v.Context())
	if err != nil {
		return err
	}
	name := v.args[0]
	rec, _ := report.Find(recs, name, v.place()) // nil: the argument is a pod, or a workload without a profile
	snapshot, err := v.snapshot(name, rec)
	if err == nil {
		rec = v.recommendationOf(recs, snapshot.Name, snapshot.Status.NodeName)
	} else {
		if pod, isPod := podName(name); isPod && rec == nil {
			rec = report.OfRecord(recs, pod)
		}
		if rec == nil {
			return err
		}
		v.warn("showing only the recommendation: %v", err)
	}
	why := report.WhyOf(snapshot, rec)
	return v.page("PodExplanation", why, why.Write)
}

// recommendationOf finds the recommendation of a pod's workload. It returns nil if no profile governs the workload.
func (v *verb) recommendationOf(recs []v1alpha1.MemoryRecommendation, pod, node string) *v1alpha1.MemoryRecommendation {
	records := inventory.RecordsOf(recs)
	owner, err := v.cluster.Owner(v.Context(), pod, records)
	if err != nil {
		v.warn("%v; the pod's workload is known only if memfit recorded an OOM kill or stall of the pod", err)
	}
	if owner == nil {
		return report.OfRecord(recs, pod)
	}
	if records.ByNode() {
		if labeled, err := v.cluster.Node(v.Context(), node); err != nil {
			v.warn("%v; the node class is unknown", err)
		} else {
			records.AddNode(labeled)
		}
	}
	return records.Of(records.OnNode(inventory.RefOf(v.cluster.Namespace, *owner), node))
}

// snapshot reads the snapshot of a pod, named as "web-7d9f8" or "pod/web-7d9f8". If name is a workload, it chooses the
// pod with the newest kill or stall. rec is the workload's recommendation; nil: pods are matched by owner and name.
func (v *verb) snapshot(name string, rec *v1alpha1.MemoryRecommendation) (*v1alpha1.MemorySnapshot, error) {
	ctx := v.Context()
	pod, isPod := podName(name)
	var noPod error
	if isPod {
		snapshot, err := v.cluster.Snapshot(ctx, pod)
		if err == nil || !errors.Is(err, cluster.ErrNoPod) || strings.Contains(name, "/") {
			return snapshot, err
		}
		noPod = err
	}
	choice, err := v.cluster.Choose(ctx, name, rec)
	if err != nil {
		if noPod != nil && errors.Is(err, cluster.ErrNoPod) {
			err = noPod
		}
		return nil, err
	}
	others := "the workload has no other pod"
	if len(choice.Others) > 0 {
		others = "the others: " + report.SomeOf(choice.Others)
	}
	v.note("Pod %s of %s has the newest %s (%s); %s", choice.Pod, choice.Workload, choice.Event,
		format.Time(choice.Newest), others)
	return v.cluster.Snapshot(ctx, choice.Pod)
}
