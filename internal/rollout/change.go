// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// change is what may be done to one container of a pod, or to a pod: what gates decide about.
type change struct {
	kind kinds
	pod  *Pod
	// c is the container; zero: it is about the pod.
	c Container
	// from is the effective size, or what is asked for where to is more than that. to is the new one.
	from, to memory.Size
	// Desired is what the change comes from, and what bounds it.
	Desired
	// nodeSize is the allocatable memory of the node that the pod is on, or of the largest that is known to take its
	// successor; 0: unknown.
	nodeSize memory.Bytes
	// bound: the owner's bounds ask for it, regardless of the evidence.
	bound bool
	// urgent: a kill asks for it, or an image that was changed in the pod.
	urgent bool
	// sizes are those of all containers, where the change is about the pod; else those that others of the pod get with it.
	sizes map[string]memory.Size
	evict bool
}

// kindOf is the kind of change that gives a container another size.
func (d *decider) kindOf(c Container, from, to memory.Size, evict bool) kinds {
	kind := raiseQuietly
	switch {
	case d.givesBack(c, to, from):
		kind = giveBackQuietly
	case lowers(from.Limit, to.Limit):
		kind = lowerQuietly
	}
	switch {
	case evict:
		return kind * (raiseByEviction / raiseQuietly)
	case c.RestartsOnResize:
		return kind * (raiseByRestart / raiseQuietly)
	}
	return kind
}

// changeOf is the change that gives a container of a pod another size, where it runs or by eviction.
func (d *decider) changeOf(pod *Pod, c Container, to memory.Size, evict bool) *change {
	desired := d.Desired[c.Key()]
	ch := &change{
		pod: pod, c: c, from: pod.before(c, to), to: to, Desired: desired, evict: evict, nodeSize: pod.NodeSize,
	}
	ch.bound = outOfBounds(have(c), ch.Policy) && !outOfBounds(to, ch.Policy)
	if evict {
		if ch.nodeSize = d.reach(pod); c.keepsCap(to.Limit) {
			ch.from.Limit = min(ch.from.Limit, c.CapFor)
		}
	} else if limit, needed := d.sharedNeed(pod, c); needed {
		ch.from.Limit, ch.to.Limit = pod.Whole.Spec.Limit, limit
	}
	ch.kind = d.kindOf(c, ch.from, ch.to, evict)
	ch.urgent = ch.kind&givesBack != 0 ||
		(ch.Recommendation.Urgent || d.forAnother(pod, c)) && ch.kind&lowerings == 0 && !ch.lowersRequest()
	if evict && len(d.pods) <= 1 && pod.serves() {
		ch.urgent = false // the only replica is not worth it
	}
	return ch
}

// reach is the allocatable memory of the largest node that is known to take the successor of a pod: of those that pods
// of the workload run on. Other nodes of the cluster may have taints, or belong to another pool.
func (d *decider) reach(pod *Pod) memory.Bytes {
	most := pod.NodeSize
	for i := range d.Pods {
		if !d.Policy.OnEachNode {
			most = max(most, d.Pods[i].NodeSize)
		}
	}
	return most
}

// lowersRequest reports whether the limit stays and the request goes down.
func (ch *change) lowersRequest() bool {
	return ch.to.Limit == ch.from.Limit && ch.to.Request < ch.from.Request
}

// cost is what the change takes of the budget of the cluster.
func (ch *change) cost() Spent { return ch.pod.cost(ch.sizes, ch.evict) }

// asksAgain reports whether the new size is one that was refused, or has more of a request.
func (ch *change) asksAgain(refused memory.Size) bool {
	to := memory.Size{Limit: ch.to.Limit, Request: min(ch.to.Request, refused.Request)}
	return !recommend.Differs(refused, to, ch.Policy)
}

// givesBack reports whether a change rolls back a size that did harm. No raise restores that there was no limit: the
// first one from the size that did harm counts.
func (d *decider) givesBack(c Container, to, from memory.Size) bool {
	if d.Policy.OnlyWatch {
		return lowers(to.Limit, from.Limit) // it is owed
	}
	r, active := d.State.ActiveRevert(c.Key(), d.Now)
	return active && 0 < from.Limit && from.Limit < to.Limit && to.Limit <= r.Restored.Limit &&
		(r.Restored.Limit != NoLimit || from.Limit <= r.Tried.Limit)
}

// withoutFirstLimit is what a container that runs without a limit gets of a size, whether that is worth a change, and
// whether its successor may get all of it: no resize removes a limit again. A BestEffort pod is not resized at all.
func (d *decider) withoutFirstLimit(pod *Pod, c Container, to memory.Size) (size memory.Size, some, bars bool) {
	if c.Spec.Limit > 0 || to.Limit == 0 || pod.QoS == "BestEffort" {
		return to, true, false
	}
	who := fmt.Sprintf("new pods get %s, one of them first", to.Limit)
	if d.Policy.NoWebhook {
		who = fmt.Sprintf("set one of %s in the workload's template", to.Limit)
	}
	if r, active := d.State.ActiveRevert(c.Key(), d.Now); active && r.Restored.Limit == NoLimit {
		who = fmt.Sprintf("a limit of %s was rolled back at %s, and new pods get none before %s", r.Tried.Limit,
			format.Time(r.At), format.Time(r.At.Add(RevertHold.Duration())))
	}
	d.refused(v1alpha1.ReasonWaitingForNewPods,
		d.about(pod, c)+"it has no limit, and no resize removes one again: "+who)
	to.Limit = 0
	return to, recommend.Differs(have(c), to, d.Desired[c.Key()].Policy), true
}

// restores is the part of a raise that rolls back a size that did harm. It does not wait for what the rest waits for.
// Nil: there is none, or it waits as well.
func (d *decider) restores(ch *change) *change {
	r, active := d.State.ActiveRevert(ch.c.Key(), d.Now)
	if !active || ch.evict || ch.c.Shared || ch.from.Limit >= r.Restored.Limit || ch.to.Limit <= r.Restored.Limit {
		return nil
	}
	to := memory.Size{Limit: r.Restored.Limit, Request: min(ch.to.Request, r.Restored.Limit)}
	if ch.to.Request == ch.to.Limit {
		to.Request = to.Limit
	}
	back := d.changeOf(ch.pod, ch.c, to, false)
	back.sizes = ch.sizes
	if refused, _ := d.refusal(back); refused != (Verdict{}) {
		return nil
	}
	return back
}

// change begins to change one pod, if the gates let it.
func (d *decider) change(pod *Pod) {
	reason, message := d.reason, d.message
	sizes, bars := d.planResize(pod)
	evict := len(sizes) == 0 && bars && d.Policy.Evict
	if evict {
		inPlace, why := d.reason, d.message
		d.reason, d.message = reason, message // what refuses the eviction explains more
		if sizes = d.planEviction(pod); len(sizes) == 0 {
			d.refused(inPlace, why)
		}
	}
	if len(sizes) == 0 {
		return
	}
	refused, _ := d.refusal(&change{kind: together, pod: pod, sizes: sizes, evict: evict})
	if refused != (Verdict{}) {
		d.refused(refused.Reason, "pod "+pod.Name+": "+refused.Message)
		return
	}
	d.begin(pod, sizes, evict)
}

// planResize returns the new sizes that a pod may get now where it is. bars: a gate refuses to change the pod where it
// is, and not the sizes, for which it is worth an eviction. What is refused for one container of several does not hold
// up the others.
func (d *decider) planResize(pod *Pod) (sizes map[string]memory.Size, bars bool) {
	sizes = map[string]memory.Size{}
	worthAny := false
	for _, c := range d.byNeed(pod) {
		to, differs := d.target(pod, c)
		if !differs {
			continue
		}
		worth := d.worthEviction(pod, c, to)
		worthAny = worthAny || worth
		to, some, barred := d.inWhole(pod, c, to)
		if some {
			var first bool
			to, some, first = d.withoutFirstLimit(pod, c, to)
			barred = barred || first
		}
		if bars = bars || barred && worth; !some {
			continue
		}
		ch := d.changeOf(pod, c, to, false)
		ch.sizes = sizes
		less := d.allow(ch)
		refused, barred := d.refusal(ch)
		if refused != (Verdict{}) {
			if back := d.restores(ch); back != nil {
				ch, less, refused = back, cmp.Or(less, refused), Verdict{}
			}
		}
		if refused != (Verdict{}) {
			d.refused(refused.Reason, d.about(pod, c)+refused.Message)
			bars = bars || barred && worth
			continue
		}
		to = d.granted(ch, to, less)
		if c.Effective > 0 && to.Limit == c.Spec.Limit {
			to = d.another(c.Key(), to) // the spec has it already, and the kubelet does nothing about numbers that it has
		}
		sizes[c.Name] = to
	}
	if refused, barred := d.whole(pod, sizes); refused != (Verdict{}) {
		d.refused(refused.Reason, refused.Message)
		return nil, bars || barred && worthAny
	}
	return sizes, bars
}

// worthEviction reports whether a container is to have another limit. A request saves it from no kill, and where its
// node has no memory for that, its successor may find none either.
func (d *decider) worthEviction(pod *Pod, c Container, to memory.Size) bool {
	ch := d.changeOf(pod, c, to, true)
	return ch.to.Limit != ch.from.Limit && (ch.bound || !d.returnsLoan(ch))
}

// planEviction returns the new sizes that the successor of a pod is to get; nil: the pod is not evicted now, or not for
// a size.
func (d *decider) planEviction(pod *Pod) map[string]memory.Size {
	sizes := map[string]memory.Size{}
	for _, c := range d.byNeed(pod) {
		to, differs := d.target(pod, c)
		if !differs || c.Shared { // whether the next pod gets more as a whole is unknown before it exists
			continue
		}
		ch := d.changeOf(pod, c, to, true)
		ch.sizes = sizes
		less := d.allow(ch)
		if !ch.bound && d.returnsLoan(ch) {
			continue // a pod is not evicted for its loan, which its successor does not have
		}
		if refused, _ := d.refusal(ch); refused != (Verdict{}) {
			d.refused(refused.Reason, fmt.Sprintf("pod %s is not evicted: %s", pod.Name, refused.Message))
			return nil
		}
		sizes[c.Name] = d.granted(ch, to, less)
	}
	return sizes
}

// granted returns what a container gets of a size, and reports why that is less.
func (d *decider) granted(ch *change, to memory.Size, less Verdict) memory.Size {
	if less == (Verdict{}) {
		return to
	}
	d.refused(less.Reason, d.about(ch.pod, ch.c)+less.Message)
	return ch.to
}
