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

// Ask is the desired size of one container of a new pod.
type Ask struct {
	Container string
	// Base is the size in its template, Want the desired size.
	Base, Want memory.Size
	Equal      bool // the request must equal the limit
	// Part is the share of the pod-level size for a container without a limit. Zero: the container has a limit, or its
	// need is unknown.
	Part  memory.Size
	Never bool // the profile forbids lowering
}

// Fitted is the size that a container can get, and why it differs from the desired one.
type Fitted struct {
	memory.Size
	Why []string
}

// Fit returns the sizes closest to the desired ones with which a new pod is admitted and can be scheduled. It moves a
// size to the bound of a container or pod. If a quota or the nodes are exhausted, the container keeps its template's
// size, because a part of its need would take memory without helping; lower sizes always fit. If LimitRanges would
// refuse the result, but not the template's sizes, the pod keeps its template's sizes.
//
// whole is the size of the whole pod (spec.resources) as its owner set it. It follows the sizes of the containers; see
// [WholeOf]. If it cannot ([Whole.FixedBecause]), it limits the containers.
func (f *Facts) Fit(pod *corev1.Pod, whole Whole, asks []Ask) ([]Fitted, Whole) {
	t := trial{
		facts: f, template: pod, pod: pod, base: whole, asks: asks, out: make([]Fitted, len(asks)),
		sizes: make(map[string]memory.Size, len(asks)),
	}
	if whole.Size != (memory.Size{}) {
		t.template = WithWhole(pod, whole.Size)
	}
	for i := range asks {
		t.out[i].Size, t.sizes[asks[i].Container] = asks[i].Want, asks[i].Want
	}
	t.follow()
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

// trial is a pod with the sizes found so far.
type trial struct {
	facts         *Facts
	template, pod *corev1.Pod // the owner's pod, and the pod with the whole size found so far
	base, whole   Whole
	most          memory.Bytes // maximum of a LimitRange for the whole pod; 0: none
	asks          []Ask
	out           []Fitted
	sizes         map[string]memory.Size // the sizes of out, by container
}

func (t *trial) set(i int, s memory.Size, why ...string) {
	t.out[i].Size, t.out[i].Why = s, append(t.out[i].Why, why...)
	t.sizes[t.asks[i].Container] = s
	t.follow()
}

// change sets a size because of a bound, with the reason.
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

// boundContainer limits one container to the whole pod's limit and the LimitRanges for containers.
func (t *trial) boundContainer(i int) {
	a := &t.asks[i]
	switch own := t.whole; {
	case own.Size == (memory.Size{}):
	case a.Base.Limit == 0 && (a.Part == (memory.Size{}) || own.FixedBecause != ""):
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

// with returns a valid size for the container: no request above the limit, and an equal one if required.
func (a *Ask) with(s memory.Size) memory.Size {
	if s.Limit > 0 && (s.Request > s.Limit || a.Equal) {
		s.Request = s.Limit
	}
	return s
}

// within returns the nearest size within the bounds. For the ratio it raises the request, because a lower limit may
// cause an OOM kill.
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
			s.Request = max(s.Request, ratioOf(s.Limit, b.ratio))
		}
	}
	return s
}

// ratioOf returns the least request for a limit and a ratio in thousandths, in whole MiB, but not above the limit.
func ratioOf(limit memory.Bytes, milli int64) memory.Bytes {
	least := memory.Bytes(float64(limit) * 1000 / float64(milli)).CeilTo(memory.MiB)
	return min(least, limit)
}

// String names the bounds: "a minimum of 64Mi, a maximum of 600Mi".
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
