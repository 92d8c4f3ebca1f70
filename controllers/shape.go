// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/signals"
)

const (
	// urgentPercent of its limit is where the readings of an instance are looked at one by one: below, the history is early enough.
	urgentPercent = 70
	// urgentSpan is the least they must span: an application that starts fills its memory, too.
	urgentSpan = 5 * time.Minute
	// nearLimitPercent of its limit is where nobody waits for the end of a warm-up any more, which signals takes to last ten minutes: what
	// has grown steadily since the start, and is there at this rate before as much time has passed again, is killed in the next minutes.
	nearLimitPercent = 85
)

// replicas are what the running pods' containers of that name use, for comparison. Working sets are not compared: page cache differs
// for reasons of its own.
func (m *state) replicas(container string, pods []*corev1.Pod) []signals.Replica {
	var all []signals.Replica
	for _, pod := range pods {
		ref := memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: container}
		if in, found := m.instances[ref]; found && !in.recent.workingSetOnly && in.recent.low() > 0 {
			all = append(all, signals.Replica{Pod: pod.Name, RSS: in.recent.low()})
		}
	}
	slices.SortFunc(all, func(a, b signals.Replica) int { return strings.Compare(a.Pod, b.Pod) })
	return all
}

// use is what the fullest of the running pods' containers of that name used lately, and when it was read last; 0: nobody has read.
func (m *state) use(container string, pods []*corev1.Pod) (most memory.Bytes, seen time.Time) {
	for _, pod := range pods {
		ref := memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: container}
		if in, found := m.instances[ref]; found && in.recent.most() > most {
			most, seen = in.recent.most(), in.recent.last
		}
	}
	return most, seen
}

// inUse is what the fullest replica has held for the last readings, so that a burst between two of them does not count; 0: not known.
func (m *state) inUse(container string, pods []*corev1.Pod) memory.Bytes {
	var most memory.Bytes
	for _, pod := range pods {
		ref := memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: container}
		if in, found := m.instances[ref]; found {
			most = max(most, in.recent.low())
		}
	}
	return most
}

// urgent are the instances of a container name that use most of their limit, with what was read of each.
func (m *state) urgent(container string, pods []*corev1.Pod, limit memory.Bytes) []signals.Instance {
	var all []signals.Instance
	for _, pod := range pods {
		ref := memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: container}
		in, found := m.instances[ref]
		if !found || in.recent.workingSetOnly || limit == 0 || in.recent.now() < limit.Percent(urgentPercent) || !in.recent.rises() {
			continue
		}
		i := in.recent.instance(ref, in.started)
		if in.recent.now() >= limit.Percent(nearLimitPercent) && len(i.Points) > 0 {
			i.Started = i.Points[0].Time.Add(-time.Hour) // no warm-up
		}
		if n := len(i.Points); n > 0 && i.Points[n-1].Time.Sub(i.Points[0].Time) >= urgentSpan {
			all = append(all, i)
		}
	}
	return all
}

// shape says what the container's memory does. The history tells it, which knows days; but it thins what it keeps, so that a leak that
// kills within minutes is over before it shows there. Instances close to their limit are therefore looked at by themselves.
func (q *containerInput) shape() signals.Shape {
	in := signals.FromHistory(q.history)
	in.Limit, in.Replicas, in.Now = q.container.current.Limit, q.replicas, q.now
	growth := q.plan.Growth(q.container.name)
	in.Overhead = growth.Overhead
	if growth.FollowsLimit && growth.HeapPercent > 0 && !growth.Soft {
		in.Cap = in.Limit.Percent(growth.HeapPercent)
	}
	s := signals.Classify(in)
	if len(q.urgent) == 0 || drifts(s) {
		return s
	}
	in.Instances, in.Past, in.Regimes = q.urgent, nil, nil
	if soon := signals.Classify(in); soon.Kind == signals.Climb && drifts(soon) {
		return soon
	}
	return s
}

// drifts: memory climbs or stays high, and that is more than a guess.
func drifts(s signals.Shape) bool {
	return s.Confidence != memory.Low && (s.Kind == signals.Climb || s.Kind == signals.StepRetention)
}

// sickIn are the pods that stand out in any container, each once, by name.
func sickIn(status *v1alpha1.MemoryRecommendationStatus) []string {
	var all []string
	for i := range status.Containers {
		if s := status.Containers[i].Shape; s != nil {
			all = append(all, s.SickPods...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// driftingIn is what is wrong with memory as the condition says it: "" for nothing.
func driftingIn(status *v1alpha1.MemoryRecommendationStatus) string {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDriftDetected)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Reason
}

// aboveReplicas says how far a pod's container is above the others: "Pod web-x uses 640Mi, its replicas 330Mi (median of 60)".
func (v *result) aboveReplicas(container, pod string) string {
	var use memory.Bytes
	var all []memory.Bytes
	for _, r := range v.replicas[container] {
		all = append(all, r.RSS)
		if r.Pod == pod {
			use = r.RSS
		}
	}
	if use == 0 {
		return "Pod " + pod + " uses far more than its replicas"
	}
	slices.Sort(all)
	return fmt.Sprintf("Pod %s uses %s, its replicas %s (median of %d)", pod, use, all[len(all)/2], len(all))
}

// sickSentence is the same on the pod itself, with what it means.
func (v *result) sickSentence(pod string) string {
	for i := range v.status.Containers {
		if c := &v.status.Containers[i]; c.Shape != nil && slices.Contains(c.Shape.SickPods, pod) {
			return "Container " + c.Container + ": " + v.aboveReplicas(c.Container, pod) + ". It is this pod, not the size: look at what it does before you raise the limit"
		}
	}
	return "Its memory is far above that of its replicas"
}

// shapeEvents are the events about memory that begins to drift, and about pods that begin to stand out: once, not at every step.
func (m *state) shapeEvents(s *snapshot, v *result, now *told) (all []workloadEvent) {
	now.drifting, now.sick = driftingIn(&v.status), sickIn(&v.status)
	if now.drifting != "" && now.drifting != m.told.drifting {
		all = append(all, driftDetected(s.owner, meta.FindStatusCondition(v.status.Conditions, v1alpha1.ConditionDriftDetected).Message))
	}
	for _, name := range now.sick {
		if slices.Contains(m.told.sick, name) {
			continue
		}
		for _, pod := range s.governed {
			if pod.Name == name {
				all = append(all, sickReplica(s.owner, pod, v.sickSentence(name)))
			}
		}
	}
	// What is not known at the moment, right after a start of memfit, is as it was.
	for _, name := range m.told.sick {
		if !slices.Contains(now.sick, name) && !v.compared(name) && slices.ContainsFunc(s.governed, func(p *corev1.Pod) bool { return p.Name == name }) {
			now.sick = append(now.sick, name)
		}
	}
	if now.drifting == "" && (len(now.sick) > 0 || unknownDrift(&v.status)) {
		now.drifting = m.told.drifting
	}
	return all
}

// compared: the pod was measured long enough to be compared with its replicas.
func (v *result) compared(pod string) bool {
	for _, replicas := range v.replicas {
		if slices.ContainsFunc(replicas, func(r signals.Replica) bool { return r.Pod == pod }) {
			return true
		}
	}
	return false
}

func unknownDrift(status *v1alpha1.MemoryRecommendationStatus) bool {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDriftDetected)
	return c == nil || c.Status == metav1.ConditionUnknown
}
