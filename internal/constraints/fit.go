// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// DesiredSize is the desired size of one container of a new pod.
type DesiredSize struct {
	Container string
	Base      memory.Size // in the pod's template
	Want      memory.Size // the desired size
	Equal     bool        // the request must equal the limit
	// PodLevelShare is the container's share of the pod-level size. Zero: it has its own limit, or its need is unknown.
	PodLevelShare memory.Size
	NeverLower    bool // the profile forbids decreases
}

// FittedSize is the size that a container can get, and why it differs from the desired size.
type FittedSize struct {
	memory.Size
	Why []string
}

// Fit returns the sizes closest to the desired sizes with which a new pod is admitted and can be scheduled. Bounds of
// LimitRanges and of the whole pod limit the sizes. A size that exceeds a quota or the nodes is replaced by the
// template's, because less than a container needs would take memory without preventing OOM kills. If LimitRanges would
// refuse the result, but not the template's sizes, Fit returns the template's sizes.
//
// whole is the pod-level size (spec.resources) that the owner set. Fit changes it with the sizes of the containers, as
// [WholeOf] does, unless [Whole.FixedBecause] is set: then it limits the containers.
func (f *Facts) Fit(pod *corev1.Pod, whole Whole, asks []DesiredSize) ([]FittedSize, Whole) {
	t := trial{
		facts: f, template: pod, pod: pod, base: whole, asks: asks, out: make([]FittedSize, len(asks)),
		sizes: make(map[string]memory.Size, len(asks)),
	}
	if whole.Size != (memory.Size{}) {
		t.template = WithWhole(pod, whole.Size)
	}
	for i := range asks {
		t.out[i].Size, t.sizes[asks[i].Container] = asks[i].Want, asks[i].Want
	}
	t.updateWhole()
	for i := range asks {
		t.boundContainer(i)
	}
	t.boundTogether()
	t.fitNode()
	t.fitQuota()
	if why := t.refusal(); why != "" {
		t.keepTemplate("another size would be refused: %s", why)
	}
	return t.out, t.whole
}

// trial is a pod with the sizes that [Facts.Fit] has found so far.
type trial struct {
	facts         *Facts
	template, pod *corev1.Pod  // the owner's pod, and a copy with the pod-level size found so far
	base, whole   Whole        // the pod-level sizes of template and pod
	most          memory.Bytes // maximum of a LimitRange for the whole pod; 0: none
	asks          []DesiredSize
	out           []FittedSize           // by index of asks
	sizes         map[string]memory.Size // the sizes of out, by container
}

func (t *trial) set(i int, s memory.Size, why ...string) {
	t.out[i].Size, t.out[i].Why = s, append(t.out[i].Why, why...)
	t.sizes[t.asks[i].Container] = s
	t.updateWhole()
}

// change sets a size and appends the reason, if the size differs.
func (t *trial) change(i int, s memory.Size, format string, args ...any) {
	if before := t.out[i].Size; s != before {
		t.set(i, s, difference(before, s)+": "+fmt.Sprintf(format, args...))
	}
}

// difference describes the change from one size to another: "limit 600Mi instead of 999Mi".
func difference(from, to memory.Size) string {
	var parts []string
	if to.Limit != from.Limit {
		parts = append(parts, fmt.Sprintf("limit %s instead of %s", to.Limit.OrNone(), from.Limit.OrNone()))
	}
	if to.Request != from.Request {
		parts = append(parts, fmt.Sprintf("request %s instead of %s", to.Request.OrNone(), from.Request.OrNone()))
	}
	return strings.Join(parts, ", ")
}

// boundContainer applies the whole pod's limit and the LimitRanges for containers to one container.
func (t *trial) boundContainer(i int) {
	a := &t.asks[i]
	switch own := t.whole; {
	case own.Size == (memory.Size{}):
	case a.Base.Limit == 0 && (a.PodLevelShare == (memory.Size{}) || own.FixedBecause != ""):
		t.set(i, a.Base, "it has no limit of its own, and the whole pod keeps its size: "+
			cmp.Or(own.FixedBecause, "the need of the container is unknown"))
		return
	case own.Limit > 0 && t.out[i].Limit > own.Limit:
		t.change(i, a.with(memory.Size{Limit: own.Limit, Request: t.out[i].Request}),
			"the whole pod keeps its limit of %s (spec.resources.limits.memory): %s", own.Limit,
			cmp.Or(own.FixedBecause, "it is the maximum"))
	}
	for j := range t.facts.limits {
		l := &t.facts.limits[j]
		t.change(i, a.with(l.container.within(t.out[i].Size)), "LimitRange %s has %s for a container", l.name, l.container)
	}
}

// with returns s with a valid request for the container: at most the limit, and equal to it if required.
func (a *DesiredSize) with(s memory.Size) memory.Size {
	if s.Limit > 0 && (s.Request > s.Limit || a.Equal) {
		s.Request = s.Limit
	}
	return s
}

// within returns the nearest size within the bounds. For the ratio it raises the request, because lowering the limit
// may cause an OOM kill.
func (b bounds) within(s memory.Size) memory.Size {
	if s.Limit > 0 {
		s.Limit = max(s.Limit, b.min)
		if b.max > 0 {
			s.Limit = min(s.Limit, b.max)
		}
	}
	if s.Request > 0 {
		s.Request = max(s.Request, b.min)
		if s.Limit > 0 && b.ratio > 0 {
			s.Request = max(s.Request, leastRequest(s.Limit, b.ratio))
		}
	}
	return s
}

// leastRequest returns the least request for a limit and a ratio in thousandths, in whole MiB, but not above the limit.
func leastRequest(limit memory.Bytes, milli int64) memory.Bytes {
	least := memory.Bytes(float64(limit) * 1000 / float64(milli)).CeilTo(memory.MiB)
	return min(least, limit)
}

// String describes the bounds: "a minimum of 64Mi, a maximum of 600Mi".
func (b bounds) String() string {
	var parts []string
	if b.min > 0 {
		parts = append(parts, "a minimum of "+b.min.String())
	}
	if b.max > 0 {
		parts = append(parts, "a maximum of "+b.max.String())
	}
	if b.ratio > 0 {
		parts = append(parts, "a maxLimitRequestRatio of "+times(b.ratio))
	}
	return strings.Join(parts, ", ")
}
