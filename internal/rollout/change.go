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

// change is a possible change of one container of a pod, or of a pod, which gates decide.
type change struct {
	kind kinds
	pod  *Pod
	c    Container // zero: the change is of the pod
	// from is the result of [Pod.sizeBefore], to the new size.
	from, to memory.Size
	// Desired has the recommendation and the bounds.
	Desired
	// nodeSize is the allocatable memory of the pod's node or, for an eviction, of the largest possible one; 0: unknown.
	nodeSize memory.Bytes
	bound    bool // the owner's bounds require it, regardless of the evidence
	urgent   bool // it is for a kill, a rollback or an image that was changed in the pod
	// sizes has all containers for a change of the whole pod, otherwise the other containers that change with this one.
	sizes map[string]memory.Size
	evict bool
}

func (d *decider) kindOf(c Container, from, to memory.Size, evict bool) kinds {
	kind := raiseInPlace
	switch {
	case d.isRollback(c, to, from):
		kind = rollBackInPlace
	case lowers(from.Limit, to.Limit):
		kind = lowerInPlace
	}
	switch {
	case evict:
		return kind * (raiseByEviction / raiseInPlace)
	case c.RestartsOnResize:
		return kind * (raiseByRestart / raiseInPlace)
	}
	return kind
}

// changeOf returns the change of a container's size, in place or by eviction.
func (d *decider) changeOf(pod *Pod, c Container, to memory.Size, evict bool) *change {
	desired := d.Desired[c.Key()]
	ch := &change{pod: pod, c: c, to: to, Desired: desired, evict: evict, nodeSize: pod.NodeSize}
	ch.from = pod.sizeBefore(c, to)
	ch.bound = outOfBounds(currentSize(c), ch.Policy) && !outOfBounds(to, ch.Policy)
	if evict {
		if ch.nodeSize = d.largestNode(pod); c.keepsCap(to.Limit) {
			ch.from.Limit = min(ch.from.Limit, c.CapFor)
		}
	} else if limit, needed := d.sharedNeed(pod, c); needed {
		ch.from.Limit, ch.to.Limit = pod.Whole.Spec.Limit, limit
	}
	ch.kind = d.kindOf(c, ch.from, ch.to, evict)
	ch.urgent = ch.kind&rollbacks != 0 ||
		(ch.Recommendation.Urgent || d.sizedForAnother(pod, c)) && ch.kind&lowerings == 0 && !ch.lowersRequest()
	if evict && len(d.pods) <= 1 && pod.serves() {
		ch.urgent = false // it is the only replica
	}
	return ch
}

// largestNode returns the allocatable memory of the largest possible node of a pod's successor: of the nodes with pods
// of the workload. Other nodes may have taints, or belong to another pool.
func (d *decider) largestNode(pod *Pod) memory.Bytes {
	most := pod.NodeSize
	for i := range d.Pods {
		if !d.Policy.OnEachNode {
			most = max(most, d.Pods[i].NodeSize)
		}
	}
	return most
}

// interrupts reports whether the change ends a running process. A container that is down only starts with another size.
func (ch *change) interrupts() bool {
	return ch.evict || ch.kind&restarting != 0 && !ch.c.Started.IsZero()
}

// lowersRequest reports whether only the request is lowered.
func (ch *change) lowersRequest() bool {
	return ch.to.Limit == ch.from.Limit && ch.to.Request < ch.from.Request
}

// withdraws reports whether a change only takes the request that a node has no memory for out of a raise in the pod's
// spec, so that the limit of this or another container becomes effective.
func (ch *change) withdraws() bool {
	return ch.kind&(raiseInPlace|rollBackInPlace) != 0 && ch.pod.Writer == "" && ch.pod.limitDeferred() &&
		ch.to.Limit == ch.c.Spec.Limit && ch.c.Actual.Request <= ch.to.Request && ch.to.Request < ch.c.Spec.Request
}

// sameAsRefused reports whether the new size is near a refused one, or has a higher request.
func (ch *change) sameAsRefused(refused memory.Size) bool {
	to := memory.Size{Limit: ch.to.Limit, Request: min(ch.to.Request, refused.Request)}
	return !recommend.Differs(refused, to, ch.Policy)
}

// isRollback reports whether a change is part of a rollback. No resize removes a limit again, so if there was none, the
// first raise from the harmful size counts.
func (d *decider) isRollback(c Container, to, from memory.Size) bool {
	if d.Policy.OnlyWatch {
		return lowers(to.Limit, from.Limit) // it is owed
	}
	r, active := d.State.ActiveRevert(c.Key(), d.Now)
	return active && 0 < from.Limit && from.Limit < to.Limit && to.Limit <= r.Restored.Limit &&
		(r.Restored.Limit != NoLimit || from.Limit <= r.Tried.Limit)
}

// withoutFirstLimit returns a size without the limit for a container that runs without one, because no resize removes a
// limit again. some: this is worth a change. helps: a new pod may get all of it.
func (d *decider) withoutFirstLimit(pod *Pod, c Container, to memory.Size) (size memory.Size, some, helps bool) {
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
	d.noteRefusal(v1alpha1.ReasonWaitingForNewPods,
		d.podPrefix(pod, c)+"it has no limit, and a resize cannot remove one: "+who)
	to.Limit = 0
	return to, recommend.Differs(currentSize(c), to, d.Desired[c.Key()].Policy), true
}

// onlyRestores reports whether a change only gives back a limit that memfit lowered.
func (d *decider) onlyRestores(ch *change) bool {
	to, owed := d.toRestore(ch.pod, ch.c)
	return owed && ch.kind&(rollBackInPlace|rollBackByRestart) != 0 && ch.to.Limit <= to.Limit &&
		(ch.to.Request == ch.c.Spec.Request || ch.pod.QoS == "Guaranteed")
}

// restores returns the part of a refused raise that is a rollback; nil: no part is, or it is refused as well. Where
// another controller acts, it leaves the request out.
func (d *decider) restores(ch *change) *change {
	r, active := d.State.ActiveRevert(ch.c.Key(), d.Now)
	to := memory.Size{Limit: r.Restored.Limit, Request: ch.to.Request}
	switch {
	case d.Conflict != "":
		var owed memory.Size
		if owed, active = d.toRestore(ch.pod, ch.c); active {
			to = memory.Size{Limit: min(owed.Limit, r.Restored.Limit), Request: owed.Request}
		}
	case ch.to.Request == ch.to.Limit:
		to.Request = to.Limit
	}
	to.Request = min(to.Request, to.Limit)
	if !active || ch.evict || ch.c.Shared || ch.from.Limit >= to.Limit || ch.to.Limit < to.Limit || ch.to == to {
		return nil
	}
	back := d.changeOf(ch.pod, ch.c, to, false)
	back.sizes = ch.sizes
	if refused, _ := d.refusal(back); refused != (Verdict{}) {
		return nil
	}
	return back
}

// change begins to change one pod, if the gates permit it.
func (d *decider) change(pod *Pod) {
	reason, message := d.reason, d.message
	sizes, evictionHelps := d.planResize(pod)
	evict := len(sizes) == 0 && evictionHelps && d.Policy.Evict
	if evict {
		before, why := d.reason, d.message
		d.reason, d.message = reason, message // a refusal of the eviction explains more
		if sizes = d.planEviction(pod); len(sizes) == 0 {
			d.noteRefusal(before, why)
		}
	}
	if len(sizes) == 0 {
		return
	}
	refused, _ := d.refusal(&change{kind: together, pod: pod, sizes: sizes, evict: evict})
	if refused != (Verdict{}) {
		d.noteRefusal(refused.Reason, "pod "+pod.Name+": "+refused.Message)
		return
	}
	d.begin(pod, sizes, evict)
}

// planResize returns the new sizes that a pod may get in place now, also of some containers only. evictionHelps: the
// reason of a refusal is the pod, not the size, which is worth an eviction.
func (d *decider) planResize(pod *Pod) (sizes map[string]memory.Size, evictionHelps bool) {
	sizes = map[string]memory.Size{}
	worthAny := false
	for _, c := range d.byNeed(pod) {
		to, differs := d.target(pod, c)
		if !differs {
			continue
		}
		worth := d.worthEviction(pod, c, to)
		worthAny = worthAny || worth
		to, some, helps := d.inWhole(pod, c, to)
		if some {
			var first bool
			to, some, first = d.withoutFirstLimit(pod, c, to)
			helps = helps || first
		}
		if evictionHelps = evictionHelps || helps && worth; !some {
			continue
		}
		ch := d.changeOf(pod, c, to, false)
		ch.sizes = sizes
		less := d.allow(ch)
		refused, helps := d.refusal(ch)
		if refused != (Verdict{}) {
			if back := d.restores(ch); back != nil {
				ch, less, refused = back, cmp.Or(less, refused), Verdict{}
			}
		}
		if refused != (Verdict{}) {
			d.noteRefusal(refused.Reason, d.podPrefix(pod, c)+refused.Message)
			evictionHelps = evictionHelps || helps && worth
			continue
		}
		to = d.granted(ch, to, less)
		if c.Effective > 0 && to.Limit == c.Spec.Limit {
			to = d.withAnotherNumber(c.Key(), to) // the spec has it already, and the kubelet ignores a repeated number
		}
		sizes[c.Name] = to
	}
	if refused, helps := d.addWhole(pod, sizes); refused != (Verdict{}) {
		d.noteRefusal(refused.Reason, refused.Message)
		return nil, evictionHelps || helps && worthAny
	}
	return sizes, evictionHelps
}

// worthEviction reports whether a size is worth an eviction: for another limit, except the return of a loan. A request
// prevents no kill, and a successor may lack the memory of a node as well.
func (d *decider) worthEviction(pod *Pod, c Container, to memory.Size) bool {
	ch := d.changeOf(pod, c, to, true)
	return ch.to.Limit != ch.from.Limit && (ch.bound || !d.returnsLoan(ch))
}

// planEviction returns the new sizes of an evicted pod's successor; empty: the pod is not evicted.
func (d *decider) planEviction(pod *Pod) map[string]memory.Size {
	sizes := map[string]memory.Size{}
	for _, c := range d.byNeed(pod) {
		to, differs := d.target(pod, c)
		if !differs || c.Shared { // the pod-level size of the next pod is unknown
			continue
		}
		ch := d.changeOf(pod, c, to, true)
		ch.sizes = sizes
		less := d.allow(ch)
		if !ch.bound && d.returnsLoan(ch) {
			continue // the successor does not have the loan
		}
		if refused, _ := d.refusal(ch); refused != (Verdict{}) {
			d.noteRefusal(refused.Reason, fmt.Sprintf("pod %s is not evicted: %s", pod.Name, refused.Message))
			return nil
		}
		sizes[c.Name] = d.granted(ch, to, less)
	}
	given, useless := d.evictionSizes(pod, sizes)
	if useless != "" {
		d.noteRefusal(v1alpha1.ReasonUnschedulable, fmt.Sprintf("pod %s is not evicted, because the next one would not get "+
			"the limit: %s", pod.Name, useless))
		return nil
	}
	return given
}

// evictionSizes returns a new pod's sizes after an eviction for these sizes, and why it is useless; empty: useful.
func (d *decider) evictionSizes(pod *Pod, sizes map[string]memory.Size) (given map[string]memory.Size, useless string) {
	given, why := pod.webhookSizes(sizes)
	for name, size := range given {
		c, _ := pod.container(name)
		if size.Limit != sizes[name].Limit && size.Limit <= d.changeOf(pod, c, sizes[name], true).from.Limit {
			return nil, why
		}
	}
	return given, ""
}

func (p *Pod) webhookSizes(sizes map[string]memory.Size) (given map[string]memory.Size, why string) {
	if p.Given == nil {
		return sizes, ""
	}
	return p.Given(sizes)
}

// granted returns the size that a container gets, and reports why it is less.
func (d *decider) granted(ch *change, to memory.Size, less Verdict) memory.Size {
	if less == (Verdict{}) {
		return to
	}
	d.noteRefusal(less.Reason, d.podPrefix(ch.pod, ch.c)+less.Message)
	return ch.to
}
