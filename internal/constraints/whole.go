// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Whole is the size of a pod as a whole (spec.resources).
type Whole struct {
	memory.Size
	// Why is what it was instead; "": it is unchanged.
	Why string
	// Stays is why it is unchanged although its containers have other sizes; "": it need not be.
	Stays string
	// Held is why its limit is not lowered to what its containers need; "": it is that, or is not lowered.
	Held string
}

// WholeOf is the size of the whole pod that goes with the sizes of its containers, which asks want; base is the size
// that its owner gave it. What the owner did not set is not added, and what was equal stays equal.
//
// Where every container has a limit, the pod's grows by as much as theirs do together, so that what the owner left
// for all of them to share stays. Containers without a limit are held by the pod's, which is raised to what all of
// them need together; as long as that is not known of one of them, it stays. The limit is never lowered: a kill at
// the limit of a pod does not tell which container needs more, so nothing would raise it again, and a limit reserves
// nothing. The request goes both ways.
//
// The API server takes the result if it takes base: no container has a higher limit than the pod, their requests
// together are not above its request, and that is not above its limit.
func WholeOf(pod *corev1.Pod, base memory.Size, asks []Ask) Whole {
	return wholeFrom(base, changesOf(pod, asks), 0)
}

// RunningWhole is the same for a pod that runs. What its owner gave it may have been changed since, by an unknown
// amount: were its limit to grow by what its containers do each time, and never to shrink, sizes that go up and down
// would drive it up without bound. So it grows no further than to what its containers may take together, and keeps of
// what the owner left beyond that as much as shows whose limit was hit: at the pod's own, a kill does not show which
// container needs more.
func RunningWhole(pod *corev1.Pod, asks []Ask) Whole {
	c := changesOf(pod, asks)
	c.running = true
	return wholeFrom(WholeSize(pod), c, 0)
}

// TooSmall returns why a pod as a whole keeps a size that does not hold these sizes of its containers, which the API
// server refuses; "": it holds them.
func (w *Whole) TooSmall(pod *corev1.Pod, asks []Ask) string {
	if w.Stays == "" {
		return ""
	}
	sizes := make(map[string]memory.Size, len(asks))
	for _, a := range asks {
		if sizes[a.Container] = a.Want; w.Limit > 0 && a.Want.Limit > w.Limit {
			return fmt.Sprintf("container %s would get a limit of %s, and the pod keeps its %s: %s", a.Container, a.Want.Limit,
				w.Limit, w.Stays)
		}
	}
	if sum, most := together(pod, sizes).Request, cmp.Or(w.Request, w.Limit); most > 0 && sum > most {
		return fmt.Sprintf("its containers would request %s, and the pod keeps its %s: %s", sum, most, w.Stays)
	}
	return ""
}

// roomToShare is more than what a pod takes besides its containers, which is less than 1 MiB for pause.
const roomToShare = 16 * memory.MiB

// wholeFrom does not raise the limit above most because of containers without one; 0: nothing holds it.
func wholeFrom(base memory.Size, c changes, most memory.Bytes) Whole {
	stays := Whole{Size: base}
	if base == (memory.Size{}) || !c.any {
		return stays
	}
	if base.Limit > 0 && c.missing != "" {
		stays.Stays = "the limit of the whole pod holds container " + c.missing + ", for which no size is known yet"
		return stays
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

// changes are what becomes of the containers of a pod.
type changes struct {
	any bool
	// from and to are what they asked for together and will; need is to with what those without a limit need.
	from, to, need memory.Size
	largest        memory.Bytes // limit
	// shared: the pod's size is all that holds some container. unrequested: of one of these it is the request, too.
	shared, unrequested bool
	// missing is a container without a limit whose need is unknown.
	missing string
	// never: the request must not be lowered.
	never bool
	// running: base may no longer be what the owner gave.
	running bool
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
	look := func(k *corev1.Container, once bool) {
		size, asked := will[k.Name]
		if !asked {
			size = SizeOf(&k.Resources)
		}
		c.largest = max(c.largest, size.Limit)
		part := parts[k.Name]
		switch {
		case size.Limit > 0:
		case part.Limit > 0:
			c.shared = true
			if size.Request == 0 {
				c.unrequested = true
				size.Request = part.Request
			}
			need[k.Name] = memory.Size{Request: size.Request, Limit: part.Limit}
		case once: // it runs before the others, with all that the pod has
		case c.missing == "":
			c.missing = k.Name
		}
	}
	for i := range pod.Spec.Containers {
		look(&pod.Spec.Containers[i], false)
	}
	for i := range pod.Spec.InitContainers {
		k := &pod.Spec.InitContainers[i]
		look(k, !Sidecar(k))
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
		limit = min(limit, c.to.Limit.Plus(roomToShare))
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

// WholeSize is what the pod sets for all its containers together; zero: nothing.
func WholeSize(pod *corev1.Pod) memory.Size {
	if pod.Spec.Resources == nil {
		return memory.Size{}
	}
	return SizeOf(pod.Spec.Resources)
}

// WithWhole is a copy of the pod with this size as a whole.
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

// follow sets the whole pod to what goes with its containers.
func (t *trial) follow() {
	if t.base.Size == (memory.Size{}) {
		return
	}
	t.whole = t.base
	if t.base.Stays == "" {
		asks := make([]Ask, len(t.asks))
		for i, a := range t.asks {
			asks[i] = a
			asks[i].Want = t.out[i].Size
		}
		t.whole = wholeFrom(t.base.Size, changesOf(t.template, asks), t.most)
	}
	t.pod = WithWhole(t.template, t.whole.Size)
}

// grown: the pod as a whole asks for more than its template.
func (t *trial) grown() bool {
	return t.whole.Limit > t.base.Limit || t.whole.Request > t.base.Request
}
