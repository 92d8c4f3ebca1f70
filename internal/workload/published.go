// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// published is the decided size of a container, and its program.
type published struct {
	Size    memory.Size `json:"s"`
	Program string      `json:"p,omitempty"`
}

// announced is the state reported by Events, so that nothing is reported twice.
type announced struct {
	// Drifting is the reason of DriftDetected while it is true, and Outliers are the pods far above the others.
	Drifting string   `json:"drifting,omitempty"`
	Outliers []string `json:"outliers,omitempty"`
	// OutOfDate: pods ran without the profile's current settings.
	OutOfDate bool `json:"outOfDate,omitempty"`
	// Conflicted: another autoscaler manages this memory.
	Conflicted bool `json:"conflicted,omitempty"`
	// LedgerFull: kills are not counted any more.
	LedgerFull bool `json:"ledgerFull,omitempty"`
}

// used is the highest demand of one running replica of a container.
type used struct {
	Most memory.Bytes `json:"most"`
	Seen time.Time    `json:"seen"`
	// recalled: read by an earlier process of memfit, and reported until this process reads usage.
	recalled bool
}

// decided is the last decided and reported state, stored before the MemoryRecommendation is written.
type decided struct {
	// Published are the last decided sizes, by container, which remain while evidence is missing. An Event reports a size
	// that is not near them.
	Published map[string]published `json:"sizes,omitempty"`
	announced
	// Identity identifies the workload's pods; nil: their owner does.
	Identity *v1alpha1.PodIdentity `json:"identity,omitempty"`
}

// measurements are observations besides histories. Like these they may be minutes old when read.
type measurements struct {
	// Source is the source of samples, Past that of the earlier history; empty: none.
	Source string `json:"source,omitempty"`
	Past   string `json:"past,omitempty"`
	// Used is the highest demand of one replica, by container.
	Used map[string]used `json:"used,omitempty"`
	// LiveSets are the last live sets of replicas without a heap cap, by container.
	LiveSets map[string]history.LiveSet `json:"liveSets,omitempty"`
	// Found is the last detected runtime of replicas, by container.
	Found map[string]*v1alpha1.FoundRuntime `json:"found,omitempty"`
	// RanOn is the largest node that runs pods of the workload.
	RanOn ranOn `json:"ranOn,omitzero"`
}

// ranOn is the allocatable memory of a node with a pod of the workload, and the last day of that.
type ranOn struct {
	Size memory.Bytes `json:"size"`
	Day  time.Time    `json:"day"`
}

const (
	// ranOnKept is how long a node counts after a pod of the workload ran on it: long enough for monthly runs.
	ranOnKept = 35 * 24 * time.Hour
	// movedAfter is how long it counts while pods run only on smaller nodes and none of its size exists: longer than a
	// night with fewer replicas and nodes. It is counted from the beginning of a day.
	movedAfter = 2 * 24 * time.Hour
	// waitedFor is how long a pod may wait for a node from an autoscaler, which takes 1 to 5 minutes. With less, a slow
	// autoscaler makes the next pods small; with more, more pods wait.
	waitedFor = 10 * time.Minute
)

// noteNodes records the largest node that runs pods of the workload. It may not exist when the next pod is created, as
// after a night without pods; an autoscaler then adds a similar one. It no longer counts if a pod has waited too long
// for one, or pods have run on smaller nodes since.
func (st *State) noteNodes(s *Snapshot, now time.Time) {
	if now.Sub(st.RanOn.Day) > ranOnKept {
		st.RanOn = ranOn{}
	}
	var runs, left memory.Bytes // the largest node with a pod, and the largest remaining node that may run one
	for _, size := range s.Facts.NodeSize {
		if size <= st.RanOn.Size {
			left = max(left, size)
		}
	}
	waits := false
	for _, pod := range s.Governed {
		runs = max(runs, s.Facts.NodeSize[pod.Spec.NodeName])
		request := constraints.Total(pod, nil).Request
		waits = waits || unschedulable(pod) && now.Sub(pod.CreationTimestamp.Time) >= waitedFor &&
			request > left && request <= st.RanOn.Size
	}
	today := now.UTC().Truncate(24 * time.Hour)
	switch {
	case runs > 0 && runs >= st.RanOn.Size:
		st.RanOn = ranOn{Size: runs, Day: today}
	case left == st.RanOn.Size, len(s.Facts.NodeSize) == 0: // exists, or nodes are unknown
	case waits:
		st.RanOn = ranOn{Size: left, Day: today}
	case runs > 0 && now.Sub(st.RanOn.Day) >= movedAfter:
		st.RanOn = ranOn{Size: runs, Day: today}
	}
}

// unschedulable reports whether the scheduler found no node for a pod.
func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable
	})
}

// publish stores the result of a step as published. A size near the published one does not replace it, so that slow
// changes add up to a new one. It does not depend on the MemoryRecommendation, which is only a projection of the state.
func (st *State) publish(v *result) {
	before, usedBefore := st.Published, st.Used
	st.Published = make(map[string]published, len(v.recommended))
	st.Used = make(map[string]used, len(v.status.Containers))
	for i := range v.status.Containers {
		c := &v.status.Containers[i]
		if size, found := v.recommended[c.Container]; found {
			if last, had := before[c.Container]; had && near(size, last.Size) {
				size = last.Size
			}
			st.Published[c.Container] = published{size, c.Program}
		}
		switch last := usedBefore[c.Container]; {
		case v.used[c.Container].Most > 0:
			st.Used[c.Container] = v.used[c.Container]
		case last.recalled:
			st.Used[c.Container] = last
		}
	}
	for key, size := range v.sizes {
		if e := st.evidenceOf(key.Container, key.Program); e != nil {
			e.Size = e.sized(size)
		}
	}
	st.LiveSets, st.Found = keptLiveSets(v.liveHeaps), v.found
}

// sizes returns the last published sizes, by container.
func (st *State) sizes() map[string]memory.Size {
	all := make(map[string]memory.Size, len(st.Published))
	for name, p := range st.Published {
		all[name] = p.Size
	}
	return all
}

// recall restores the stored state.
func (st *State) recall(d decided, o measurements) {
	for name, u := range o.Used {
		u.recalled = true
		o.Used[name] = u
	}
	st.decided, st.measurements = d, o
}

// identify records the identity of the workload's pods, and the day on which some exist, at one write a day.
func (st *State) identify(s *Snapshot, now time.Time) {
	if s.Identity != nil {
		st.Identity = &v1alpha1.PodIdentity{
			Platform: s.Identity.Platform, Values: s.Identity.Values, Labels: s.Identity.Keys,
			LastSeen: metav1.NewTime(now.UTC().Truncate(24 * time.Hour)),
		}
	}
}
