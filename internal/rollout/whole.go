// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// WholePod is the key of the pod-level size (spec.resources) in maps of sizes by container, so that this size is
// requested, followed and rolled back like theirs. No container has this name.
const WholePod = ""

// Whole is the pod-level size.
type Whole struct {
	Spec         memory.Size // in the pod's spec
	Actual       memory.Size // in the pod's status
	FixedBecause string      // why the size cannot be changed while the pod runs; empty: it can be
	Young        bool        // the kubelet has not reported the size yet; FixedBecause may be empty when it has
	// Follow returns the pod-level size for new sizes of some containers, or why that size is not possible. The other
	// containers keep their sizes. parts holds the shares that containers without a limit need.
	Follow func(sizes, parts map[string]memory.Size) (to memory.Size, refused Verdict)
}

// limited reports whether there is a pod-level limit, which also determines the QoS class.
func (p *Pod) limited() bool { return p.Whole != nil && p.Whole.Spec.Limit > 0 }

// follows reports whether there is a pod-level size that can be changed.
func (p *Pod) follows() bool { return p.Whole != nil && p.Whole.FixedBecause == "" }

// parts returns the shares of the pod-level size that containers without a limit need.
func (d *decider) parts(pod *Pod) map[string]memory.Size {
	parts := map[string]memory.Size{}
	for _, c := range pod.Containers {
		if desired, found := d.Desired[c.Key()]; found && c.Shared && !c.Done {
			size := desired.Recommendation.Size
			parts[c.Name], _ = desired.Policy.Bound(size, size)
		}
	}
	return parts
}

// sharedNeed returns the pod-level limit that a container without a limit needs, and whether it is worth a change.
func (d *decider) sharedNeed(pod *Pod, c Container) (limit memory.Bytes, needed bool) {
	if !c.Shared || !pod.follows() {
		return 0, false
	}
	sizes := map[string]memory.Size{}
	for _, other := range pod.Containers {
		if !other.Shared {
			sizes[other.Name], _ = d.target(pod, other)
		}
	}
	to, _ := pod.Whole.Follow(sizes, d.parts(pod))
	now := memory.Size{Limit: pod.Whole.Spec.Limit}
	to.Request = 0
	return to.Limit, to.Limit > now.Limit && recommend.Differs(now, to, d.Desired[c.Key()].Policy)
}

// addWhole adds the pod-level size to new sizes of containers, or returns why that size is refused and whether an
// eviction may help.
func (d *decider) addWhole(pod *Pod, sizes map[string]memory.Size) (refused Verdict, evictionHelps bool) {
	if !pod.follows() || len(sizes) == 0 {
		return Verdict{}, false
	}
	now := pod.Whole.Spec
	to, refused := pod.Whole.Follow(sizes, d.parts(pod))
	if refused == (Verdict{}) && to != now {
		refused, evictionHelps = d.refusal(d.wholeChange(pod, sizes, to))
	}
	if refused != (Verdict{}) {
		refused.Message = fmt.Sprintf("pod %s as a whole (spec.resources): %s", pod.Name, refused.Message)
	} else if to != now {
		sizes[WholePod] = to
	}
	return refused, evictionHelps
}

// wholeChange returns the change of the pod-level size. Quotas and nodes count this size, not those of the containers.
func (d *decider) wholeChange(pod *Pod, sizes map[string]memory.Size, to memory.Size) *change {
	ch := &change{kind: podSize, pod: pod, from: pod.Whole.Spec, to: to, nodeSize: pod.NodeSize, sizes: sizes}
	for _, c := range pod.sized(sizes) {
		ch.Quota = d.Desired[c.Key()].Quota // the same for all containers
		ch.urgent = ch.urgent || d.changeOf(pod, c, sizes[c.Name], false).urgent
	}
	return ch
}

// boundByWhole bounds a new size by a pod-level size that cannot be changed, and reports whether all of it fits.
func (d *decider) boundByWhole(pod *Pod, c Container, to memory.Size) (fits memory.Size, all bool) {
	if pod.Whole == nil || pod.follows() {
		return to, true
	}
	policy := d.Desired[c.Key()].Policy
	policy.PodLimit, policy.PodRequest = c.PodLimit, c.PodRequest
	size, _ := policy.Bound(to, d.withoutLoans(pod, c))
	if size.Request == 0 {
		size.Request = c.Spec.Request
	}
	return size, size == to
}

// inWhole returns the part of a container's size that fits in a pod-level size that cannot be changed. worthIt: this
// part is worth a change. evictionHelps: a new pod may allow more.
func (d *decider) inWhole(pod *Pod, c Container, to memory.Size) (fits memory.Size, worthIt, evictionHelps bool) {
	fits, all := d.boundByWhole(pod, c, to)
	if all {
		return to, true, false
	}
	before := d.refusedInPlace(d.changeOf(pod, c, to, false)) // the API server explains more
	refused := cmp.Or(before, refuse(v1alpha1.ReasonPodLimit, "%s does not fit in the whole pod (spec.resources), "+
		"which keeps its %s: %s", sizeWords(to), sizeWords(pod.Whole.Spec), pod.Whole.FixedBecause))
	d.noteRefusal(refused.Reason, d.podPrefix(pod, c)+refused.Message)
	worthIt = recommend.Differs(currentSize(c), fits, d.Desired[c.Key()].Policy)
	return fits, worthIt, !pod.Whole.Young || before != (Verdict{})
}

func sizeWords(s memory.Size) string {
	return fmt.Sprintf("limit %s, request %s", s.Limit.OrNone(), s.Request.OrNone())
}
