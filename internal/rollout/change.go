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

// change is a possible change of a pod or of one of its containers. The gates decide whether it may be made.
type change struct {
	kind    kinds
	pod     *Pod
	c       Container   // zero: the change is of the pod
	from    memory.Size // the result of [Pod.sizeBefore]
	to      memory.Size // the new size
	Desired             // the recommendation and its bounds
	// nodeSize is the allocatable memory of the pod's node or, for an eviction, of the largest possible node; 0: unknown.
	nodeSize memory.Bytes
	bound    bool // the owner's bounds require the change, regardless of the evidence
	urgent   bool // the change is for a kill, a rollback or an image that was changed in the pod
	// sizes has the new sizes of the other containers that change, and for a change of the pod those of all containers.
	sizes map[string]memory.Size
	evict bool
}

// kindOf returns the kind of a change. The kinds by restart and by eviction have the same order as those in place.
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

// largestNode returns the allocatable memory of the largest node on which a pod's successor may run, of the nodes with
// pods of the workload: other nodes may have taints, or belong to another pool.
func (d *decider) largestNode(pod *Pod) memory.Bytes {
	most := pod.NodeSize
	for i := range d.Pods {
		if !d.Policy.OnEachNode {
			most = max(most, d.Pods[i].NodeSize)
		}
	}
	return most
}

// interrupts reports whether the change ends a running process. A container that is down has none.
func (ch *change) interrupts() bool {
	return ch.evict || ch.kind&restarting != 0 && !ch.c.Started.IsZero()
}

// lowersRequest reports whether only the request is lowered.
func (ch *change) lowersRequest() bool {
	return ch.to.Limit == ch.from.Limit && ch.to.Request < ch.from.Request
}

// withdraws reports whether a change only lowers a deferred request in the pod's spec again, so that the limit of this
// or another container becomes effective.
func (ch *change) withdraws() bool {
	return ch.kind&(raiseInPlace|rollBackInPlace) != 0 && ch.pod.Writer == "" && ch.pod.limitDeferred() &&
		ch.to.Limit == ch.c.Spec.Limit && ch.c.Actual.Request <= ch.to.Request && ch.to.Request < ch.c.Spec.Request
}

// sameAsRefused reports whether the new size is nearly equal to a refused size, or differs only by a higher request.
func (ch *change) sameAsRefused(refused memory.Size) bool {
	to := memory.Size{Limit: ch.to.Limit, Request: min(ch.to.Request, refused.Request)}
	return !recommend.Differs(refused, to, ch.Policy)
}

// isRollback reports whether a change is part of a rollback. A resize cannot remove a limit: if the container had none
// before, its first raise from the harmful limit counts.
func (d *decider) isRollback(c Container, to, from memory.Size) bool {
	if d.Policy.KeepRunningPods {
		return lowers(to.Limit, from.Limit) // every raise restores a limit
	}
	r, active := d.State.ActiveRevert(c.Key(), d.Now)
	return active && 0 < from.Limit && from.Limit < to.Limit && to.Limit <= r.Restored.Limit &&
		(r.Restored.Limit != NoLimit || from.Limit <= r.Tried.Limit)
}

// withoutFirstLimit removes the limit from the new size of a container that runs without a limit, because a resize
// could not remove the limit again. worthIt: the rest is worth a change. helps: an eviction helps, because a new pod
// may get the limit.
func (d *decider) withoutFirstLimit(pod *Pod, c Container, to memory.Size) (size memory.Size, worthIt, helps bool) {
	if c.Spec.Limit > 0 || to.Limit == 0 || pod.QoS == "BestEffort" {
		return to, true, false
	}
	next := fmt.Sprintf("new pods get a limit of %s, one of them first", to.Limit)
	if d.Policy.NoWebhook {
		next = fmt.Sprintf("set a limit of %s in the workload's template", to.Limit)
	}
	if r, active := d.State.ActiveRevert(c.Key(), d.Now); active && r.Restored.Limit == NoLimit {
		next = fmt.Sprintf("a limit of %s was rolled back at %s, and new pods get none before %s", r.Tried.Limit,
			format.Time(r.At), format.Time(r.At.Add(RevertHold.Duration())))
	}
	d.noteRefusal(v1alpha1.ReasonWaitingForNewPods,
		d.podPrefix(pod, c)+"it has no limit, and memfit adds none by resize, which could not remove it again: "+next)
	to.Limit = 0
	return to, recommend.Differs(currentSize(c), to, d.Desired[c.Key()].Policy), true
}

// onlyRestores reports whether a change only restores a limit that memfit lowered.
func (d *decider) onlyRestores(ch *change) bool {
	to, restore := d.toRestore(ch.pod, ch.c)
	return restore && ch.kind&(rollBackInPlace|rollBackByRestart) != 0 && ch.to.Limit <= to.Limit &&
		(ch.to.Request == ch.c.Spec.Request || ch.pod.QoS == "Guaranteed")
}

// rollbackPart returns the part of a refused raise that is a rollback; nil: there is none, or it is refused as well.
// While another controller sizes the workload, this part leaves the request unchanged.
func (d *decider) rollbackPart(ch *change) *change {
	r, active := d.State.ActiveRevert(ch.c.Key(), d.Now)
	to := memory.Size{Limit: r.Restored.Limit, Request: ch.to.Request}
	switch {
	case d.Conflict != "":
		var restored memory.Size
		if restored, active = d.toRestore(ch.pod, ch.c); active {
			to = memory.Size{Limit: min(restored.Limit, r.Restored.Limit), Request: restored.Request}
		}
	case ch.to.Request == ch.to.Limit:
		to.Request = to.Limit
	}
	to.Request = min(to.Request, to.Limit)
	if !active || ch.evict || ch.c.Shared || ch.from.Limit >= to.Limit || ch.to.Limit < to.Limit || ch.to == to {
		return nil
	}
	part := d.changeOf(ch.pod, ch.c, to, false)
	part.sizes = ch.sizes
	if refused, _ := d.refusal(part); refused != (Verdict{}) {
		return nil
	}
	return part
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

// planResize returns the new sizes that a pod may get in place now, perhaps of some of its containers. evictionHelps: a
// size that is worth an eviction was refused for this pod, but may be possible in a new one.
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
		to, worthIt, helps := d.inWhole(pod, c, to)
		if worthIt {
			var helpsFirst bool
			to, worthIt, helpsFirst = d.withoutFirstLimit(pod, c, to)
			helps = helps || helpsFirst
		}
		if evictionHelps = evictionHelps || helps && worth; !worthIt {
			continue
		}
		ch := d.changeOf(pod, c, to, false)
		ch.sizes = sizes
		less := d.allow(ch)
		refused, helps := d.refusal(ch)
		if refused != (Verdict{}) {
			if part := d.rollbackPart(ch); part != nil {
				ch, less, refused = part, cmp.Or(less, refused), Verdict{}
			}
		}
		if refused != (Verdict{}) {
			d.noteRefusal(refused.Reason, d.podPrefix(pod, c)+refused.Message)
			evictionHelps = evictionHelps || helps && worth
			continue
		}
		to = d.granted(ch, to, less)
		if c.Effective > 0 && to.Limit == c.Spec.Limit {
			to = d.withOtherLimit(c.Key(), to) // the kubelet would ignore the limit that the spec has already
		}
		sizes[c.Name] = to
	}
	if refused, helps := d.addWhole(pod, sizes); refused != (Verdict{}) {
		d.noteRefusal(refused.Reason, refused.Message)
		return nil, evictionHelps || helps && worthAny
	}
	return sizes, evictionHelps
}

// worthEviction reports whether a new size is worth an eviction: its limit differs, except by the return of a loan. A
// higher request alone prevents no kill, and the node of the successor may lack memory for it as well.
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

// evictionSizes returns the sizes that the successor would get after an eviction for these sizes. useless is why the
// successor would get no higher limit; empty: the eviction is useful.
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

// webhookSizes returns the result of [Pod.WebhookSizes].
func (p *Pod) webhookSizes(sizes map[string]memory.Size) (given map[string]memory.Size, why string) {
	if p.WebhookSizes == nil {
		return sizes, ""
	}
	return p.WebhookSizes(sizes)
}

// granted returns the size that a container gets: to or, if less has a reason, the part of it that ch sets.
func (d *decider) granted(ch *change, to memory.Size, less Verdict) memory.Size {
	if less == (Verdict{}) {
		return to
	}
	d.noteRefusal(less.Reason, d.podPrefix(ch.pod, ch.c)+less.Message)
	return ch.to
}
