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
	Why          string // describes its change; "": unchanged
	FixedBecause string // why it must remain unchanged although container sizes change; "": it may change
	Held         string // why its limit is not lowered to its containers' need; "": not the case
}

// WholeOf returns the pod-level size for the desired sizes of its containers; base is the owner's pod-level size. It
// adds nothing that the owner did not set, and keeps equal values equal.
//
// If every container has a limit, the pod's grows by as much as theirs together, which keeps the owner's shared
// remainder. With containers without a limit, it rises to the need of all together; as long as one need is unknown, it
// is unchanged. It never lowers the limit: a kill at the pod's limit does not show which container needs more, so
// nothing would raise it again, and a limit reserves nothing. The request may rise and fall.
//
// If base is valid, so is the result: no container limit above the pod's, the sum of requests not above its request,
// and that not above its limit.
func WholeOf(pod *corev1.Pod, base memory.Size, asks []Ask) Whole {
	return wholeFrom(base, changesOf(pod, asks), 0)
}

// RunningWhole is WholeOf for a running pod, whose size may differ from the owner's by an unknown amount: adding each
// growth of its containers and never lowering would raise it without bound. So its limit grows at most to the sum of
// its containers', plus a small remainder, so that a kill hits a container's limit: one at the pod's does not show
// which container needs more.
func RunningWhole(pod *corev1.Pod, asks []Ask) Whole {
	c := changesOf(pod, asks)
	c.running = true
	return wholeFrom(WholeSize(pod), c, 0)
}

// TooSmall returns why the kept pod-level size is too small for these sizes of its containers; "": it is not.
func (w *Whole) TooSmall(pod *corev1.Pod, asks []Ask) string {
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

// podOverhead exceeds a pod's memory besides its containers: less than 1 MiB for pause.
const podOverhead = 16 * memory.MiB

// wholeFrom raises the limit for containers without one at most to most; 0: no maximum.
func wholeFrom(base memory.Size, c changes, most memory.Bytes) Whole {
	fixed := Whole{Size: base}
	if base == (memory.Size{}) || !c.any {
		return fixed
	}
	if base.Limit > 0 && c.missing != "" {
		fixed.FixedBecause = "the limit of the whole pod holds container " + c.missing + ", for which no size is known yet"
		return fixed
	}
	w := Whole{Size: memory.Size{Limit: c.limit(base.Limit, most)}}
	w.Request = c.request(base, w.Limit)
	if c.shared && c.need.Limit < base.Limit {
		w.Held = "it is the only limit of a container without its own, and an OOM kill does not show which container needs " +
			"more: set a limit on the container, or lower it yourself"
	}
	if w.Size != base {
		w.Why = difference(base, w.Size) + ": it follows its containers"
	}
	return w
}

// changes sums up the changes of a pod's containers.
type changes struct {
	any bool
	// from and to are their sums before and after; need is to plus the need of those without a limit.
	from, to, need memory.Size
	largest        memory.Bytes // limit
	// shared is true if only the pod's size limits some container. unrequested is true if for one of these it is the only
	// request also.
	shared, unrequested bool
	missing             string // a container without a limit whose need is unknown
	never               bool   // the request must not be lowered
	running             bool   // base may differ from the owner's value
}

func changesOf(pod *corev1.Pod, asks []Ask) changes {
	var c changes
	was, will, need := map[string]memory.Size{}, map[string]memory.Size{}, map[string]memory.Size{}
	parts := map[string]memory.Size{}
	for _, a := range asks {
		was[a.Container], will[a.Container], need[a.Container] = a.Base, a.Want, a.Want
		parts[a.Container] = a.Part
		c.any = c.any || a.Want != a.Base || a.Part != (memory.Size{})
		c.never = c.never || a.Never && a.Part != (memory.Size{})
	}
	visit := func(k *corev1.Container, once bool) {
		size, asked := will[k.Name]
		if !asked {
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
		case once: // it runs before the others, with the whole pod's size
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

func (c *changes) request(base memory.Size, limit memory.Bytes) memory.Bytes {
	if base.Request == 0 || base.Request == base.Limit {
		return min(base.Request, 1) * limit
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

// follow sets the pod-level size from its containers.
func (t *trial) follow() {
	if t.base.Size == (memory.Size{}) {
		return
	}
	t.whole = t.base
	if t.base.FixedBecause == "" {
		asks := make([]Ask, len(t.asks))
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
