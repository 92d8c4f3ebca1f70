// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

// boundTogether lowers containers until the pod is within its bounds. It begins with the last container, because the
// first is usually the application.
func (t *trial) boundTogether() {
	for j := range t.facts.limits {
		l := &t.facts.limits[j]
		if l.pod.max > 0 {
			t.lowerUntil(func() memory.Bytes { return Total(t.pod, t.sizes).Limit.Minus(l.pod.max) }, t.lowerLimit,
				fmt.Sprintf("LimitRange %s has a maximum of %s for a pod", l.name, l.pod.max))
			t.most = least(t.most, l.pod.max)
			t.updateWhole()
		}
	}
	// Without a pod-level request, the containers' requests together must not exceed the pod-level limit.
	if own := cmp.Or(t.whole.Request, t.whole.Limit); own > 0 {
		list := "requests"
		if t.whole.Request == 0 {
			list = "limits"
		}
		t.lowerUntil(func() memory.Bytes {
			return together(t.pod, t.sizes).Request.Minus(cmp.Or(t.whole.Request, t.whole.Limit))
		}, t.lowerRequest, fmt.Sprintf("the whole pod keeps %s for all requests (spec.resources.%s.memory): %s", own, list,
			cmp.Or(t.whole.FixedBecause, "it is the maximum")))
	}
}

// lowerUntil lowers containers, one after another, until excess is 0. lower returns the size of container i lowered by
// an amount.
func (t *trial) lowerUntil(excess func() memory.Bytes, lower func(i int, by memory.Bytes) memory.Size, why string) {
	for i := range slices.Backward(t.asks) {
		over := excess()
		if over <= 0 {
			return
		}
		t.change(i, lower(i, over), "%s", why)
	}
}

// lowerLimit and lowerRequest do not lower a value below the template's.
func (t *trial) lowerLimit(i int, by memory.Bytes) memory.Size {
	s, a := t.out[i].Size, &t.asks[i]
	if s.Limit <= a.Base.Limit {
		return s
	}
	s.Limit = max(s.Limit.Minus(by), a.Base.Limit)
	return a.with(s)
}

func (t *trial) lowerRequest(i int, by memory.Bytes) memory.Size {
	s, a := t.out[i].Size, &t.asks[i]
	request := admitted(s).Request // a missing request equals the limit
	if lower := max(request.Minus(by), min(admitted(a.Base).Request, request)); lower < request {
		s.Request = lower
	}
	return s
}

// fitNode keeps the template's requests if the new ones exceed every node, or a pod with them was unschedulable.
func (t *trial) fitNode() {
	if refused := t.facts.Refused; refused > 0 && t.need().Request >= refused {
		t.keepRequests("a pod that requests %s was unschedulable", refused)
	}
	const why = "the pod would request %s, but %s has only %s allocatable"
	node, is := t.facts.LargestNode, cmp.Or(t.facts.NodeDescription, "the largest node")
	if need := t.need().Request; node > 0 && need > node {
		t.keepRequests(why, need, is, node)
	}
	if need := t.need().Request; node > 0 && need > node && t.grown() {
		t.keepTemplate(why, need, is, node)
	}
}

// fitQuota keeps the template's sizes where raised sizes exceed a quota.
func (t *trial) fitQuota() {
	q := t.facts.Quota
	if need := t.need(); !q.Holds(memory.Size{Limit: need.Limit}) {
		t.undoRaises("ResourceQuota %s leaves %s of limits.memory, but the pod would need %s", q.Name, FormatUnused(q.Limits),
			need.Limit)
	}
	if need := t.need(); !q.Holds(memory.Size{Request: need.Request}) {
		t.keepRequests("ResourceQuota %s leaves %s of requests.memory, but the pod would need %s", q.Name,
			FormatUnused(q.Requests), need.Request)
	}
	if need := t.need(); !q.Holds(need) && t.grown() {
		t.keepTemplate("ResourceQuota %s does not allow a pod with request %s, limit %s", q.Name, need.Request, need.Limit)
	}
}

func (t *trial) need() memory.Size { return Need(t.pod, t.sizes) }

// keepRequests keeps the template's requests where they are lower than the new ones. The limit is kept with the request
// if the template has no request, or the request must equal the limit.
func (t *trial) keepRequests(format string, args ...any) {
	for i := range t.asks {
		s, a := t.out[i].Size, &t.asks[i]
		switch {
		case admitted(s).Request <= admitted(a.Base).Request:
		case a.Equal, a.Base.Request == 0:
			t.change(i, a.Base, format, args...)
		default:
			s.Request = a.Base.Request
			t.change(i, s, format, args...)
		}
	}
}

// undoRaises keeps the template's size of containers whose limit would rise.
func (t *trial) undoRaises(format string, args ...any) {
	for i := range t.asks {
		if a := &t.asks[i]; t.out[i].Limit > a.Base.Limit {
			t.change(i, a.Base, format, args...)
		}
	}
}

// refusal returns why LimitRanges refuse the pod; "": they admit it, or they also refuse the template's sizes.
func (t *trial) refusal() string {
	why, base := t.facts.Refusal(t.pod, t.sizes), make(map[string]memory.Size, len(t.asks))
	for _, a := range t.asks {
		base[a.Container] = a.Base
	}
	if why != "" && t.facts.Refusal(t.template, base) != "" {
		return ""
	}
	return why
}

// keepTemplate keeps all of the template's sizes, because growth of the pod-level size cannot be undone in part.
func (t *trial) keepTemplate(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	t.base.FixedBecause = cmp.Or(t.base.FixedBecause, why)
	for i := range t.asks {
		t.change(i, t.asks[i].Base, "%s", why)
	}
	t.updateWhole()
}

// FormatUnused formats the unused part of a quota. It is "nothing" for [Exhausted].
func FormatUnused(left memory.Bytes) string {
	if left <= Exhausted {
		return "nothing"
	}
	return left.String()
}
