// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Ask is the size that one container of a new pod should get.
type Ask struct {
	Container string
	// Base is what its template asks for, Want what it should have instead.
	Base, Want memory.Size
	// Equal: the request has to equal the limit.
	Equal bool
	// Part is what a container without a limit needs of the size of the whole pod, which holds it. It is given no limit
	// of its own. Zero: it has a limit, or its need is unknown.
	Part memory.Size
	// Never: its owner wants nothing lowered.
	Never bool
}

// Fitted is the size that a container can get, and why it is not the one that was asked for.
type Fitted struct {
	memory.Size
	Why []string
}

// Fit finds sizes with which a new pod is admitted and can be scheduled, as close to the requested ones as that
// allows. What a bound per container or per pod does not allow is brought to the bound. Where a quota or the nodes are
// exhausted, the container keeps what its template asks for: a part of what it needs would take memory and help no
// pod. Sizes below the template's need less than it does, so they always pass there. If LimitRanges would refuse the
// pod even so, but not with its template's sizes, it keeps those.
//
// The size of the whole pod (spec.resources), which whole has as its owner gave it, follows its containers; see
// [WholeOf]. Where it cannot ([Whole.Stays]), they stay within it.
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
		t.keepTemplate("with another size it would be refused: %s", why)
	}
	return t.out, t.whole
}

// trial is a pod with the sizes found so far.
type trial struct {
	facts         *Facts
	template, pod *corev1.Pod // the pod as its owner wants it, and with the size of the whole that was found
	base, whole   Whole
	most          memory.Bytes // what a LimitRange allows the whole pod; 0: anything
	asks          []Ask
	out           []Fitted
	sizes         map[string]memory.Size // the same by container
}

func (t *trial) set(i int, s memory.Size, why ...string) {
	t.out[i].Size, t.out[i].Why = s, append(t.out[i].Why, why...)
	t.sizes[t.asks[i].Container] = s
	t.follow()
}

// change sets a size that a bound asks for, with the reason.
func (t *trial) change(i int, s memory.Size, format string, args ...any) {
	if before := t.out[i].Size; s != before {
		t.set(i, s, difference(before, s)+": "+fmt.Sprintf(format, args...))
	}
}

// difference is what changes from one size to another: "limit 600Mi instead of 999Mi".
func difference(from, to memory.Size) string {
	text := ""
	if to.Limit != from.Limit {
		text = fmt.Sprintf("limit %s instead of %s", orNone(to.Limit), orNone(from.Limit))
	}
	if to.Request != from.Request {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("request %s instead of %s", orNone(to.Request), orNone(from.Request))
	}
	return text
}

func orNone(b memory.Bytes) string {
	if b == 0 {
		return "none"
	}
	return b.String()
}

// boundContainer brings one container to the limit of the whole pod and to the LimitRanges for containers.
func (t *trial) boundContainer(i int) {
	a := &t.asks[i]
	switch own := t.whole; {
	case own.Size == (memory.Size{}):
	case a.Base.Limit == 0 && (a.Part == (memory.Size{}) || own.Stays != ""):
		t.set(i, a.Base, "it has no limit of its own, and the whole pod keeps its size: "+
			cmp.Or(own.Stays, "the need of the container is unknown"))
		return
	case own.Limit > 0 && t.out[i].Limit > own.Limit:
		t.change(
			i, a.with(memory.Size{Limit: own.Limit, Request: t.out[i].Request}),
			"the whole pod keeps its limit of %s (spec.resources.limits.memory): %s", own.Limit,
			cmp.Or(own.Stays, "it is at its bound"),
		)
	}
	for j := range t.facts.limits {
		l := &t.facts.limits[j]
		t.change(i, a.with(l.container.within(t.out[i].Size)), "LimitRange %s has %s for a container", l.name, l.container)
	}
}

// with is a size that keeps what the container needs of it: no request above the limit, and one that equals it where it
// has to.
func (a *Ask) with(s memory.Size) memory.Size {
	if s.Limit > 0 && (s.Request > s.Limit || a.Equal) {
		s.Request = s.Limit
	}
	return s
}

// within is the nearest size that the bounds allow. For the ratio the request is raised: a lower limit may kill.
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

// ratioOf is the least request with which a limit keeps a ratio in thousandths, in whole MiB, but not above the limit.
func ratioOf(limit memory.Bytes, milli int64) memory.Bytes {
	least := memory.Bytes(float64(limit) * 1000 / float64(milli)).CeilTo(memory.MiB)
	return min(least, limit)
}

// String names the bounds: "a minimum of 64Mi, a maximum of 600Mi".
func (b bounds) String() string {
	text := ""
	add := func(format string, args ...any) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf(format, args...)
	}
	if b.min > 0 {
		add("a minimum of %s", b.min)
	}
	if b.max > 0 {
		add("a maximum of %s", b.max)
	}
	if b.ratio > 0 {
		add("a maxLimitRequestRatio of %s", times(b.ratio))
	}
	return text
}
