// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/workloadkind"
)

// ownersMax limits the owners read above the direct owner of a pod, such as the JobSet above a Job.
const ownersMax = 3

// Owner returns the workload that owns a pod, or the pod's identity if it has one; nil: the pod does not exist.
func (c *Cluster) Owner(
	ctx context.Context, pod string, records inventory.Records,
) (*v1alpha1.WorkloadReference, error) {
	object, err := c.metadata.Resource(pods).Namespace(c.Namespace).Get(ctx, pod, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // a missing pod is not an error
	case err != nil:
		return nil, fmt.Errorf("reading the owner of pod %s/%s: %w", c.Namespace, pod, err)
	}
	owner := inventory.Owner(object)
	for range ownersMax {
		kind, known := workloadkind.Of(owner.APIVersion, owner.Kind)
		if !known || !kind.Intermediate {
			break
		}
		above, err := c.Workload(ctx, c.Namespace, owner)
		if err != nil {
			return &owner, nil //nolint:nilerr // the owner's own owner is unknown: treat the owner as the workload
		}
		ref := metav1.GetControllerOf(above)
		if ref == nil {
			break
		}
		owner = v1alpha1.WorkloadReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
	}
	owner = records.Identified(object, owner)
	return &owner, nil
}

// Choice is the pod that represents a workload in a report.
type Choice struct {
	Pod      string
	Workload string   // in kubectl's form: "deployment/web"
	Others   []string // the other pods of the workload
	// Event is the last event of the pod: "OOM kill", "stall", or "snapshot" without either. Newest is its time.
	Event  string
	Newest time.Time

	happened time.Time // of the last kill or stall; zero: none
	observed time.Time // of the snapshot
}

// Choose chooses the pod of a workload with the newest kill or stall, or without these the newest snapshot. rec is the
// recommendation of the workload or node class; if rec is nil, name is the workload ("deployment/web" or "web").
func (c *Cluster) Choose(ctx context.Context, name string, rec *v1alpha1.MemoryRecommendation) (Choice, error) {
	owns := func(owner v1alpha1.WorkloadReference) bool { return report.Named(owner, name) }
	hasClass := func(string) bool { return true }
	var choice Choice
	candidates := map[string]bool{}
	var records inventory.Records
	if rec != nil {
		choice.Workload = report.Typed(rec.Name, &rec.Status)
		records = inventory.RecordsOf([]v1alpha1.MemoryRecommendation{*rec})
		owns = func(owner v1alpha1.WorkloadReference) bool {
			return records.Any(inventory.RefOf(c.Namespace, owner)) != nil
		}
	}
	if records.ByNode() {
		if err := c.EachNode(ctx, records.AddNode); err != nil {
			return Choice{}, err
		}
		hasClass = func(node string) bool {
			return records.Of(records.OnNode(inventory.RefOf(c.Namespace, rec.Status.Workload), node)) != nil
		}
	}
	err := c.eachPodMetadata(ctx, func(pod *metav1.PartialObjectMetadata) {
		if owner := records.Owner(pod); owns(owner) {
			candidates[pod.Name] = true
			choice.Workload = cmp.Or(choice.Workload, workloadkind.Typed(owner.Kind, owner.Name))
		}
	})
	if err != nil {
		return Choice{}, err
	}
	err = c.EachSnapshot(ctx, func(s *v1alpha1.MemorySnapshot) {
		switch {
		case !candidates[s.Name]:
		case hasClass(s.Status.NodeName):
			choice.consider(s)
		default:
			delete(candidates, s.Name)
		}
	})
	switch {
	case len(candidates) == 0:
		return Choice{}, fmt.Errorf("%w of %s in namespace %s; name a pod, or list workloads with pods: "+
			"kubectl memfit scan -n %s", ErrNoPod, name, c.Namespace, c.Namespace)
	case err != nil:
		return Choice{}, err
	}
	delete(candidates, choice.Pod)
	choice.Others = slices.Sorted(maps.Keys(candidates))
	if choice.Pod == "" {
		choice.Pod = choice.Others[0]
		_, err = c.Snapshot(ctx, choice.Pod) // the error names what is missing
	}
	return choice, err
}

// consider chooses the pod with the newest kill or stall; of equal pods the newest snapshot, then the first name.
func (c *Choice) consider(s *v1alpha1.MemorySnapshot) {
	next := Choice{Pod: s.Name, Workload: c.Workload, Event: "snapshot", observed: s.Status.ObservedTime.Time}
	happened := func(at metav1.Time, event string) {
		if at.After(next.happened) {
			next.happened, next.Event = at.Time, event
		}
	}
	for i := range s.Status.Containers {
		if k := s.Status.Containers[i].LastKill; k != nil {
			happened(k.Time, "OOM kill")
		}
		if l := s.Status.Containers[i].LastStall; l != nil {
			happened(l.Started, "stall")
		}
	}
	next.Newest = cmp.Or(next.happened, next.observed)
	newer := cmp.Or(
		next.happened.Compare(c.happened), next.observed.Compare(c.observed), strings.Compare(c.Pod, next.Pod),
	)
	if c.Pod == "" || newer > 0 {
		*c = next
	}
}
