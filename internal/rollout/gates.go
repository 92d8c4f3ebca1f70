// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/recommend"
)

// Verdict is a gate's refusal: a reason for a condition, and a sentence with numbers. Zero: the change may be made.
type Verdict struct{ Reason, Message string }

func refuse(reason, text string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(text, args...)}
}

// kinds are ways to change a running pod.
type kinds uint16

const (
	// In place, without a restart. A change of the request alone is a raise.
	raiseInPlace kinds = 1 << iota
	lowerInPlace
	rollBackInPlace // a rollback of a lower limit
	// In place, with a restart of the container.
	raiseByRestart
	lowerByRestart
	rollBackByRestart
	// By eviction: the successor gets the size.
	raiseByEviction
	lowerByEviction
	rollBackByEviction
	// restartPod evicts a pod for one of the same size (drift.action: Restart).
	restartPod
	// podSize changes the pod-level size (spec.resources).
	podSize
	// together are the changes of all containers of a pod, each of which has passed its gates.
	together

	resizes    = raiseInPlace | lowerInPlace | rollBackInPlace | raiseByRestart | lowerByRestart | rollBackByRestart
	evictions  = raiseByEviction | lowerByEviction | rollBackByEviction
	sized      = resizes | evictions
	lowerings  = lowerInPlace | lowerByRestart | lowerByEviction
	rollbacks  = rollBackInPlace | rollBackByRestart | rollBackByEviction
	restarting = raiseByRestart | lowerByRestart | rollBackByRestart | evictions
)

// gate decides whether a change may be made now.
type gate struct {
	of            kinds                           // the kinds of changes to which the gate applies
	refuses       func(*decider, *change) Verdict // returns why a change must not be made; zero: it may be made
	evictionHelps bool                            // the reason is this pod, not the size, so an eviction may help
	pending       pendingEffect                   // the effect of a refusal on a step that was not sent
	onlyNew       bool                            // not for the rest of a sent resize ([change.withdraws])
}

func (g *gate) appliesTo(ch *change) bool {
	return g.of&ch.kind != 0 && (!g.onlyNew || !ch.withdraws())
}

// pendingEffect is the effect of a refusal on a stored step that was not sent, in ascending order.
type pendingEffect uint8

const (
	unaffected pendingEffect = iota // the step is sent
	postponed                       // the step is sent when the gate permits it
	removed                         // the step is removed
)

// gates are checked in this order: users read the first refusal.
var gates = []gate{
	// May memfit touch the pod at all?
	{of: lowerings | restarting | restartPod, refuses: (*decider).notPermitted, pending: removed},
	{of: resizes, refuses: (*decider).refusedInPlace, evictionHelps: true},
	{of: resizes, refuses: (*decider).keepsCap, evictionHelps: true},
	{of: sized | restartPod, refuses: (*decider).refusedRecently},
	{of: sized, refuses: (*decider).anotherWriter, pending: postponed, onlyNew: true},
	{of: lowerings, refuses: (*decider).resizedByAnother, pending: removed},
	{
		of: sized&^(rollBackInPlace|rollBackByRestart) | restartPod, refuses: (*decider).paused, pending: postponed,
		onlyNew: true,
	},
	{of: sized, refuses: (*decider).conflict, pending: postponed, onlyNew: true},
	// Is the evidence good enough?
	{of: sized, refuses: (*decider).noEvidence},
	{of: lowerings | restartPod, refuses: (*decider).noRecentReading, pending: removed},
	{of: lowerings, refuses: (*decider).rolledBackRecently},
	// Was there a change recently?
	{of: sized &^ rollbacks, refuses: (*decider).coolingDown},
	{of: restartPod, refuses: (*decider).restartedRecently},
	// Does the size fit?
	{of: restarting | restartPod, refuses: (*decider).onlyReplica},
	{of: resizes, refuses: (*decider).changesQoS, evictionHelps: true},
	{of: sized, refuses: (*decider).violatesLimitRange},
	{of: sized | podSize, refuses: (*decider).exceedsQuota},
	{of: lowerings, refuses: (*decider).inUse, pending: removed},
	{of: lowerInPlace | lowerByRestart, refuses: (*decider).belowHeapCap, evictionHelps: true},
	{of: sized | podSize, refuses: (*decider).exceedsNode, evictionHelps: true},
	{of: podSize, refuses: (*decider).restartsShared},
	// Is this a good time?
	{of: lowerings, refuses: (*decider).queryNotClear, pending: removed},
	{of: sized&^rollbacks | restartPod, refuses: (*decider).windowClosed, pending: removed, onlyNew: true},
	{of: lowerings, refuses: (*decider).editedByOwner},
	{of: lowerings, refuses: (*decider).startedRecently},
	// Do the changes of other pods allow it?
	{of: lowerings, refuses: (*decider).otherCanary},
	{of: lowerings, refuses: (*decider).conflictsWithLoan},
	{of: resizes, refuses: (*decider).otherContainerRefused},
	{of: evictions | restartPod, refuses: (*decider).awaitsSuccessor},
	{of: sized&^(raiseInPlace|rollBackInPlace) | restartPod, refuses: (*decider).tooManyUnavailable, pending: postponed},
	// Does it fit the budget of the cluster?
	{of: together | restartPod, refuses: (*decider).exceedsChangeBudget},
}

// refusal returns the verdict of the first gate that refuses a change, and whether an eviction helps; zero: allowed.
func (d *decider) refusal(ch *change) (refused Verdict, evictionHelps bool) {
	for _, g := range gates {
		if !g.appliesTo(ch) {
			continue
		}
		if v := g.refuses(d, ch); v != (Verdict{}) {
			return v, g.evictionHelps
		}
	}
	return Verdict{}, false
}

// gated returns the effect of the gates on a step that was not sent: the strongest for any of its containers.
func (d *decider) gated(pod *Pod, st *Step) (strongest pendingEffect) {
	for _, c := range pod.sized(st.To) {
		ch, effect := d.changeOf(pod, c, st.To[c.Name], st.evicts()), unaffected
		for _, g := range gates {
			if g.pending > effect && g.appliesTo(ch) && g.refuses(d, ch) != (Verdict{}) {
				effect = g.pending
			}
		}
		strongest = max(strongest, effect)
	}
	return strongest
}

// notPermitted refuses to evict a pod that no controller replaces, and to evict or restart a pod whose owner forbids
// that. If a pod runs to completion, it refuses to evict or restart the pod, or to lower its limit.
func (d *decider) notPermitted(ch *change) Verdict {
	switch interrupts := ch.interrupts(); {
	case ch.evict && d.Policy.NoEvict != "":
		return Verdict{v1alpha1.ReasonWaitingForNewPods, d.Policy.NoEvict}
	case interrupts && ch.pod.DoNotDisrupt != "":
		return refuse(v1alpha1.ReasonWaitingForNewPods,
			"its annotation %s forbids disrupting it: memfit does not restart or evict it", ch.pod.DoNotDisrupt)
	case !ch.pod.Completes, !interrupts && ch.kind&lowerings == 0:
		return Verdict{}
	case ch.kind == restartPod:
		return Verdict{v1alpha1.ReasonWaitingForNewPods, "a Job's pod would lose its work"}
	}
	why := "this pod runs to completion (its restartPolicy is Never or OnFailure, or it belongs to a Job): memfit does " +
		"not lower its limit, and does not restart or evict it, so that its work is not lost"
	if !d.Policy.NoWebhook && d.Policy.NoEvict == "" {
		why += "; the next run gets the recommended size"
	}
	return Verdict{v1alpha1.ReasonWaitingForNewPods, why}
}

func (in *Input) mayEvict(pod *Pod) bool {
	return in.Policy.Evict && in.Policy.NoEvict == "" && !pod.Completes && pod.DoNotDisrupt == ""
}

// refusedInPlace refuses to resize a container for a while after the API server or the kubelet refused the same size,
// or the rollback that is part of the new size. A rollback to a lower limit than the refused limit does not wait.
func (d *decider) refusedInPlace(ch *change) Verdict {
	r, found := d.State.refusal(ch.pod.UID)
	size, included := r.Sizes[ch.c.Name]
	same := ch.sameAsRefused(size)
	revert, active := d.State.ActiveRevert(ch.c.Key(), d.Now)
	switch part := active && size.Limit == revert.Restored.Limit && size.Limit < ch.to.Limit; {
	case r.All:
	case !found || r.Reason == v1alpha1.ReasonDisruptionBudget || !included:
		return Verdict{}
	case !same && ch.kind&rollbacks != 0 && ch.to.Limit < size.Limit:
		return Verdict{}
	case !same && !part && !d.stillWanted(ch.pod, r):
		return Verdict{}
	}
	return Verdict{r.Reason, r.Why}
}

// keepsCap refuses to resize a container that has the new limit already, but whose process keeps the heap cap for a
// lower limit: only a new pod can use the new limit.
func (d *decider) keepsCap(ch *change) Verdict {
	if !ch.c.keepsCap(ch.to.Limit) || ch.to.Limit > ch.c.Spec.Limit {
		return Verdict{}
	}
	return Verdict{v1alpha1.ReasonNotEffective, d.whyCapped(ch.pod, &ch.c, ch.to.Limit)}
}

// refusedRecently refuses an eviction after a recent refusal of one, and a resize after a recent refusal of one that
// applies to all pods or was by a disruption budget.
func (d *decider) refusedRecently(ch *change) Verdict {
	evict := ch.kind&(evictions|restartPod) != 0
	for _, r := range d.State.Refusals {
		budget := r.Reason == v1alpha1.ReasonDisruptionBudget
		own := r.UID == ch.pod.UID && (evict || budget && d.stillWanted(ch.pod, r))
		if r.Evict == evict && (own || r.All && (!r.OnlyLower || ch.kind&(lowerings|restartPod) != 0)) {
			return Verdict{r.Reason, r.Why}
		}
	}
	return Verdict{}
}

// anotherWriter refuses all changes for a day after another writer changed a size that memfit had set, except rollbacks
// in pods that memfit resized last.
func (d *decider) anotherWriter(ch *change) Verdict {
	if d.State.ConflictingWriter == nil || ch.kind&rollbacks != 0 && ch.pod.Writer == "" {
		return Verdict{}
	}
	return Verdict{v1alpha1.ReasonConflict, d.State.ConflictingWriter.Why}
}

// resizedByAnother refuses for a day to lower a limit that another writer set, as for a debug session.
func (d *decider) resizedByAnother(ch *change) Verdict {
	until := ch.pod.WrittenAt.Add(conflictHold.Duration())
	if ch.pod.Writer == "" || !d.Now.Before(until) {
		return Verdict{}
	}
	d.requeueIn(until.Sub(d.Now))
	return refuse(v1alpha1.ReasonConflict, "field manager %s set pod %s to limit %s; memfit does not lower it before %s",
		ch.pod.Writer, ch.pod.Name, ch.from.Limit, format.Time(until))
}

func (d *decider) paused(*change) Verdict {
	if d.Paused != "" {
		return refuse(v1alpha1.ReasonPaused, "paused by %s", d.Paused)
	}
	return Verdict{}
}

// conflict refuses all changes while another controller sizes the workload, except changes that only restore limits.
func (d *decider) conflict(ch *change) Verdict {
	if d.Conflict != "" && !d.onlyRestores(ch) {
		return refuse(v1alpha1.ReasonConflict,
			"memfit only recommends: %s also sizes this workload's memory; let only one of the two do it", d.Conflict)
	}
	return Verdict{}
}

// noEvidence refuses to lower a limit or request without a recommendation, or while some pods are not measured, and to
// lower a limit without a day of exact demand, because most demand has a daily rhythm. The owner's bounds and the
// reversal of memfit's own raise need no evidence.
func (d *decider) noEvidence(ch *change) Verdict {
	r, lowers := &ch.Recommendation, ch.kind&lowerings != 0
	unseen := d.Unmeasured[ch.c.Name]
	switch {
	case unseen != "" && (lowers || ch.lowersRequest()) && !ch.bound && !d.returnsLoan(ch):
		return Verdict{v1alpha1.ReasonNotEnoughEvidence, unseen + ", and nothing is lowered until it is read again"}
	case ch.bound || d.reversesRaise(ch):
	case r.Decision == recommend.Hold && (lowers || ch.lowersRequest()):
		return Verdict{v1alpha1.ReasonNotEnoughEvidence, r.Summary}
	case lowers && r.Evidence.Window < period.Day.Duration():
		return refuse(v1alpha1.ReasonNotEnoughEvidence, "usage was measured for %s, and lowering a limit needs %s",
			format.InWords(r.Evidence.Window), format.InWords(period.Day.Duration()))
	case lowers && r.Evidence.Estimated:
		return Verdict{v1alpha1.ReasonNotEnoughEvidence,
			"demand was not exact for all of the last day, so no limit is lowered; status.containers[].reasons " +
				"names what is missing"}
	}
	return Verdict{}
}

// maxReadingAge is the maximum age of a reading to lower a limit or to restart a pod.
const maxReadingAge = 2 * time.Minute

// noRecentReading refuses to lower a limit or to restart a pod without a recent reading that excludes page cache.
func (d *decider) noRecentReading(ch *change) Verdict {
	at := ch.c.Measured
	switch {
	case at.IsZero():
		return Verdict{v1alpha1.ReasonNotEnoughEvidence, "its current usage was not measured yet"}
	case ch.c.WorkingSetOnly:
		return Verdict{v1alpha1.ReasonNotEnoughEvidence,
			"only its working set is known, which includes reclaimable page cache"}
	case d.Now.Sub(at) > maxReadingAge:
		return refuse(v1alpha1.ReasonNotEnoughEvidence, "it was last measured at %s by the clock of its node",
			format.Time(at))
	}
	return Verdict{}
}

// rolledBackRecently refuses a limit below the limit that a rollback restored within the last week.
func (d *decider) rolledBackRecently(ch *change) Verdict {
	r, active := d.State.ActiveRevert(ch.c.Key(), d.Now)
	if !active || ch.to.Limit >= r.Restored.Limit {
		return Verdict{}
	}
	return refuse(v1alpha1.ReasonReverted,
		"a limit of %s was rolled back at %s because it caused harm; memfit does not retry it until %s", r.Tried.Limit,
		format.Time(r.At), format.Time(r.At.Add(RevertHold.Duration())))
}

// coolingDown refuses a change within the cool-down of the last one, except after a kill, for the owner's bounds and
// for further pods of the current rollout. It also permits, without a restart, the reversal of memfit's own raise and
// the raise of a request that is below use.
func (d *decider) coolingDown(ch *change) Verdict {
	cooldown := d.Policy.Cooldown
	next := d.State.LastChange.Add(cooldown)
	_, found := d.rolloutTarget(&ch.c)
	// The scheduler counts memory above the request as free. This pod may use more than other pods have used.
	overdue := ch.c.Demand > ch.from.Request && ch.to.Request > ch.from.Request && ch.to.Limit == ch.from.Limit
	switch {
	case d.State.LastChange.IsZero() || !d.Now.Before(next) || ch.urgent || ch.bound:
	case found && d.State.Rollout.Decrease == (ch.kind&lowerings != 0):
	case ch.kind&(lowerings|evictions) == 0 && ch.pod.isDeferred(ch.c): // the last change is not effective
	case ch.kind&restarting == 0 && (ch.Recommendation.UseAboveRequest || overdue || d.reversesRaise(ch)):
	default:
		return refuse(v1alpha1.ReasonCoolingDown, "last change at %s; the next one waits until %s (cooldown %s)",
			format.TimeOfDay(d.State.LastChange, d.Now), format.TimeOfDay(next, d.Now), format.Duration(cooldown))
	}
	return Verdict{}
}

// restartedRecently refuses a restart that exceeds the maximum per day, or within the cool-down of the last one.
func (d *decider) restartedRecently(*change) Verdict {
	p, today := &d.Policy, restartsOf(period.Day, d.State.PastRestarts, d.Now)
	if len(today) >= p.RestartsPerDay {
		return refuse(v1alpha1.ReasonCoolingDown, "%d pods were restarted in the last %s, and drift.maxPerDay is %d",
			len(today), format.Duration(period.Day.Duration()), p.RestartsPerDay)
	}
	if len(today) == 0 {
		return Verdict{}
	}
	last := today[len(today)-1]
	if next := last.At.Add(p.Cooldown); d.Now.Before(next) {
		return refuse(v1alpha1.ReasonCoolingDown,
			"pod %s was restarted at %s; the next one waits until %s (sizing.disruption.cooldown is %s)", last.Pod,
			format.Time(last.At), format.Time(next), format.Duration(p.Cooldown))
	}
	return Verdict{}
}

// onlyReplica refuses to restart or evict the only replica, unless the owner allows it, a kill requires it, or an
// eviction replaces a replica that does not serve.
func (d *decider) onlyReplica(ch *change) Verdict {
	evicted := ch.kind&(evictions|restartPod) != 0
	if len(d.pods) != 1 || d.Policy.SingleReplicaMayRestart || ch.urgent || evicted && !ch.pod.serves() {
		return Verdict{}
	}
	return Verdict{v1alpha1.ReasonSingleReplica,
		"the only replica would restart: set sizing.disruption.singleReplica to Allowed to permit it"}
}

// changesQoS refuses a resize that would change the QoS class. It permits all resizes of Burstable pods: the API server
// refuses those that would make the pod Guaranteed, which also depends on CPU.
func (d *decider) changesQoS(ch *change) Verdict {
	switch {
	case ch.pod.limited(): // the pod-level size determines the class, and an equal request remains equal
	case ch.pod.QoS == "Guaranteed" && ch.to.Request != ch.to.Limit:
		return refuse(v1alpha1.ReasonQoSClass,
			"the pod is Guaranteed: request %s must equal limit %s (requestPolicy: EqualsLimit)", ch.to.Request, ch.to.Limit)
	case ch.pod.QoS == "BestEffort":
		return Verdict{v1alpha1.ReasonQoSClass,
			"the pod is BestEffort: a resize cannot add a request or limit, and only a new pod can have them"}
	}
	return Verdict{}
}

func (d *decider) violatesLimitRange(ch *change) Verdict {
	r, limit := &ch.Range, ch.to.Limit
	switch {
	case r.Max > 0 && limit > r.Max:
		return refuse(v1alpha1.ReasonLimitRange, "limit %s is above the maximum of %s in LimitRange %s", limit, r.Max, r.Name)
	case r.Min > 0 && limit > 0 && limit < r.Min:
		return refuse(v1alpha1.ReasonLimitRange, "limit %s is below the minimum of %s in LimitRange %s", limit, r.Min, r.Name)
	case ch.c.Shared, ch.pod.follows(): // the pod-level limit counts
		return Verdict{}
	}
	if why := d.inadmissible(ch, ch.to); why != "" {
		return Verdict{v1alpha1.ReasonLimitRange, why}
	}
	return Verdict{}
}

// inadmissible returns why LimitRanges would refuse the pod with this size of the container; empty: allowed.
func (d *decider) inadmissible(ch *change, size memory.Size) string {
	sizes := map[string]memory.Size{}
	maps.Copy(sizes, ch.sizes)
	sizes[ch.c.Name] = size
	switch {
	case ch.pod.follows():
		if _, refused := ch.pod.Whole.Follow(sizes, d.parts(ch.pod)); refused.Reason == v1alpha1.ReasonLimitRange {
			return "as a whole (spec.resources): " + refused.Message
		}
		return ""
	case ch.pod.Inadmissible == nil:
		return ""
	}
	return ch.pod.Inadmissible(sizes)
}

// allow reduces the new size of a change to the part that the namespace allows, and returns why. If no part is worth a
// change, the size is unchanged and the gates refuse it. For an eviction, the webhook reduces the size further.
func (d *decider) allow(ch *change) (less Verdict) {
	if ch.c.Shared {
		return Verdict{} // the pod-level limit counts
	}
	bounds := []func(*change) (memory.Size, Verdict){d.inRange}
	if ch.kind&resizes != 0 {
		bounds = append(bounds, d.inPod, d.inQuota)
	}
	for _, bound := range bounds {
		if within, why := bound(ch); why != (Verdict{}) && ch.isPart(within) {
			less, ch.to = why, within
		}
	}
	return less
}

// inRange returns the part of a size that LimitRanges allow for a container, and why they refuse the rest.
func (d *decider) inRange(ch *change) (memory.Size, Verdict) {
	within := ch.Range.Within(ch.to)
	switch {
	case within == ch.to:
		return ch.to, Verdict{}
	case ch.Range.Ratio == 0 && within.Limit < ch.to.Limit:
		within = ch.withLess(within.Limit, within.Request)
	}
	return within, cmp.Or(d.violatesLimitRange(ch), refuse(v1alpha1.ReasonLimitRange, "%s is not allowed by LimitRange %s",
		sizeWords(ch.to), ch.Range.Name))
}

// inPod returns the part of a raise that LimitRanges allow for the pod as a whole, and why they refuse the rest.
func (d *decider) inPod(ch *change) (memory.Size, Verdict) {
	if ch.kind&lowerings != 0 {
		return ch.to, Verdict{}
	}
	with := func(limit memory.Bytes) memory.Size { return ch.withLess(limit, ch.to.Request) }
	most, why := constraints.HighestAccepted(ch.from.Limit, ch.to.Limit, func(limit memory.Bytes) string {
		return d.inadmissible(ch, with(limit))
	})
	if why == "" || d.inadmissible(ch, with(most)) != "" {
		return ch.to, Verdict{}
	}
	return with(most), Verdict{v1alpha1.ReasonLimitRange, why}
}

// inQuota returns the part of a raise that a quota allows, and why it refuses the rest. Only after a kill or for a
// rollback, a limit or request is raised in part, because other pods may need the quota.
func (d *decider) inQuota(ch *change) (memory.Size, Verdict) {
	over, from, left := d.exceedsQuota(ch), ch.from.Max(ch.c.Spec), d.quotaLeft(ch)
	if over == (Verdict{}) {
		return ch.to, over
	}
	part := func(from, to, left memory.Bytes) memory.Bytes {
		switch {
		case to.Minus(from)*d.quotaReplicas(ch) <= left:
			return to
		case ch.urgent:
			return from.Plus(left)
		}
		return from
	}
	return ch.withLess(part(from.Limit, ch.to.Limit, left.Limit), part(from.Request, ch.to.Request, left.Request)), over
}

// withLess returns the new size with a lower limit or request. A request that equals the limit remains equal; any other
// request remains below the limit, because the pod must not become Guaranteed.
func (ch *change) withLess(limit, request memory.Bytes) memory.Size {
	switch {
	case limit == 0:
	case ch.to.Request == ch.to.Limit:
		limit = min(limit, request)
		request = limit
	case limit < ch.to.Limit && request >= limit:
		request = limit.Minus(memory.MiB)
	}
	return memory.Size{Limit: limit, Request: request}
}

// isPart reports whether a size is a worthwhile part of the change, such as the request of a raise without a restart.
func (ch *change) isPart(size memory.Size) bool {
	sameWay := cmp.Compare(size.Limit, ch.from.Limit) == cmp.Compare(ch.to.Limit, ch.from.Limit)
	requested := size.Limit == ch.from.Limit && ch.kind&(lowerings|restarting) == 0 && size.Request > ch.from.Request
	return (sameWay || requested) && recommend.Differs(currentSize(ch.c), size, ch.Policy)
}

// quotaLeft returns the quota left for a change, in whole MiB, after started changes that the quota does not count yet.
func (d *decider) quotaLeft(ch *change) memory.Size {
	taken := d.uncountedQuota
	if ch.kind != podSize {
		taken = taken.Plus(ch.pod.quotaIncrease(ch.sizes))
	}
	return memory.Size{
		Limit:   cmp.Or(ch.Quota.Limits, memory.Max).Minus(taken.Limit).FloorTo(memory.MiB),
		Request: cmp.Or(ch.Quota.Requests, memory.Max).Minus(taken.Request).FloorTo(memory.MiB),
	}
}

// quotaIncrease returns the increase that quotas count when a pod gets these sizes.
func (p *Pod) quotaIncrease(sizes map[string]memory.Size) (sum memory.Size) {
	for name, size := range sizes {
		if c, _ := p.container(name); p.limited() == (name == WholePod) {
			sum = sum.Plus(memory.Size{Limit: size.Limit.Minus(c.Spec.Limit), Request: size.Request.Minus(c.Spec.Request)})
		}
	}
	return sum
}

// quotaReplicas returns for how many pods a raise must fit in the quota: after a kill for one, otherwise for all that
// need it, because a raise of only some pods would take the rest of the quota from new pods.
func (d *decider) quotaReplicas(ch *change) memory.Bytes {
	if ch.urgent {
		return 1
	}
	return memory.Bytes(max(d.waitingForQuota, 1))
}

func (d *decider) exceedsQuota(ch *change) Verdict {
	if ch.kind&resizes != 0 && ch.pod.follows() && ch.pod.limited() {
		return Verdict{} // quotas count the pod as a whole
	}
	replicas, from, left := d.quotaReplicas(ch), ch.from.Max(ch.c.Spec), d.quotaLeft(ch)
	over := func(what string, from, to, left memory.Bytes) Verdict {
		need := to.Minus(from) * replicas
		if need <= left {
			return Verdict{}
		}
		return refuse(v1alpha1.ReasonResourceQuota, "%s more %s.memory for %s, but quota %s leaves %s", need, what,
			format.Count(int64(replicas), "replica"), ch.Quota.Name, constraints.FormatUnused(left))
	}
	return cmp.Or(over("limits", from.Limit, ch.to.Limit, left.Limit),
		over("requests", from.Request, ch.to.Request, left.Request))
}

// inUse refuses to lower a limit below current use or, except for the return of a loan, below the use of the last day.
func (d *decider) inUse(ch *change) Verdict {
	limit, c := ch.to.Limit, &ch.c
	switch {
	case c.Demand.Percent(105) >= limit: // demand varies by a few percent between two samples
		return refuse(v1alpha1.ReasonUsageTooHigh, "demand is %s right now: it would be OOM-killed at a limit of %s",
			c.Demand, limit)
	case ch.kind == lowerInPlace && c.Usage >= limit: // the condition of the kubelet
		return refuse(v1alpha1.ReasonUsageTooHigh, "memory in use is %s right now, of which %s is page cache: the kubelet "+
			"refuses to resize to %s until less is in use", c.Usage, c.Usage.Minus(c.Demand), limit)
	case ch.WindowPeak > limit && !d.returnsLoan(ch):
		day := "day"
		if period.Compressed() {
			day = format.InWords(period.Day.Duration())
		}
		return refuse(v1alpha1.ReasonUsageTooHigh, "use reached %s within the last %s: a limit of %s is too low",
			ch.WindowPeak, day, limit)
	}
	return Verdict{}
}

// belowHeapCap refuses to lower a limit below the heap cap of a running process, because the runtime fills its heap.
func (d *decider) belowHeapCap(ch *change) Verdict {
	c := &ch.c
	capped := c.FrozenHeap > 0 && (!c.RestartsOnResize || c.Literal)
	if !capped || c.FrozenHeap.Plus(c.Overhead) <= ch.to.Limit {
		return Verdict{}
	}
	kept := c.FrozenHeap.String()
	if c.Overhead > 0 {
		kept += " (and needs " + c.Overhead.String() + " besides)"
	}
	return refuse(v1alpha1.ReasonHeapCapFixed,
		"the process keeps the heap cap of %s it started with: a limit of %s fits after its next start", kept, ch.to.Limit)
}

// exceedsNode refuses a request above the allocatable memory of the node. The kubelet decides whether it fits now.
func (d *decider) exceedsNode(ch *change) Verdict {
	switch {
	case ch.nodeSize == 0 || ch.to.Request <= ch.nodeSize:
		return Verdict{}
	case ch.evict && !d.Policy.OnEachNode:
		return refuse(v1alpha1.ReasonNodeTooSmall, "request %s does not fit any node on which this workload's pods run; "+
			"the largest has %s allocatable. Set a lower limit.max, or let the pods run on larger nodes",
			ch.to.Request, ch.nodeSize)
	}
	return refuse(v1alpha1.ReasonNodeTooSmall, "request %s is more than the node's %s", ch.to.Request, ch.nodeSize)
}

// restartsShared refuses to raise the pod-level limit if that restarts a container without a limit of its own.
func (d *decider) restartsShared(ch *change) Verdict {
	for _, c := range ch.pod.Containers {
		if _, included := ch.sizes[c.Name]; !included && c.Shared && c.RestartsOnResize && ch.to.Limit > ch.from.Limit {
			return refuse(v1alpha1.ReasonDisruptionBudget, "container %s has no limit of its own and restarts when the pod's "+
				"limit changes (its resizePolicy), which is not allowed", c.Name)
		}
	}
	return Verdict{}
}

func (d *decider) queryNotClear(*change) Verdict {
	if why := d.QueryResult.Against(d.Now); why != "" {
		return Verdict{v1alpha1.ReasonWaitingForQuery, "no limit is lowered: sizing.disruption." + why}
	}
	return Verdict{}
}

// windowClosed refuses to lower, restart or evict while no maintenance window is open. With increases: InWindows, it
// also refuses raises without a restart or after a kill.
func (d *decider) windowClosed(ch *change) Verdict {
	harmless := ch.kind == raiseInPlace || ch.urgent && ch.kind&(raiseByRestart|raiseByEviction) != 0
	if harmless && !d.Policy.IncreasesInWindows || ch.kind == raiseInPlace && ch.lowersRequest() {
		return Verdict{}
	}
	switch open, next := d.Policy.Windows.Open(d.Now); {
	case open:
		return Verdict{}
	case next.IsZero():
		return Verdict{v1alpha1.ReasonWaitingForWindow,
			"none of the maintenance windows ever opens: see the profile's condition Ready"}
	default:
		d.requeueIn(next.Sub(d.Now) + time.Second)
		return refuse(v1alpha1.ReasonWaitingForWindow, "waits for the next maintenance window, which opens at %s",
			format.Time(next))
	}
}

// editedByOwner refuses to lower a limit below the owner's for a day after the owner changed it.
func (d *decider) editedByOwner(ch *change) Verdict {
	c := &ch.c
	if !lowers(c.Owner.Limit, ch.to.Limit) || !d.Now.Before(c.OwnerUntil) {
		return Verdict{}
	}
	d.requeueIn(c.OwnerUntil.Sub(d.Now))
	return refuse(v1alpha1.ReasonNotEnoughEvidence,
		"its owner set limit %s within the last day; memfit does not lower it before %s", c.Owner.Limit.OrNone(),
		format.Time(c.OwnerUntil))
}

// startedRecently refuses to lower the limit of a container that has just started: a new version, or work at the start,
// may need more than the history shows.
func (d *decider) startedRecently(ch *change) Verdict {
	c, least := &ch.c, d.Policy.Watch
	if c.Started.IsZero() {
		return refuse(v1alpha1.ReasonStarting,
			"container %s does not run now; its limit is lowered when it has been up for %s", c.Name, format.Duration(least))
	}
	if up := d.Now.Sub(c.Started); up < least {
		d.requeueIn(least - up)
		return refuse(v1alpha1.ReasonStarting, "container %s started at %s; its limit is lowered when it has been up for %s",
			c.Name, format.Time(c.Started), format.Duration(least))
	}
	return Verdict{}
}

func (d *decider) otherCanary(ch *change) Verdict {
	if proven := d.State.Proven(ch.c.Name, ch.c.Program).Limit; proven > 0 && proven <= ch.to.Limit {
		return Verdict{}
	}
	if uid, name, found := d.canary(); found && uid != ch.pod.UID {
		return refuse(v1alpha1.ReasonWatching, "pod %s is the first with a lower limit, and is watched", name)
	}
	return Verdict{}
}

// conflictsWithLoan refuses to return a loan during a rollout that lowers limits, and to begin such a rollout while a
// loan is being returned or another limit is still being lowered: one change would end the steps of the other.
func (d *decider) conflictsWithLoan(ch *change) Verdict {
	returns := d.returnsLoan(ch)
	if d.State.Rollout.Decrease != returns {
		return Verdict{}
	}
	for i := range d.State.Steps {
		st := &d.State.Steps[i]
		switch {
		case st.Phase == Deferred:
		case returns:
			return refuse(v1alpha1.ReasonWatching, "its loan (sizing.rescue) is returned when pod %s has been watched with its "+
				"lower limit", st.Pod)
		case st.Phase == Watching || !lowersAny(st.From, st.To):
		case d.State.hasLoan(st.UID):
			return refuse(v1alpha1.ReasonWatching, "the loan (sizing.rescue) of pod %s is being returned", st.Pod)
		default:
			return refuse(v1alpha1.ReasonWatching, "the limit of pod %s is being lowered", st.Pod)
		}
	}
	return Verdict{}
}

// otherContainerRefused refuses to resize a container for a while after a resize of other containers of the pod was
// refused, except after a kill: only the last refusal of a pod is stored.
func (d *decider) otherContainerRefused(ch *change) Verdict {
	r, found := d.State.refusal(ch.pod.UID)
	if _, included := r.Sizes[ch.c.Name]; !found || included || ch.urgent || r.Reason == v1alpha1.ReasonDisruptionBudget ||
		!d.stillWanted(ch.pod, r) {
		return Verdict{}
	}
	return Verdict{r.Reason, r.Why}
}

// awaitsSuccessor refuses to evict a pod while the successor of a restarted pod is not ready: memfit would not know
// which pod a new one succeeds. It also refuses to restart a pod whose size is being changed, or while another pod is
// evicted for its size.
func (d *decider) awaitsSuccessor(ch *change) Verdict {
	begun := func(st Step) bool { return st.UID == ch.pod.UID && st.Phase != Deferred }
	switch r := d.State.Restart; {
	case r != nil:
		return refuse(v1alpha1.ReasonDisruptionBudget, "pod %s was evicted at %s, and its successor is not ready yet",
			r.Pod, format.Time(r.At))
	case ch.kind != restartPod:
	case slices.ContainsFunc(d.State.Steps, begun):
		return Verdict{v1alpha1.ReasonDisruptionBudget, "its size is being changed"}
	case slices.ContainsFunc(d.State.Steps, func(st Step) bool { return st.evicts() }):
		return Verdict{v1alpha1.ReasonDisruptionBudget, "another pod is evicted for its size: one at a time"}
	}
	return Verdict{}
}

// tooManyUnavailable refuses to disrupt more pods than maxUnavailable. For a pod that does not serve, only pods that
// memfit disrupts count, unless its limit is lowered in place.
func (d *decider) tooManyUnavailable(ch *change) Verdict {
	a := d.State.Availability(d.Pods, 0, ch.pod.UID)
	if !ch.pod.serves() && ch.kind&(lowerInPlace|lowerByRestart) == 0 {
		a.Wanted = a.Serving + a.Changing
	}
	if why := a.TooFew(d.Policy.MaxUnavailable); why != "" {
		return Verdict{v1alpha1.ReasonDisruptionBudget, why}
	}
	return Verdict{}
}

func (d *decider) exceedsChangeBudget(ch *change) Verdict {
	cost := ch.pod.cost(ch.sizes, ch.evict)
	switch {
	case d.Allowance == nil || cost.Bytes == 0 && cost.Pods == 0 || d.exemptFromBudget(ch):
		return Verdict{}
	case d.Allowance.Unknown:
		d.requeueIn(recheckAfter)
		return Verdict{v1alpha1.ReasonWaitingForBudget,
			"the used share of the cluster's change budget is still being read"}
	}
	why, next := d.Allowance.refuses(cost, d.State.Spent, d.Now)
	if why == "" {
		return Verdict{}
	}
	if !next.IsZero() {
		d.requeueIn(max(next.Sub(d.Now), time.Second))
	}
	return Verdict{v1alpha1.ReasonWaitingForBudget, why}
}
