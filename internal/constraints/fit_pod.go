// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

// boundTogether reduces the containers to the pod's bounds, the last first: the first is usually the application.
func (t *trial) boundTogether() {
	for j := range t.facts.limits {
		l := &t.facts.limits[j]
		if l.pod.max > 0 {
			t.giveBack(func() memory.Bytes { return Total(t.pod, t.sizes).Limit.Minus(l.pod.max) }, t.lowerLimit,
				fmt.Sprintf("LimitRange %s has a maximum of %s for a pod", l.name, l.pod.max))
			t.most = least(t.most, l.pod.max)
			t.follow()
		}
	}
	// without a request, the API server uses the containers'
	if own := cmp.Or(t.whole.Request, t.whole.Limit); own > 0 {
		list := "requests"
		if t.whole.Request == 0 {
			list = "limits"
		}
		t.giveBack(func() memory.Bytes {
			return together(t.pod, t.sizes).Request.Minus(cmp.Or(t.whole.Request, t.whole.Limit))
		}, t.lowerRequest, fmt.Sprintf("the whole pod keeps %s for all requests (spec.resources.%s.memory): %s", own, list,
			cmp.Or(t.whole.FixedBecause, "it is the maximum")))
	}
}

// giveBack lowers containers one after the other until the excess is gone.
func (t *trial) giveBack(excess func() memory.Bytes, lower func(i int, by memory.Bytes) memory.Size, why string) {
	for i := range slices.Backward(t.asks) {
		over := excess()
		if over <= 0 {
			return
		}
		t.change(i, lower(i, over), "%s", why)
	}
}

// lowerLimit and lowerRequest stop at the template's value.
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
	asked := admitted(s).Request // a missing one is the limit
	if least := max(asked.Minus(by), min(admitted(a.Base).Request, asked)); least < asked {
		s.Request = least
	}
	return s
}

// fitNode keeps the template's requests if no node could hold the new ones, or none took as much.
func (t *trial) fitNode() {
	if refused := t.facts.Refused; refused > 0 && t.need().Request >= refused {
		t.keepRequests("no node took a pod that requests %s", refused)
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

// fitQuota drops raises that exceed a quota.
func (t *trial) fitQuota() {
	q := t.facts.Quota
	if need := t.need(); !q.Holds(memory.Size{Limit: need.Limit}) {
		t.keepRaised("ResourceQuota %s leaves %s of limits.memory, and the pod would take %s", q.Name, Left(q.Limits),
			need.Limit)
	}
	if need := t.need(); !q.Holds(memory.Size{Request: need.Request}) {
		t.keepRequests("ResourceQuota %s leaves %s of requests.memory, and the pod would take %s", q.Name,
			Left(q.Requests), need.Request)
	}
	if need := t.need(); !q.Holds(need) && t.grown() {
		t.keepTemplate("ResourceQuota %s does not allow a pod with request %s, limit %s", q.Name, need.Request, need.Limit)
	}
}

func (t *trial) need() memory.Size { return Need(t.pod, t.sizes) }

// keepRequests keeps the template's request if lower; and the limit, if the template has no request or both are equal.
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

// keepRaised keeps the template's size of containers with a higher limit.
func (t *trial) keepRaised(format string, args ...any) {
	for i := range t.asks {
		if a := &t.asks[i]; t.out[i].Limit > a.Base.Limit {
			t.change(i, a.Base, format, args...)
		}
	}
}

// refusal returns why the pod would not be admitted; "": it would, or its template would not either.
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

// keepTemplate resets the pod to the template's sizes: growth for containers without a limit cannot be undone in part.
func (t *trial) keepTemplate(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	t.base.FixedBecause = cmp.Or(t.base.FixedBecause, why)
	for i := range t.asks {
		t.change(i, t.asks[i].Base, "%s", why)
	}
	t.follow()
}

// Left formats an unused quota: [Exhausted], a byte, is 0.
func Left(left memory.Bytes) string {
	if left <= Exhausted {
		return "nothing"
	}
	return left.String()
}
