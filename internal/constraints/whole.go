// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Whole is the pod-level size (spec.resources).
type Whole struct {
	memory.Size
	Why          string // describes the change; "": unchanged
	FixedBecause string // why the size must remain unchanged although container sizes change; "": it may change
	KeptBecause  string // why the limit remains above what the containers need; "": it does not
}

// WholeOf returns the pod-level size for the desired sizes of the pod's containers; base is the owner's pod-level size.
// A limit or request that the owner did not set remains unset, and equal values remain equal.
//
// If every container has a limit, the pod's limit grows as much as all of these together, which keeps the owner's
// shared remainder. Otherwise it rises to the need of all containers together; while any need is unknown, it is
// unchanged. The limit never falls: a kill at the pod's limit does not show which container needs more, so nothing
// would raise the limit again, and a limit reserves nothing. The request may rise and fall.
//
// If base is valid, so is the result: no container limit exceeds the pod's limit, the sum of requests does not exceed
// the pod's request, and the pod's request does not exceed its limit.
func WholeOf(pod *corev1.Pod, base memory.Size, asks []DesiredSize) Whole {
	return wholeFrom(base, changesOf(pod, asks), 0)
}

// RunningWhole is [WholeOf] for a running pod. Its limit may include earlier growth of its containers, so adding each
// growth would raise it without bound. It therefore rises at most to the sum of the container limits plus a remainder:
// with the remainder, OOM kills occur at a container's limit, which shows the container that needs more.
func RunningWhole(pod *corev1.Pod, asks []DesiredSize) Whole {
	c := changesOf(pod, asks)
	c.running = true
	return wholeFrom(WholeSize(pod), c, 0)
}

// TooSmall returns why an unchanged pod-level size is too small for the desired sizes of its containers; "": it is not.
func (w *Whole) TooSmall(pod *corev1.Pod, asks []DesiredSize) string {
	if w.FixedBecause == "" {
		return ""
	}
	sizes := make(map[string]memory.Size, len(asks))
	for _, a := range asks {
		if sizes[a.Container] = a.Want; w.Limit > 0 && a.Want.Limit > w.Limit {
			return fmt.Sprintf("container %s would get a limit of %s, and the pod keeps its %s: %s", a.Container, a.Want.Limit,
				w.Limit, w.FixedBecause)
		}
	}
	if sum, most := together(pod, sizes).Request, cmp.Or(w.Request, w.Limit); most > 0 && sum > most {
		return fmt.Sprintf("its containers would request %s, and the pod keeps its %s: %s", sum, most, w.FixedBecause)
	}
	return ""
}

// podOverhead is more than the memory of a pod besides its containers: the pause process takes less than 1 MiB.
const podOverhead = 16 * memory.MiB

// wholeFrom returns the pod-level size after changes. most is the maximum for a raised limit; 0: no maximum.
func wholeFrom(base memory.Size, c changes, most memory.Bytes) Whole {
	fixed := Whole{Size: base}
	if base == (memory.Size{}) || !c.any {
		return fixed
	}
	if base.Limit > 0 && c.missing != "" {
		fixed.FixedBecause = "the limit of the whole pod is the only limit of container " + c.missing + ", whose need is " +
			"unknown"
		return fixed
	}
	w := Whole{Size: memory.Size{Limit: c.limit(base.Limit, most)}}
	w.Request = c.request(base, w.Limit)
	if c.shared && c.need.Limit < base.Limit {
		w.KeptBecause = "it is the only limit of at least one container, and an OOM kill does not show which container " +
			"needs more: set a limit on every container, or lower the pod's limit yourself"
	}
	if w.Size != base {
		w.Why = difference(base, w.Size) + ": it follows its containers"
	}
	return w
}

// changes sums up the changes of a pod's containers.
type changes struct {
	any         bool
	from, to    memory.Size  // sums of the sizes before and after the changes
	need        memory.Size  // like to, with the needs of containers without a limit
	largest     memory.Bytes // container limit
	shared      bool         // some container has only the pod-level limit
	unrequested bool         // some such container has only the pod-level request as well
	missing     string       // a container without a limit whose need is unknown
	never       bool         // the request must not be lowered
	running     bool         // base may differ from the owner's value
}

// changesOf sums up the asks. Containers without an ask keep their size.
func changesOf(pod *corev1.Pod, asks []DesiredSize) changes {
	var c changes
	was, will, need := map[string]memory.Size{}, map[string]memory.Size{}, map[string]memory.Size{}
	parts := map[string]memory.Size{}
	for _, a := range asks {
		was[a.Container], will[a.Container], need[a.Container] = a.Base, a.Want, a.Want
		parts[a.Container] = a.PodLevelShare
		c.any = c.any || a.Want != a.Base || a.PodLevelShare != (memory.Size{})
		c.never = c.never || a.NeverLower && a.PodLevelShare != (memory.Size{})
	}
	visit := func(k *corev1.Container, once bool) { // once: k is an init container that ends
		size, found := will[k.Name]
		if !found {
			size = SizeOf(&k.Resources)
		}
		c.largest = max(c.largest, size.Limit)
		part := parts[k.Name]
		switch {
		case size.Limit > 0:
		case part != (memory.Size{}):
			if c.shared = true; part.Limit == 0 && !once {
				c.missing = cmp.Or(c.missing, k.Name)
			}
			if size.Request == 0 {
				c.unrequested = true
				size.Request = part.Request
			}
			need[k.Name] = memory.Size{Request: size.Request, Limit: part.Limit}
		case once: // k runs before the others, and can use the whole pod's size
		case c.missing == "":
			c.missing = k.Name
		}
	}
	for i := range pod.Spec.Containers {
		visit(&pod.Spec.Containers[i], false)
	}
	for i := range pod.Spec.InitContainers {
		k := &pod.Spec.InitContainers[i]
		visit(k, !Sidecar(k))
	}
	c.from, c.to, c.need = together(pod, was), together(pod, will), together(pod, need)
	return c
}

// limit returns the new pod-level limit.
func (c *changes) limit(base, most memory.Bytes) memory.Bytes {
	if base == 0 {
		return 0
	}
	limit := base.Plus(c.to.Limit).Minus(c.from.Limit)
	switch {
	case c.shared:
		limit = c.need.Limit
	case c.running:
		limit = min(limit, c.to.Limit.Plus(podOverhead))
	}
	limit = max(limit, base)
	if most > 0 {
		limit = min(limit, max(most, base))
	}
	return max(limit, c.largest, c.to.Request)
}

// request returns the new pod-level request for a new pod-level limit.
func (c *changes) request(base memory.Size, limit memory.Bytes) memory.Bytes {
	if base.Request == 0 {
		return 0
	}
	if base.Request == base.Limit {
		return limit
	}
	request := base.Request.Plus(c.to.Request).Minus(c.from.Request)
	if c.unrequested {
		request = c.need.Request
	}
	if c.never {
		request = max(request, base.Request)
	}
	if request = max(request, c.to.Request); limit > 0 {
		request = min(request, limit)
	}
	return request
}

// WholeSize returns the pod-level size; zero: not set.
func WholeSize(pod *corev1.Pod) memory.Size {
	if pod.Spec.Resources == nil {
		return memory.Size{}
	}
	return SizeOf(pod.Spec.Resources)
}

// WithWhole returns a copy of the pod with this pod-level size.
func WithWhole(pod *corev1.Pod, whole memory.Size) *corev1.Pod {
	p := *pod
	p.Spec.Resources = &corev1.ResourceRequirements{Limits: listOf(whole.Limit), Requests: listOf(whole.Request)}
	return &p
}

func listOf(b memory.Bytes) corev1.ResourceList {
	if b == 0 {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceMemory: b.Quantity()}
}

// updateWhole sets the pod-level size from the sizes of its containers.
func (t *trial) updateWhole() {
	if t.base.Size == (memory.Size{}) {
		return
	}
	t.whole = t.base
	if t.base.FixedBecause == "" {
		asks := make([]DesiredSize, len(t.asks))
		for i, a := range t.asks {
			asks[i] = a
			asks[i].Want = t.out[i].Size
		}
		t.whole = wholeFrom(t.base.Size, changesOf(t.template, asks), t.most)
	}
	t.pod = WithWhole(t.template, t.whole.Size)
}

// grown reports whether the pod-level size exceeds the template's.
func (t *trial) grown() bool {
	return t.whole.Limit > t.base.Limit || t.whole.Request > t.base.Request
}
