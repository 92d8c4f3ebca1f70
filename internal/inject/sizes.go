// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
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
	base := w.memory
	if before != nil {
		if !before.stands(base) {
			c.skips = append(c.skips, skip{name: sizeName, why: fmt.Sprintf("the request or limit was changed to %s after memfit had set %s, so it is not touched again",
				base, before.text())})
			return
		}
		base = before.takeBack(base)
	}
	if whole := in.Pod.Spec.Resources; whole != nil && (memoryOf(whole.Limits) > 0 || memoryOf(whole.Requests) > 0) {
		c.skips = append(c.skips, skip{name: sizeName, why: "the pod sets memory for all containers together (spec.resources): size it there"})
		return
	}
	want, why := bounded(t, want, base)
	if w.memory, c.sized = resize(base, want, guaranteed(in.Pod, in.before)); len(why) == 0 {
		return
	}
	if c.sized == nil {
		c.skips = append(c.skips, skip{name: sizeName, why: strings.Join(why, "; ")})
		return
	}
	c.sized.Why = strings.Join(why, "; ")
}

// bounded is a recommended size as the profile allows it now: it may have changed since the size was found.
func bounded(t target, want, base Size) (Size, []string) {
	policy := t.policy.SizePolicy()
	size, why := policy.Bound(recommend.Size(want), recommend.Size(base))
	return Size(size), why
}

// sizeName is what skips about sizes are called in the record.
const sizeName = "memory size"

// resize is base with the wanted memory, and the record of it; nil when nothing changes.
func resize(base, want Size, guaranteed bool) (Size, *sizeRecord) {
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
	if next == base {
		return base, nil
	}
	rec := &sizeRecord{}
	if next.Limit != base.Limit {
		rec.Limit, rec.WasLimit = text(next.Limit), text(base.Limit)
	}
	if next.Request != base.Request {
		rec.Request, rec.WasRequest = text(next.Request), text(base.Request)
	}
	return next, rec
}

// stands reports whether a container still has what the record says memfit wrote.
func (r *sizeRecord) stands(have Size) bool {
	return (r.Limit == "" || r.Limit == text(have.Limit)) && (r.Request == "" || r.Request == text(have.Request))
}

// takeBack is the size as it was before memfit set it.
func (r *sizeRecord) takeBack(have Size) Size {
	if r.Limit != "" {
		have.Limit = parse(r.WasLimit)
	}
	if r.Request != "" {
		have.Request = parse(r.WasRequest)
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

// String is the size as reasons say it.
func (s Size) String() string { return fmt.Sprintf("request %s, limit %s", s.Request, s.Limit) }

func sizeOf(r *corev1.ResourceRequirements) Size {
	return Size{Request: memoryOf(r.Requests), Limit: memoryOf(r.Limits)}
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
	q, err := memory.ParseQuantity(s) // a record can be copied or forged
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
			c := &containers[i]
			if !fixedCPU(&c.Resources) || !fixedMemory(&c.Resources, before.of(c.Name)) {
				return false
			}
		}
		return true
	}
	return len(pod.Spec.Containers) > 0 && every(pod.Spec.Containers) && every(pod.Spec.InitContainers)
}

// fixedCPU reports whether there is a CPU limit and no other request.
func fixedCPU(r *corev1.ResourceRequirements) bool {
	limit, hasLimit := r.Limits[corev1.ResourceCPU]
	request, hasRequest := r.Requests[corev1.ResourceCPU]
	return hasLimit && !limit.IsZero() && (!hasRequest || request.Cmp(limit) == 0)
}

// fixedMemory reports the same of memory, as it was before memfit sized it according to rec. A request of 0 is one, too.
func fixedMemory(r *corev1.ResourceRequirements, rec *containerRecord) bool {
	have := sizeOf(r)
	_, hasRequest := r.Requests[corev1.ResourceMemory]
	if rec != nil && rec.Size != nil && rec.Size.stands(have) {
		have = rec.Size.takeBack(have)
		if rec.Size.Request != "" {
			hasRequest = rec.Size.WasRequest != ""
		}
	}
	return have.Limit > 0 && (!hasRequest || have.Request == have.Limit)
}
