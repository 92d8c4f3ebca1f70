// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/shape"
)

const (
	// urgentPercent of its limit is where the readings of an instance are examined one by one: below, the history is early
	// enough.
	urgentPercent = 70
	// urgentSpan is the least they must span: an application that starts fills its memory, too, and takes real time.
	urgentSpan = 5 * time.Minute
	// nearLimitPercent of its limit is where the end of a warm-up is no longer waited for, which shape takes to last ten
	// minutes: what has grown steadily since the start, and reaches the limit at this rate before as much time has passed
	// again, is killed in the next minutes.
	nearLimitPercent = 85
)

// replicas are what the running pods' containers of that name use, for comparison. Working sets are not compared: page
// cache differs for reasons of its own.
func (st *State) replicas(container string, pods []*corev1.Pod) []shape.Replica {
	var all []shape.Replica
	for _, pod := range pods {
		if in := st.instanceIn(pod, container); in != nil && !in.recent.workingSetOnly && in.recent.low() > 0 {
			all = append(all, shape.Replica{Pod: pod.Name, RSS: in.recent.low()})
		}
	}
	slices.SortFunc(all, func(a, b shape.Replica) int { return strings.Compare(a.Pod, b.Pod) })
	return all
}

// fullest is the demand of the fullest of the running pods' containers of that name, and when it was read last; 0: not
// read. of is what counts of its readings.
func (st *State) fullest(
	container string, pods []*corev1.Pod, of func(*readings) memory.Bytes,
) (most memory.Bytes, seen time.Time) {
	for _, pod := range pods {
		if in := st.instanceIn(pod, container); in != nil && of(&in.recent) > most {
			most, seen = of(&in.recent), in.recent.lastAt()
		}
	}
	return most, seen
}

// urgent are the instances of a container name that use most of their limit, with what was read of each.
func (st *State) urgent(container string, pods []*corev1.Pod, limit memory.Bytes) []shape.Instance {
	var all []shape.Instance
	for _, pod := range pods {
		ref := memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: container}
		in := st.instance(&ref)
		if in == nil || in.recent.workingSetOnly || limit == 0 || in.recent.now() < limit.Percent(urgentPercent) ||
			!in.recent.rises() {
			continue
		}
		i := in.recent.instance(ref, in.started.Time())
		if in.recent.now() >= limit.Percent(nearLimitPercent) && len(i.Points) > 0 {
			i.Started = i.Points[0].Time.Add(-time.Hour) // no warm-up
		}
		if n := len(i.Points); n > 0 && i.Points[n-1].Time.Sub(i.Points[0].Time) >= urgentSpan {
			all = append(all, i)
		}
	}
	return all
}

// climbing is the fullest instance of a container name that uses more and more.
func (st *State) climbing(container string, pods []*corev1.Pod) (l shape.RunningInstance) {
	for _, pod := range pods {
		in := st.instanceIn(pod, container)
		if in == nil || in.started == 0 || in.recent.workingSetOnly || !in.recent.rises() {
			continue
		}
		if use := in.recent.now(); use > l.Use {
			l = shape.RunningInstance{Age: in.recent.lastAt().Sub(in.started.Time()), Use: use}
		}
	}
	return l
}

// Drifts reports whether memory climbs or stays high, and that is more than a guess.
func Drifts(s shape.Shape) bool {
	return s.Confidence != memory.Low && (s.Kind == shape.Climb || s.Kind == shape.StepRetention)
}

// outliersIn are the pods far above their replicas in any container, each once, by name.
func outliersIn(status *v1alpha1.MemoryRecommendationStatus) []string {
	var all []string
	for i := range status.Containers {
		if s := status.Containers[i].Shape; s != nil {
			all = append(all, s.OutlierPods...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// shapeEvents are the Events about memory that begins to drift, and about pods that begin to be outliers: once, not at
// every step.
func (st *State) shapeEvents(s *Snapshot, v *result, now *announced) (all []Event) {
	now.Outliers = outliersIn(&v.status)
	drift := meta.FindStatusCondition(v.status.Conditions, v1alpha1.ConditionDriftDetected)
	if drift.Status == metav1.ConditionTrue {
		now.Drifting = drift.Reason
	}
	if now.Drifting != "" && now.Drifting != st.Drifting {
		all = append(
			all, ofWorkload(s.Owner, corev1.EventTypeWarning, v1alpha1.EventDriftDetected, "Observed", drift.Message),
		)
	}
	for _, name := range now.Outliers {
		if slices.Contains(st.Outliers, name) {
			continue
		}
		for _, pod := range s.Governed {
			if pod.Name == name {
				all = append(all, outlierReplica(s.Owner, pod, v.outlierSentence(name)))
			}
		}
	}
	// Right after a start of memfit little is known yet: what was reported before counts until then.
	for _, name := range st.Outliers {
		if !slices.Contains(now.Outliers, name) && !v.compared(name) &&
			slices.ContainsFunc(s.Governed, func(p *corev1.Pod) bool { return p.Name == name }) {
			now.Outliers = append(now.Outliers, name)
		}
	}
	if now.Drifting == "" && (len(now.Outliers) > 0 || drift.Status == metav1.ConditionUnknown) {
		now.Drifting = st.Drifting
	}
	return all
}

const (
	// shapePart of what a shape rests on must be new before it is looked for again, and shapeMost is how long it is valid
	// at most. Finding it compares all pairs of a few hundred points and was nine tenths of a step; what two hours show,
	// the next minute does not change.
	shapePart = 24
	shapeMost = 5 * period.Minute
)

// shapeCache is the shape of a container's memory, and what it rests on.
type shapeCache struct {
	shape    shape.Shape
	until    time.Time // until then it is valid
	limit    memory.Bytes
	kills    int
	replicas int
}

// youngest is how long the history of the least known container reaches back; 0: nothing is known. What is hardly
// known is examined with every sample.
func (st *State) youngest() time.Duration {
	var span time.Duration
	for name := range st.containers {
		if s := st.newest(name).history.Span(); span == 0 || s < span {
			span = s
		}
	}
	return span
}
