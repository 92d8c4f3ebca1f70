// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
)

// Difference is how much memfit changed the memory requests of running pods from the values of their owners.
type Difference struct {
	// Less is the sum of all reductions, and More of all increases; a pod may have both.
	Less, More memory.Bytes
	// Unknown counts pods that memfit resized and whose owner's value is unknown.
	Unknown int
	// Failed counts pods with a lower request and then an OOM kill, a stall or a rollback. Less excludes these requests.
	Failed int
}

// Add adds the difference of another workload.
func (d *Difference) Add(other Difference) {
	d.Less, d.More = d.Less.Plus(other.Less), d.More.Plus(other.More)
	d.Unknown, d.Failed = d.Unknown+other.Unknown, d.Failed+other.Failed
}

// Savings sums up the differences of pods by recommendation. It counts only memfit's own changes: sizes from the
// creation of a pod that the pod still has, and resizes after which no other writer resized the pod.
type Savings struct {
	// Differences has the namespaces and names of recommendations as keys.
	Differences map[types.NamespacedName]Difference

	records Records
}

// NewSavings returns savings without pods, for the workloads in records.
func NewSavings(records Records) *Savings {
	return &Savings{Differences: map[types.NamespacedName]Difference{}, records: records}
}

// AddPod adds the difference of a pod, unless the pod has ended.
func (s *Savings) AddPod(pod *corev1.Pod) {
	rec := s.records.Of(s.records.workload(pod))
	if rec == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	key := types.NamespacedName{Namespace: rec.Namespace, Name: rec.Name}
	d := s.Differences[key]
	d.add(pod, rec)
	s.Differences[key] = d
}

func (d *Difference) add(pod *corev1.Pod, rec *v1alpha1.MemoryRecommendation) {
	created := pod.CreationTimestamp.Time
	if has := constraints.WholeSize(pod).Request; has > 0 { // the scheduler ignores the containers' requests
		before, injected, ok := inject.RequestBefore(pod, "")
		if ok && injected == has && d.count(before, has, failedSince(rec, "", created)) {
			d.Failed++
		}
		return
	}
	resized, unknown, failed := resizedByMemfit(pod), false, false
	for _, c := range running(pod) {
		has := memory.FromQuantity(c.Resources.Requests[corev1.ResourceMemory])
		before, injected, ok := inject.RequestBefore(pod, c.Name)
		switch {
		case ok && (injected == has || resized):
			failed = d.count(before, has, failedSince(rec, c.Name, created)) || failed
		case !ok && resized:
			if before, ok = ownersRequest(pod, c.Name, rec); ok {
				failed = d.count(before, has, failedSince(rec, c.Name, firstChange(rec, created))) || failed
			} else {
				unknown = true
			}
		}
	}
	if failed {
		d.Failed++
	}
	if unknown {
		d.Unknown++
	}
}

// ownersRequest returns the owner's request for a container, as recorded in the pod or in the recommendation.
func ownersRequest(pod *corev1.Pod, name string, rec *v1alpha1.MemoryRecommendation) (memory.Bytes, bool) {
	if program := inject.ProgramOf(pod, name, false); program.Recorded {
		return program.Owner.Request, true
	}
	for i := range rec.Status.Containers {
		if c := &rec.Status.Containers[i]; c.Container == name && c.Owner != nil {
			return report.Bytes(c.Owner.Request), true
		}
	}
	return 0, false
}

// count adds the change of a request, unless the change is a reduction that failed. It returns true for such a failure.
func (d *Difference) count(before, has memory.Bytes, failed bool) bool {
	d.More = d.More.Plus(has.Minus(before))
	if failed && has < before {
		return true
	}
	d.Less = d.Less.Plus(before.Minus(has))
	return false
}

// failedSince reports an OOM kill or stall of the container ("": any container), or a rollback, since a time.
func failedSince(rec *v1alpha1.MemoryRecommendation, container string, since time.Time) bool {
	matches := func(name string, at metav1.Time) bool {
		return (container == "" || name == container) && !at.Time.Before(since)
	}
	s := &rec.Status
	killed := func(k v1alpha1.OOMKillRecord) bool { return matches(k.Container, k.Time) }
	stalled := func(s v1alpha1.StallRecord) bool { return matches(s.Container, s.Time) }
	reverted := func(c v1alpha1.ChangeRecord) bool {
		return c.Kind == v1alpha1.EventReverted && !c.Time.Time.Before(since)
	}
	return slices.ContainsFunc(s.RecentOOMKills, killed) || slices.ContainsFunc(s.RecentStalls, stalled) ||
		slices.ContainsFunc(s.RecentChanges, reverted)
}

// firstChange returns the time of the first recorded change of the workload, or of the pod's creation if that is later.
func firstChange(rec *v1alpha1.MemoryRecommendation, created time.Time) time.Time {
	first := time.Time{}
	for i := range rec.Status.RecentChanges {
		c := &rec.Status.RecentChanges[i]
		at := c.Time.Time
		if c.Since != nil {
			at = c.Since.Time
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if first.Before(created) {
		return created
	}
	return first
}

// resizedByMemfit reports whether memfit was the last to resize the pod.
func resizedByMemfit(pod *corev1.Pod) bool {
	writer, _ := workload.ResizedBy(pod)
	return writer == "" && inject.WasResized(pod)
}
