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
	wanted     bool // a size is recommended and may be set
	// left is why a recommended size is ignored; why is the reason for a size other than the recommended one, and short
	// is the same for the creator of the pod.
	left  string
	why   []string
	short string
	part  memory.Size // the share of the whole pod's limit that a container without a limit needs
	never bool        // the profile forbids lowering
}

// wholeSizing is the planned size of the whole pod (spec.resources).
type wholeSizing struct {
	next memory.Size
	rec  *sizeRecord // nil: the owner's size
}

// sizings decides the sizes of all containers before settings are derived from them, because LimitRanges, quotas and
// nodes count the whole pod, whose own size follows them. A pod without requests and limits gets them, and with them a
// QoS class. A Guaranteed pod remains Guaranteed, and no request exceeds its limit.
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

// template returns the size of the whole pod without memfit, and why it must not change.
func (in *Input) template(managed []target, sizings []sizing, whole *wholeSizing) constraints.Whole {
	have := whole.next
	out := constraints.Whole{Size: have}
	if whole.rec != nil && !whole.rec.unchanged(have) {
		out.FixedBecause = fmt.Sprintf("it was changed to %s after memfit had set %s, so it is left alone", have,
			whole.rec.text())
		return out
	}
	for i, t := range managed {
		if before := t.before; before != nil && before.Size != nil && !sizings[i].wanted {
			out.FixedBecause = "it holds what memfit set in container " + t.container.Name + " before"
			return out
		}
	}
	if whole.rec != nil {
		out.Size = whole.rec.takeBack(have)
	}
	return out
}

func (in *Input) sizing(t target, offer Offer, fixed bool) sizing {
	have := constraints.SizeOf(&t.container.Resources)
	s := sizing{base: have, next: have, wanted: true}
	if before := t.before; before != nil && before.Size != nil {
		if !before.Size.unchanged(have) {
			s.wanted = false
			s.left = fmt.Sprintf("the request or limit was changed to %s after memfit had set %s, so it is left alone",
				have, before.Size.text())
			return s
		}
		s.base = before.Size.takeBack(have)
		s.next = s.base
	}
	want := offer.sizeFor(t.program.ID, s.base)
	if want == (memory.Size{}) { // no evidence about this program, or its owner changed the memory
		s.wanted = s.base != have
		return s
	}
	want, s.why = bounded(t, want, s.base)
	if t.whole != (memory.Size{}) && s.base.Limit == 0 {
		s.part, s.never = want, t.policy.SizePolicy().DecreaseNever
		if s.base.Request > 0 && want.Request > 0 {
			s.next.Request = want.Request
		}
		return s
	}
	s.next = resized(s.base, want, fixed)
	return s
}

// fit adapts sizes to namespace and nodes. If the profile does not allow the result, the template's size remains.
func (in *Input) fit(managed []target, sizings []sizing, fixed bool, whole *wholeSizing) {
	template := in.template(managed, sizings, whole)
	var asks []constraints.Ask
	var of []int
	for i, s := range sizings {
		if s.wanted && (s.next != s.base || s.part != (memory.Size{})) {
			policy := managed[i].policy.SizePolicy()
			asks = append(asks, constraints.Ask{
				Container: managed[i].container.Name, Base: s.base, Want: s.next,
				Equal: fixed || policy.RequestEqualsLimit, Part: s.part, Never: s.never,
			})
			of = append(of, i)
		}
	}
	facts := in.Facts
	if facts == nil { // other bounds are unknown, but the pod's own size is visible
		if template.Size == (memory.Size{}) {
			return
		}
		facts = &constraints.Facts{}
	}
	fitted, found := facts.Fit(in.takenBack(managed, sizings), template, asks)
	taken := true
	for j := range fitted {
		if len(fitted[j].Why) > 0 {
			taken = sizings[of[j]].take(managed[of[j]], fitted[j]) && taken
		}
	}
	if !taken && template.Size != (memory.Size{}) { // keep the sizes consistent
		for _, i := range of {
			s := &sizings[i]
			if s.next != s.base {
				s.next, s.why = s.base, append(s.why, "another container of the pod keeps its size")
			}
		}
		found.Size = template.Size
	}
	for _, i := range of {
		if s := &sizings[i]; s.part != (memory.Size{}) && len(s.why) == 0 && found.FixedBecause != "" {
			s.why, s.short = []string{found.FixedBecause}, found.FixedBecause // the whole pod's size was to include it
		}
	}
	if template.FixedBecause == "" {
		whole.next, whole.rec = found.Size, recordOf(template.Size, found.Size)
	}
}

// takenBack returns the pod with the template's sizes of containers that may get another one.
func (in *Input) takenBack(managed []target, sizings []sizing) *corev1.Pod {
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
		c.Resources.Limits = with(c.Resources.Limits, s.base.Limit)
		c.Resources.Requests = with(c.Resources.Requests, s.base.Request)
	}
	return pod
}

// take takes the found size; false if the profile does not allow it.
func (s *sizing) take(t target, fitted constraints.Fitted) (allowed bool) {
	allowed = true
	s.next, s.why = fitted.Size, append(s.why, fitted.Why...)
	if s.next != s.base {
		if bound, why := bounded(t, s.next, s.base); bound != s.next {
			allowed = false
			s.next, s.why = s.base, append(append(s.why, "the profile does not allow that"), why...)
		}
	}
	s.short = strings.Join(fitted.Why, "; ")
	return allowed
}

// size stores the decision about the container's memory, with the reasons.
func (c *ContainerPlan) size(s sizing, w *working) {
	why := strings.Join(s.why, "; ")
	switch {
	case s.left != "":
		why = s.left
	case !s.wanted: // the size at creation and its reason remain
		why = w.before.Skipped[sizeName]
	default:
		w.memory, c.sized, c.refused = s.next, recordOf(s.base, s.next), s.short
		if c.sized != nil {
			c.sized.Why = why
			return
		}
	}
	if why != "" {
		c.skips = append(c.skips, skip{name: sizeName, why: why})
	}
}

// bounded returns a recommended size within the profile's current bounds, which may have changed.
func bounded(t target, want, base memory.Size) (memory.Size, []string) {
	policy := t.policy.SizePolicy()
	policy.VolumesHold, policy.SharesLimit = t.volumesHold, t.whole.Limit > 0
	size, why := policy.Bound(want, base)
	return size, why
}

// sizeName is the name of skipped sizes in the record.
const sizeName = "memory size"

// resized returns base with the wanted memory.
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
		rec.Limit, rec.WasLimit = text(next.Limit), text(base.Limit)
	}
	if next.Request != base.Request {
		rec.Request, rec.WasRequest = text(next.Request), text(base.Request)
	}
	return &rec
}

// ownerBefore returns the memory of a container without what memfit gave it, according to the record. A limit that is
// still memfit's is not the owner's, even if another webhook derived a request from it; the owner's request is then
// the recorded one.
func ownerBefore(c *corev1.Container, rec *containerRecord) memory.Size {
	have := constraints.SizeOf(&c.Resources)
	switch {
	case rec == nil || rec.Size == nil:
		return have
	case rec.Size.unchanged(have):
		return rec.Size.takeBack(have)
	case rec.Size.Limit != "" && rec.Size.Limit == text(have.Limit) && rec.Owner != nil:
		return rec.Owner.size()
	}
	return have
}

// unchanged reports whether a container still has memfit's size in the record.
func (r *sizeRecord) unchanged(have memory.Size) bool {
	return (r.Limit == "" || r.Limit == text(have.Limit)) && (r.Request == "" || r.Request == text(have.Request))
}

// takeBack returns the size before memfit set it.
func (r *sizeRecord) takeBack(have memory.Size) memory.Size {
	if r.Limit != "" {
		have.Limit = parse(r.WasLimit)
	}
	if r.Request != "" {
		have.Request = parse(r.WasRequest)
	}
	return have
}

// size returns the written size; zero for a record without it.
func (r *sizeRecord) size() memory.Size {
	if r == nil {
		return memory.Size{}
	}
	return memory.Size{Limit: parse(r.Limit), Request: parse(r.Request)}
}

// added: the record claims a request or limit that did not exist before, which memfit never adds to a whole pod.
func (r *sizeRecord) added() bool {
	return r != nil && (r.Limit != "" && parse(r.WasLimit) == 0 || r.Request != "" && parse(r.WasRequest) == 0)
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

// with returns a copy of list with its memory set, or removed if 0.
func with(list corev1.ResourceList, b memory.Bytes) corev1.ResourceList {
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

// text returns the canonical, exact quantity; empty for 0.
func text(b memory.Bytes) string {
	if b == 0 {
		return ""
	}
	return b.Exact()
}

func parse(s string) memory.Bytes {
	q, err := memory.ParseQuantity(s) // a record can be copied or forged
	if err != nil {
		return 0
	}
	return memory.FromQuantity(q)
}

// guaranteed reports whether the pod was Guaranteed before memfit sized it: every container has CPU and memory requests
// equal to its limits, or none. Unmanaged containers count with their current size: this plan drops their record.
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

// fixedCPU reports whether there is a CPU limit and no other request.
func fixedCPU(r *corev1.ResourceRequirements) bool {
	limit, hasLimit := r.Limits[corev1.ResourceCPU]
	request, hasRequest := r.Requests[corev1.ResourceCPU]
	return hasLimit && !limit.IsZero() && (!hasRequest || request.Cmp(limit) == 0)
}

// fixedMemory reports the same of memory before memfit sized it according to rec. A request of 0 counts as set.
func fixedMemory(c *corev1.Container, rec *containerRecord) bool {
	own := ownerBefore(c, rec)
	have, hasRequest := c.Resources.Requests[corev1.ResourceMemory]
	unset := own.Request == 0 && (!hasRequest || !have.IsZero()) // not set, or set by memfit
	return own.Limit > 0 && (unset || own.Request == own.Limit)
}
