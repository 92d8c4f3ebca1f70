// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// published is the last decided size of a container.
type published struct {
	Size    memory.Size `json:"s"`
	Program string      `json:"p,omitempty"` // to which Size applies
}

// announced is the state that Events have reported, so that no Event is repeated.
type announced struct {
	Drifting   string   `json:"drifting,omitempty"`   // the reason of DriftDetected; empty: not True
	Outliers   []string `json:"outliers,omitempty"`   // pods that use far more than their replicas
	OutOfDate  bool     `json:"outOfDate,omitempty"`  // pods run without the profile's current settings
	Conflicted bool     `json:"conflicted,omitempty"` // another autoscaler manages the memory
	LedgerFull bool     `json:"ledgerFull,omitempty"` // new kills are not counted
}

// used is the highest demand of one running replica of a container.
type used struct {
	Most     memory.Bytes `json:"most"`
	Seen     time.Time    `json:"seen"`
	restored bool         // from the checkpoint; this process has not read usage yet
}

// decided is the last decided and reported state. It is stored before the MemoryRecommendation is written.
type decided struct {
	// Published are the last decided sizes, by container. They remain while evidence is missing. An Event reports a size
	// that is not near the published size.
	Published map[string]published `json:"sizes,omitempty"`
	announced
	Identity *v1alpha1.PodIdentity `json:"identity,omitempty"` // nil: the owner identifies the pods
}

// measurements are data about usage and nodes beside the histories. In a checkpoint, they may be minutes old.
type measurements struct {
	Source string `json:"source,omitempty"` // of samples; empty: none
	Past   string `json:"past,omitempty"`   // the source of earlier history; empty: none
	// The keys of the maps are container names.
	Used     map[string]used                   `json:"used,omitempty"`
	LiveSets map[string]history.LiveSet        `json:"liveSets,omitempty"` // of replicas without a heap cap
	Found    map[string]*v1alpha1.FoundRuntime `json:"found,omitempty"`
	RanOn    ranOn                             `json:"ranOn,omitzero"`
	Refused  refusedRequest                    `json:"refused,omitzero"`
}

// refusedRequest is the lowest memory request of a whole pod that memfit raised and no node has memory for.
type refusedRequest struct {
	Size memory.Bytes `json:"size"`
	At   time.Time    `json:"at"` // when the request was refused
}

// ranOn is the largest node that runs pods of the workload.
type ranOn struct {
	Size memory.Bytes `json:"size"` // allocatable memory
	Day  time.Time    `json:"day"`  // the last day with a pod on a node of this size
}

const (
	// ranOnKept is how long a node counts after a pod of the workload ran on it: long enough for monthly runs.
	ranOnKept = 35 * 24 * time.Hour
	// movedAfter is how long a deleted node counts while pods run only on smaller nodes: longer than a night with fewer
	// replicas and nodes.
	movedAfter = 2 * 24 * time.Hour
	// waitedFor is how long a pod may wait for an autoscaler to add a node, which usually takes 1 to 5 minutes.
	waitedFor = 10 * time.Minute
	// refusedFor is how long new pods keep their template's requests after no node had memory for more: longer than a
	// rollout, so that only its first pod waits.
	refusedFor = 24 * time.Hour
)

// recordNodes records the largest node that runs pods of the workload. The node may be deleted while no pod needs it,
// because an autoscaler adds a similar node for the next pod. recordNodes drops a deleted node if a pod has waited too
// long for such a node, or pods have run on smaller nodes since.
func (st *State) recordNodes(s *Snapshot, now time.Time) {
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
		request := constraints.Need(pod, nil).Request
		waits = waits || waitsLong(pod, now) && request > left && request <= st.RanOn.Size
	}
	today := now.UTC().Truncate(24 * time.Hour)
	switch {
	case runs > 0 && runs >= st.RanOn.Size:
		st.RanOn = ranOn{Size: runs, Day: today}
	case left == st.RanOn.Size, len(s.Facts.NodeSize) == 0: // the node exists, or nodes are unknown
	case waits:
		st.RanOn = ranOn{Size: left, Day: today}
	case runs > 0 && now.Sub(st.RanOn.Day) >= movedAfter:
		st.RanOn = ranOn{Size: runs, Day: today}
	}
}

// recordRefused records the lowest request of a pod that memfit raised and no node has memory for.
func (st *State) recordRefused(s *Snapshot, now time.Time) {
	if now.Sub(st.Refused.At) >= refusedFor {
		st.Refused = refusedRequest{}
	}
	for _, pod := range s.Governed {
		request := constraints.Need(pod, nil).Request
		least := st.Refused.Size == 0 || request < st.Refused.Size
		if least && noNodeHasMemory(pod, now) && len(st.raisedRequests(pod)) > 0 {
			st.Refused = refusedRequest{Size: request, At: now.UTC().Truncate(time.Second)}
		}
	}
}

// raisedRequests returns the containers whose request memfit raised at the pod's creation, with the size that reverses
// the raise: the owner's request and, for Guaranteed pods, the owner's limit. A request of 0 cannot be restored in
// place.
func (st *State) raisedRequests(pod *corev1.Pod) map[string]memory.Size {
	if resizedByOther(pod) {
		return nil
	}
	raised := map[string]memory.Size{}
	for c := range constraints.Containers(&pod.Spec) {
		size, p := constraints.SizeOf(&c.Resources), st.programs[instanceKey{pod.UID, c.Name}]
		if p.Requested <= p.Owner.Request || size.Request != p.Requested {
			continue
		}
		if size.Request = p.Owner.Request; pod.Status.QOSClass == corev1.PodQOSGuaranteed {
			size.Limit = p.Owner.Limit
		}
		raised[c.Name] = size
	}
	return raised
}

// noNodeHasMemory reports whether no node has memory for a pod. Only the scheduler's message shows this: the plugin
// NodeResourcesFit writes "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory." With a scheduler that
// does not use this plugin, memfit lowers no request.
func noNodeHasMemory(pod *corev1.Pod, now time.Time) bool {
	message, _ := unscheduled(pod)
	return waitsLong(pod, now) && strings.Contains(message, "Insufficient memory")
}

// waitsLong reports whether the scheduler has found no node for a pod for long enough for an autoscaler to add one.
func waitsLong(pod *corev1.Pod, now time.Time) bool {
	return unschedulable(pod) && pod.DeletionTimestamp == nil && now.Sub(pod.CreationTimestamp.Time) >= waitedFor
}

func unschedulable(pod *corev1.Pod) bool {
	_, is := unscheduled(pod)
	return is
}

// unscheduled returns the scheduler's message about a pod without a suitable node; false: not the case.
func unscheduled(pod *corev1.Pod) (message string, found bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Message, true
		}
	}
	return "", false
}

// publish stores the decided sizes and measurements of a step. A size near the published size does not replace it, so
// that slow changes add up until an Event reports them.
func (st *State) publish(v *result) {
	before := st.Published
	st.Published = make(map[string]published, len(v.recommended))
	for i := range v.status.Containers {
		c := &v.status.Containers[i]
		if size, found := v.recommended[c.Container]; found {
			if last, had := before[c.Container]; had && nearlyEqual(size, last.Size) {
				size = last.Size
			}
			st.Published[c.Container] = published{size, c.Program}
		}
	}
	for key, size := range v.sizes {
		if e := st.evidenceOf(key.Container, key.Program); e != nil {
			e.Size = e.stableSize(size)
		}
	}
	st.Used, st.LiveSets, st.Found = v.used, keptLiveSets(v.liveHeaps), v.found
}

func (st *State) sizes() map[string]memory.Size {
	all := make(map[string]memory.Size, len(st.Published))
	for name, p := range st.Published {
		all[name] = p.Size
	}
	return all
}

func (st *State) restore(d decided, o measurements) {
	for name, u := range o.Used {
		u.restored = true
		o.Used[name] = u
	}
	st.decided, st.measurements = d, o
}

// recordIdentity records the identity of the workload's pods and the last day with a pod, at one write a day.
func (st *State) recordIdentity(s *Snapshot, now time.Time) {
	if s.Identity != nil {
		st.Identity = &v1alpha1.PodIdentity{
			Platform: s.Identity.Platform, Values: s.Identity.Values, Labels: s.Identity.Keys,
			LastSeen: metav1.NewTime(now.UTC().Truncate(24 * time.Hour)),
		}
	}
}

// StatusHashes contains hashes of a status. The reconciler writes the status immediately if Stable changes, and later
// if only Fluctuating changes: the fields that change with every burst or restart of a container.
type StatusHashes struct{ Stable, Fluctuating uint64 }

// figures replaces the fluctuating fields of a container's recommendation with placeholders, and returns their rounded
// values.
func figures(r *v1alpha1.ContainerRecommendation) string {
	var use, rate *resource.Quantity
	var replicas int64
	if r.Usage != nil {
		use, r.Usage = coarse(r.Usage), &resource.Quantity{}
	}
	if r.FoundRuntime != nil {
		replicas, r.FoundRuntime.Replicas = rounded125(int64(r.FoundRuntime.Replicas)), 0
	}
	if r.Shape != nil {
		rate, r.Shape.RatePerDay = coarse(r.Shape.RatePerDay), nil
	}
	return fmt.Sprint(use, rate, replicas)
}

// HashStatus returns the hashes of a status. It replaces a size near the published size with the published size, omits
// text, and rounds numbers. So a steady workload costs a few API writes a day, instead of one for each sample.
func (st *State) HashStatus(s *v1alpha1.MemoryRecommendationStatus) StatusHashes {
	c := s.DeepCopy()
	fluctuating := make([]string, len(c.Containers))
	for i := range c.Containers {
		r := &c.Containers[i]
		asRecommended := r.Recommended != nil && r.NewPods != nil &&
			nearlyEqual(profile.SizeOf(*r.NewPods), profile.SizeOf(*r.Recommended))
		if last, had := st.Published[r.Container]; had && r.Recommended != nil &&
			nearlyEqual(profile.SizeOf(*r.Recommended), last.Size) {
			r.Recommended = new(profile.APISize(last.Size))
		}
		if asRecommended {
			r.NewPods = r.Recommended
		}
		r.Reasons, r.Summary, r.Evidence.WindowSeconds, r.UsageTime = nil, "", 0, nil
		r.Evidence.Samples = rounded125(r.Evidence.Samples)
		if r.Breakdown != nil {
			r.Breakdown = []string{""} // only its presence counts
		}
		if r.Suggestions != nil {
			r.Suggestions = []string{""}
		}
		fluctuating[i] = figures(r)
		e := &r.Evidence
		for _, q := range []**resource.Quantity{&e.PeakDemand, &e.PeakRSS, &e.PeakSwap, &e.PeakWorkingSet, &e.LiveSetMedian} {
			*q = coarse(*q)
		}
		if r.Shape != nil {
			r.Shape.Summary, r.Shape.TimeToLimitMinSeconds, r.Shape.TimeToLimitMaxSeconds = "", 0, 0
			slices.Sort(r.Shape.OutlierPods) // their order changes with every sample
		}
	}
	for i := range c.Conditions {
		c.Conditions[i].LastTransitionTime, c.Conditions[i].ObservedGeneration = metav1.Time{}, 0
		if c.Conditions[i].Reason != v1alpha1.ReasonConflict { // this message names the other writer
			c.Conditions[i].Message = ""
		}
	}
	c.Summary, c.CurrentLimit, c.RecommendedLimit, c.ObservedGeneration = "", "", "", 0
	return StatusHashes{Stable: hashOf(c), Fluctuating: hashOf(fluctuating)}
}

func hashOf(v any) uint64 {
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(v); err != nil {
		return 0 // cannot happen with these types
	}
	return h.Sum64()
}

// nearPercent and nearRequestPercent are the largest differences at which limits and requests count as equal. Evidence
// changes sizes slightly every hour, and every change causes a write and an Event. Requests have the default of
// minChangePercent.
const (
	nearPercent        = 5
	nearRequestPercent = 10
)

// nearlyEqual reports whether two sizes are nearly equal.
func nearlyEqual(a, b memory.Size) bool {
	return nearBytes(a.Limit, b.Limit, nearPercent) && nearBytes(a.Request, b.Request, nearRequestPercent)
}

func nearBytes(a, b memory.Bytes, percent int32) bool {
	if a == 0 || b == 0 { // unset differs from any number
		return a == b
	}
	return max(a, b).Minus(min(a, b)) <= b.Percent(percent)
}

// rounded125 rounds n down to 1, 2 or 5 times a power of ten. So a count causes three writes while it grows tenfold.
func rounded125(n int64) int64 {
	for unit := int64(1); unit > 0 && unit <= n; unit *= 10 {
		switch {
		case n < 2*unit:
			return unit
		case n < 5*unit:
			return 2 * unit
		case n < 10*unit:
			return 5 * unit
		}
	}
	return 0
}

// coarse rounds a quantity up by less than an eighth, and a quantity below 8Mi to whole Mi.
func coarse(q *resource.Quantity) *resource.Quantity {
	if q == nil {
		return nil
	}
	b := memory.FromQuantity(*q)
	unit := memory.MiB
	for unit*16 < b {
		unit *= 2
	}
	return format.Exact(b.CeilTo(unit))
}
