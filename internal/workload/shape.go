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
	// urgentPercent: the latest readings of an instance are examined in addition to the history if its demand is at least
	// this percentage of the limit.
	urgentPercent = 70
	// urgentSpan is the least period of these readings, because a starting application also fills memory. It is real time
	// even if evidence is compressed (package period).
	urgentSpan = 5 * time.Minute
	// nearLimitPercent of the limit is the demand from which growth counts even during the warm-up of ten minutes (see
	// package shape): a steadily growing instance could be killed within minutes.
	nearLimitPercent = 85
)

// replicas returns the lowest recent demand of each pod, so that a burst does not make it an outlier. It omits pods
// with only a working set, because page cache makes replicas differ.
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

// highestUse returns the highest value that reading selects from the readings of one pod, and when the pod was last
// read; 0: none.
func (st *State) highestUse(
	container string, pods []*corev1.Pod, reading func(*readings) memory.Bytes,
) (most memory.Bytes, seen time.Time) {
	for _, pod := range pods {
		if in := st.instanceIn(pod, container); in != nil && reading(&in.recent) > most {
			most, seen = reading(&in.recent), in.recent.lastAt()
		}
	}
	return most, seen
}

// urgent returns the growing instances that use at least urgentPercent of limit, with their readings.
func (st *State) urgent(container string, pods []*corev1.Pod, limit memory.Bytes) []shape.Instance {
	var all []shape.Instance
	for _, pod := range pods {
		in := st.instanceIn(pod, container)
		if in == nil || in.recent.workingSetOnly || limit == 0 || in.recent.now() < limit.Percent(urgentPercent) ||
			!in.recent.rises() { // otherwise there are at least five points
			continue
		}
		i := in.recent.instance(refOf(pod, container), in.started.Time())
		first, last := i.Points[0].Time, i.Points[len(i.Points)-1].Time
		if in.recent.now() >= limit.Percent(nearLimitPercent) {
			i.Started = first.Add(-time.Hour) // no warm-up
		}
		if last.Sub(first) >= urgentSpan {
			all = append(all, i)
		}
	}
	return all
}

// largestGrowing returns the growing instance with the highest demand; zero: none.
func (st *State) largestGrowing(container string, pods []*corev1.Pod) (l shape.RunningInstance) {
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

// Drifts reports whether memory climbs, or stays high after load, with more than low confidence.
func Drifts(s shape.Shape) bool {
	return s.Confidence != memory.Low && (s.Kind == shape.Climb || s.Kind == shape.StepRetention)
}

// outliersIn returns the pods that use far more than the other replicas in any container, sorted, without duplicates.
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

// shapeEvents returns the Events about new drift and new outliers, and sets now.Drifting and now.Outliers.
func (st *State) shapeEvents(s *Snapshot, v *result, now *announced) (all []Event) {
	now.Outliers = outliersIn(&v.status)
	drift := meta.FindStatusCondition(v.status.Conditions, v1alpha1.ConditionDriftDetected)
	if drift.Status == metav1.ConditionTrue {
		now.Drifting = drift.Reason
	}
	if now.Drifting != "" && now.Drifting != st.Drifting {
		e := workloadEvent(s.Owner, corev1.EventTypeWarning, v1alpha1.EventDriftDetected, "Observed", drift.Message)
		all = append(all, e)
	}
	for _, name := range now.Outliers {
		if slices.Contains(st.Outliers, name) {
			continue
		}
		for _, pod := range s.Governed {
			if pod.Name == name {
				all = append(all, podEvent(s.Owner, podReference(pod), corev1.EventTypeWarning, v1alpha1.ReasonOutlierReplica,
					"Compared", v.outlierSentence(name)))
			}
		}
	}
	// Keep reported outliers that cannot be compared yet, for example after memfit was restarted.
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
	// shapePart: a computed shape is valid for 1/shapePart of the history's length, because computing one is expensive: it
	// compares all pairs of a few hundred points.
	shapePart = 24
	maxShape  = 5 * period.Minute // longest validity
)

// shapeCache is a computed shape with the data for which it is valid.
type shapeCache struct {
	shape    shape.Shape
	until    time.Time // the cached shape is valid before
	limit    memory.Bytes
	kills    int
	replicas int
}

// shortestHistory returns the length of the shortest history of a container; 0: none.
func (st *State) shortestHistory() time.Duration {
	var span time.Duration
	for name := range st.containers {
		if s := st.newest(name).history.Span(); span == 0 || s < span {
			span = s
		}
	}
	return span
}
