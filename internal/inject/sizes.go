// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

// sizing is the planned memory of one container.
type sizing struct {
	// base is the size without memfit, next the planned one; equal if nothing is set.
	base, next memory.Size
	wanted     bool        // the container gets next; otherwise its current size remains
	ignored    string      // why a recommended size is ignored; empty: it is not
	why        []string    // the reasons for a size other than the recommended one
	podReason  string      // the part of why for the creator of the pod
	part       memory.Size // the share of the whole pod's limit that a container without a limit needs
	neverLower bool        // the profile forbids lowering
}

// wholeSizing is the planned size of the whole pod (spec.resources).
type wholeSizing struct {
	next memory.Size
	rec  *sizeRecord // nil: the owner's size
}

// sizings decides the sizes of all containers, and of the whole pod, before settings are derived from them:
// LimitRanges, quotas and nodes bound the whole pod. Sizes can change a pod's QoS class from BestEffort to Burstable. A
// Guaranteed pod remains Guaranteed, and no request exceeds its limit.
func (in *Input) sizings(managed []target) ([]sizing, wholeSizing) {
	whole := wholeSizing{next: constraints.WholeSize(in.Pod)}
	if in.before != nil {
		whole.rec = in.before.Pod
	}
	out := make([]sizing, len(managed))
	if len(in.Sizes) == 0 {
		return out, whole
	}
	fixed := in.guaranteed(managed)
	for i, t := range managed {
		if offer, found := in.Sizes[t.container.Name]; found && t.policy.Tuning.Mode != v1alpha1.TuningDryRun {
			out[i] = in.sizing(t, offer, fixed)
		}
	}
	in.fit(managed, out, fixed, &whole)
	return out, whole
}

// wholeBefore returns the size of the whole pod without memfit's change, and why the size must not change.
func (in *Input) wholeBefore(managed []target, sizings []sizing, whole *wholeSizing) constraints.Whole {
	have := whole.next
	out := constraints.Whole{Size: have}
	if whole.rec != nil && !whole.rec.unchanged(have) {
		out.FixedBecause = fmt.Sprintf("it was changed to %s after memfit had set %s, so it is left alone", have,
			whole.rec.text())
		return out
	}
	for i, t := range managed {
		if before := t.before; before != nil && before.Size != nil && !sizings[i].wanted {
			out.FixedBecause = "it includes the size that memfit set in container " + t.container.Name
			return out
		}
	}
	if whole.rec != nil {
		out.Size = whole.rec.previous(have)
	}
	return out
}

func (in *Input) sizing(t target, offer Offer, fixed bool) sizing {
	have := constraints.SizeOf(&t.container.Resources)
	s := sizing{base: have, next: have, wanted: true}
	if before := t.before; before != nil && before.Size != nil {
		if !before.Size.unchanged(have) {
			s.wanted = false
			s.ignored = fmt.Sprintf("the request or limit was changed to %s after memfit had set %s, so it is left alone",
				have, before.Size.text())
			return s
		}
		s.base = before.Size.previous(have)
		s.next = s.base
	}
	want := offer.sizeFor(t.program.ID, s.base)
	if want == (memory.Size{}) { // no evidence about this program, or its owner changed the memory
		s.wanted = s.base != have
		return s
	}
	want, s.why = bounded(t, want, s.base)
	if t.whole != (memory.Size{}) && s.base.Limit == 0 {
		s.part, s.neverLower = want, t.policy.SizePolicy().DecreaseNever
		if s.base.Request > 0 && want.Request > 0 {
			s.next.Request = want.Request
		}
		return s
	}
	s.next = resized(s.base, want, fixed)
	return s
}

// fit bounds the sizes by namespace and nodes. If the profile does not allow the result, the containers keep their
// base.
func (in *Input) fit(managed []target, sizings []sizing, fixed bool, whole *wholeSizing) {
	original := in.wholeBefore(managed, sizings, whole)
	var asks []constraints.DesiredSize
	var of []int
	for i, s := range sizings {
		if s.wanted && (s.next != s.base || s.part != (memory.Size{})) {
			policy := managed[i].policy.SizePolicy()
			asks = append(asks, constraints.DesiredSize{
				Container: managed[i].container.Name, Base: s.base, Want: s.next,
				Equal: fixed || policy.RequestEqualsLimit, PodLevelShare: s.part, NeverLower: s.neverLower,
			})
			of = append(of, i)
		}
	}
	facts := in.Facts
	if facts == nil { // other bounds are unknown, but the pod's own size is visible
		if original.Size == (memory.Size{}) {
			return
		}
		facts = &constraints.Facts{}
	}
	fitted, found := facts.Fit(in.podWithoutSizes(managed, sizings), original, asks)
	taken := true
	for j := range fitted {
		if len(fitted[j].Why) > 0 {
			taken = sizings[of[j]].adopt(managed[of[j]], fitted[j]) && taken
		}
	}
	if !taken && original.Size != (memory.Size{}) { // keep the sizes consistent
		for _, i := range of {
			s := &sizings[i]
			if s.next != s.base {
				s.next, s.why = s.base, append(s.why, "another container of the pod keeps its size")
			}
		}
		found.Size = original.Size
	}
	for _, i := range of {
		if s := &sizings[i]; s.part != (memory.Size{}) && len(s.why) == 0 && found.FixedBecause != "" {
			// The container has no limit: its recommended size could only be set as a part of the whole pod's size.
			s.why, s.podReason = []string{found.FixedBecause}, found.FixedBecause
		}
	}
	if original.FixedBecause == "" {
		whole.next, whole.rec = found.Size, recordOf(original.Size, found.Size)
	}
}

// podWithoutSizes returns the pod with the base size of each container that may get another one.
func (in *Input) podWithoutSizes(managed []target, sizings []sizing) *corev1.Pod {
	pod := in.Pod
	for i := range sizings {
		s := &sizings[i]
		if !s.wanted || s.base == constraints.SizeOf(&managed[i].container.Resources) {
			continue
		}
		if pod == in.Pod {
			pod = in.Pod.DeepCopy()
		}
		c, _ := constraints.Find(pod, managed[i].container.Name)
		c.Resources.Limits = withMemory(c.Resources.Limits, s.base.Limit)
		c.Resources.Requests = withMemory(c.Resources.Requests, s.base.Request)
	}
	return pod
}

// adopt sets the fitted size, or the base and false if the profile does not allow the fitted size.
func (s *sizing) adopt(t target, fitted constraints.FittedSize) (allowed bool) {
	allowed = true
	s.next, s.why = fitted.Size, append(s.why, fitted.Why...)
	if s.next != s.base {
		if bound, why := bounded(t, s.next, s.base); bound != s.next {
			allowed = false
			s.next, s.why = s.base, append(append(s.why, "the profile does not allow that"), why...)
		}
	}
	s.podReason = strings.Join(fitted.Why, "; ")
	return allowed
}

// size stores the decision about the container's memory, with the reasons.
func (c *ContainerPlan) size(s sizing, w *working) {
	why := strings.Join(s.why, "; ")
	switch {
	case s.ignored != "":
		why = s.ignored
	case !s.wanted: // the size at creation and its reason remain
		why = w.before.Skipped[sizeName]
	default:
		w.memory, c.sized, c.refused = s.next, recordOf(s.base, s.next), s.podReason
		if c.sized != nil {
			c.sized.Why = why
			return
		}
	}
	if why != "" {
		c.skips = append(c.skips, skip{name: sizeName, why: why})
	}
}

// bounded returns the wanted size within the profile's current bounds, and the reasons for a difference.
func bounded(t target, want, base memory.Size) (memory.Size, []string) {
	policy := t.policy.SizePolicy()
	policy.VolumeSizeLimits, policy.SharesLimit = t.volumesHold, t.whole.Limit > 0
	size, why := policy.Bound(want, base)
	return size, why
}

// sizeName is the name of a skipped size among the skipped settings.
const sizeName = "memory size"

// resized returns base with the wanted limit and request, as far as they are set, and no request above the limit.
func resized(base, want memory.Size, guaranteed bool) memory.Size {
	next := base
	if want.Limit > 0 {
		next.Limit = want.Limit
	}
	if want.Request > 0 {
		next.Request = want.Request
	}
	if next.Limit > 0 && (next.Request > next.Limit || guaranteed) {
		next.Request = next.Limit
	}
	return next
}

// recordOf returns the record of a size that was set; nil without a change.
func recordOf(base, next memory.Size) *sizeRecord {
	if next == base {
		return nil
	}
	var rec sizeRecord
	if next.Limit != base.Limit {
		rec.Limit, rec.WasLimit = quantityText(next.Limit), quantityText(base.Limit)
	}
	if next.Request != base.Request {
		rec.Request, rec.WasRequest = quantityText(next.Request), quantityText(base.Request)
	}
	return &rec
}

// ownerBefore returns the owner's memory size of a container, by the record. If the limit is still memfit's and only
// the request changed, for example by another webhook, the recorded size of the owner counts.
func ownerBefore(c *corev1.Container, rec *containerRecord) memory.Size {
	have := constraints.SizeOf(&c.Resources)
	switch {
	case rec == nil || rec.Size == nil:
		return have
	case rec.Size.unchanged(have):
		return rec.Size.previous(have)
	case rec.Size.Limit != "" && rec.Size.Limit == quantityText(have.Limit) && rec.Owner != nil:
		return rec.Owner.size()
	}
	return have
}

// unchanged reports whether the current size is still the recorded one.
func (r *sizeRecord) unchanged(have memory.Size) bool {
	return (r.Limit == "" || r.Limit == quantityText(have.Limit)) &&
		(r.Request == "" || r.Request == quantityText(have.Request))
}

// previous returns the size before memfit changed it; have is the current one.
func (r *sizeRecord) previous(have memory.Size) memory.Size {
	if r.Limit != "" {
		have.Limit = parseQuantity(r.WasLimit)
	}
	if r.Request != "" {
		have.Request = parseQuantity(r.WasRequest)
	}
	return have
}

// size returns the recorded size; zero for a missing record.
func (r *sizeRecord) size() memory.Size {
	if r == nil {
		return memory.Size{}
	}
	return memory.Size{Limit: parseQuantity(r.Limit), Request: parseQuantity(r.Request)}
}

// added reports whether memfit added a request or limit. It never does for a whole pod: such a record is forged.
func (r *sizeRecord) added() bool {
	return r != nil &&
		(r.Limit != "" && parseQuantity(r.WasLimit) == 0 || r.Request != "" && parseQuantity(r.WasRequest) == 0)
}

func (r *sizeRecord) text() string {
	switch {
	case r.Limit == "":
		return "request " + r.Request
	case r.Request == "":
		return "limit " + r.Limit
	}
	return fmt.Sprintf("request %s, limit %s", r.Request, r.Limit)
}

// withMemory returns a copy of list with this memory; 0 removes the entry.
func withMemory(list corev1.ResourceList, b memory.Bytes) corev1.ResourceList {
	out := maps.Clone(list)
	switch {
	case b == 0:
		delete(out, corev1.ResourceMemory)
	case out == nil:
		return corev1.ResourceList{corev1.ResourceMemory: b.Quantity()}
	default:
		out[corev1.ResourceMemory] = b.Quantity()
	}
	return out
}

// quantityText returns the canonical, exact quantity; empty for 0.
func quantityText(b memory.Bytes) string {
	if b == 0 {
		return ""
	}
	return b.Exact()
}

func parseQuantity(s string) memory.Bytes {
	q, err := memory.ParseQuantity(s) // a record can be copied or forged
	if err != nil {
		return 0
	}
	return memory.FromQuantity(q)
}

// guaranteed reports whether the pod was Guaranteed before memfit sized it: every container has CPU and memory limits,
// and its requests are equal or unset. Unmanaged containers count with their current size: this plan drops their
// record.
func (in *Input) guaranteed(managed []target) bool {
	for c := range constraints.Containers(&in.Pod.Spec) {
		var rec *containerRecord
		if slices.ContainsFunc(managed, func(t target) bool { return t.container == c }) {
			rec = in.before.of(c.Name)
		}
		if !fixedCPU(&c.Resources) || !fixedMemory(c, rec) {
			return false
		}
	}
	return len(in.Pod.Spec.Containers) > 0
}

// fixedCPU reports whether a CPU limit is set, and the request is equal or unset.
func fixedCPU(r *corev1.ResourceRequirements) bool {
	limit, hasLimit := r.Limits[corev1.ResourceCPU]
	request, hasRequest := r.Requests[corev1.ResourceCPU]
	return hasLimit && !limit.IsZero() && (!hasRequest || request.Cmp(limit) == 0)
}

// fixedMemory reports the same of the owner's memory size, by rec. A request of 0 counts as set.
func fixedMemory(c *corev1.Container, rec *containerRecord) bool {
	own := ownerBefore(c, rec)
	have, hasRequest := c.Resources.Requests[corev1.ResourceMemory]
	unset := own.Request == 0 && (!hasRequest || !have.IsZero()) // not set, or set by memfit
	return own.Limit > 0 && (unset || own.Request == own.Limit)
}
