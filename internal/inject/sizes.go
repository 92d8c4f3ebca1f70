// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
)

// size sets the recommended size, before anything is derived from the limit. The caller passes sizes only for profiles whose
// sizing mode asks for it, so a pod without requests and limits gets them, and with them a QoS class: that is what was asked for.
// A Guaranteed pod stays Guaranteed (request = limit), and a request never exceeds its limit, which the API server would refuse.
func (c *containerPlan) size(in Input, t target, w *working) {
	want, before := in.Sizes[t.container.Name], w.before.Size
	if want == (Size{}) { // what was set at creation stays, and so does the reason why nothing was
		if why := w.before.Skipped[sizeName]; why != "" {
			c.skips = append(c.skips, skip{name: sizeName, why: why})
		}
		return
	}
	base := w.resources
	if before != nil {
		if !before.stands(base) {
			c.skips = append(c.skips, skip{name: sizeName, why: fmt.Sprintf("the request or limit was changed to %s after memfit had set %s, so it is not touched again",
				sizeText(base), before.text())})
			return
		}
		base = before.takeBack(base)
	}
	if whole := in.Pod.Spec.Resources; whole != nil && (memoryOf(whole.Limits) > 0 || memoryOf(whole.Requests) > 0) {
		c.skips = append(c.skips, skip{name: sizeName, why: "the pod sets memory for all containers together (spec.resources): size it there"})
		return
	}
	w.resources, c.sized = resize(base, want, guaranteed(in.Pod, in.before))
}

// sizeName is what skips about sizes are called in the record.
const sizeName = "memory size"

// resize is base with the wanted memory, and the record of it; nil when nothing changes.
func resize(base corev1.ResourceRequirements, want Size, guaranteed bool) (corev1.ResourceRequirements, *sizeRecord) {
	limit, request := memoryOf(base.Limits), memoryOf(base.Requests)
	newLimit, newRequest := limit, request
	if want.Limit > 0 {
		newLimit = want.Limit
	}
	if want.Request > 0 {
		newRequest = want.Request
	}
	if newLimit > 0 && (newRequest > newLimit || guaranteed) {
		newRequest = newLimit
	}
	if newLimit == limit && newRequest == request {
		return base, nil
	}
	rec := &sizeRecord{}
	if newLimit != limit {
		rec.Limit, rec.WasLimit = text(newLimit), text(limit)
		base.Limits = with(base.Limits, newLimit)
	}
	if newRequest != request {
		rec.Request, rec.WasRequest = text(newRequest), text(request)
		base.Requests = with(base.Requests, newRequest)
	}
	return base, rec
}

// stands reports whether resources still have what the record says memfit wrote.
func (r *sizeRecord) stands(have corev1.ResourceRequirements) bool {
	return (r.Limit == "" || r.Limit == text(memoryOf(have.Limits))) && (r.Request == "" || r.Request == text(memoryOf(have.Requests)))
}

// takeBack is resources as they were before memfit sized them.
func (r *sizeRecord) takeBack(have corev1.ResourceRequirements) corev1.ResourceRequirements {
	if r.Limit != "" {
		have.Limits = with(have.Limits, parse(r.WasLimit))
	}
	if r.Request != "" {
		have.Requests = with(have.Requests, parse(r.WasRequest))
	}
	return have
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

func sizeText(have corev1.ResourceRequirements) string {
	return fmt.Sprintf("request %s, limit %s", memoryOf(have.Requests), memoryOf(have.Limits))
}

// with is list with its memory set, or removed when it is 0, in a map of its own.
func with(list corev1.ResourceList, b memory.Bytes) corev1.ResourceList {
	out := maps.Clone(list)
	if b == 0 {
		delete(out, corev1.ResourceMemory)
		return out
	}
	if out == nil {
		out = make(corev1.ResourceList, 1)
	}
	out[corev1.ResourceMemory] = b.Quantity()
	return out
}

// text is the canonical, exact quantity; empty for 0.
func text(b memory.Bytes) string {
	if b == 0 {
		return ""
	}
	q := b.Quantity()
	return q.String()
}

func parse(s string) memory.Bytes {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return 0
	}
	return memory.FromQuantity(q)
}

// guaranteed reports whether every container of the pod, as it was before memfit sized it, has CPU and memory requests equal to
// its limits, which makes the kubelet treat it as Guaranteed. A request that is not set is taken from the limit by the API server.
func guaranteed(pod *corev1.Pod, before *record) bool {
	every := func(containers []corev1.Container) bool {
		for i := range containers {
			have := containers[i].Resources
			if rec := before.of(containers[i].Name); rec != nil && rec.Size != nil && rec.Size.stands(have) {
				have = rec.Size.takeBack(have)
			}
			if !fixed(have, corev1.ResourceCPU) || !fixed(have, corev1.ResourceMemory) {
				return false
			}
		}
		return true
	}
	return len(pod.Spec.Containers) > 0 && every(pod.Spec.Containers) && every(pod.Spec.InitContainers)
}

// fixed reports whether the resource has a limit and no other request.
func fixed(r corev1.ResourceRequirements, name corev1.ResourceName) bool {
	limit, hasLimit := r.Limits[name]
	request, hasRequest := r.Requests[name]
	return hasLimit && !limit.IsZero() && (!hasRequest || request.Cmp(limit) == 0)
}
