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
	of kinds // the changes that it applies to
	// refuses returns why a change must not be made; zero: none.
	refuses       func(*decider, *change) Verdict
	evictionHelps bool          // the reason is this pod, not the size, so an eviction may help
	pending       pendingEffect // of a refusal
	onlyNew       bool          // it does not apply to what is left of a resize that was sent ([change.withdraws])
}

func (g *gate) appliesTo(ch *change) bool {
	return g.of&ch.kind != 0 && (!g.onlyNew || !ch.withdraws())
}

// pendingEffect is the effect on a step that was not sent.
type pendingEffect uint8

const (
	unaffected pendingEffect = iota // it is sent
	postponed                       // it is sent when the gate lets it pass
	removed                         // it is removed
)

// gates decide whether a pod may be changed now, in order: users read the first refusal.
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
	// Is it the time for it?
	{of: lowerings, refuses: (*decider).queryNotClear, pending: removed},
	{of: sized&^rollbacks | restartPod, refuses: (*decider).windowClosed, pending: removed, onlyNew: true},
	{of: lowerings, refuses: (*decider).editedByOwner},
	{of: lowerings, refuses: (*decider).startedRecently},
	// Can the other pods bear it?
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

// gated returns the effect of the gates on a step that was not sent: the worst for a container.
func (d *decider) gated(pod *Pod, st *Step) (worst pendingEffect) {
	for _, c := range pod.sized(st.To) {
		ch, own := d.changeOf(pod, c, st.To[c.Name], st.evicts()), unaffected
		for _, g := range gates {
			if g.pending > own && g.appliesTo(ch) && g.refuses(d, ch) != (Verdict{}) {
				own = g.pending
			}
		}
		worst = max(worst, own)
	}
	return worst
}

// notPermitted refuses to evict a pod that no controller replaces, to evict or restart it if its owner forbids it, and
// to evict, restart or lower it if it runs to completion.
func (d *decider) notPermitted(ch *change) Verdict {
	switch interrupts := ch.interrupts(); {
	case ch.evict && d.Policy.NoEvict != "":
		return Verdict{v1alpha1.ReasonWaitingForNewPods, d.Policy.NoEvict}
	case interrupts && ch.pod.Undisturbed != "":
		return refuse(v1alpha1.ReasonWaitingForNewPods,
			"its annotation %s forbids disrupting it: memfit does not restart or evict it", ch.pod.Undisturbed)
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
	return in.Policy.Evict && in.Policy.NoEvict == "" && !pod.Completes && pod.Undisturbed == ""
}

// refusedInPlace refuses to resize a container for a while after the API server or the kubelet refused the size, or a
// rollback in it. A rollback to less than the refused size does not wait.
func (d *decider) refusedInPlace(ch *change) Verdict {
	r, found := d.State.refusal(ch.pod.UID)
	size, about := r.Sizes[ch.c.Name]
	again := ch.sameAsRefused(size)
	back, active := d.State.ActiveRevert(ch.c.Key(), d.Now)
	switch restored := active && size.Limit == back.Restored.Limit && size.Limit < ch.to.Limit; {
	case r.All:
	case !found || r.Reason == v1alpha1.ReasonDisruptionBudget || !about:
		return Verdict{}
	case !again && ch.kind&rollbacks != 0 && ch.to.Limit < size.Limit:
		return Verdict{}
	case !again && !restored && !d.stillWanted(ch.pod, r):
		return Verdict{}
	}
	return Verdict{r.Reason, r.Why}
}

// keepsCap refuses to resize a container that has the limit, and whose process keeps a heap cap for a lower one.
func (d *decider) keepsCap(ch *change) Verdict {
	if !ch.c.keepsCap(ch.to.Limit) || ch.to.Limit > ch.c.Spec.Limit {
		return Verdict{}
	}
	return Verdict{v1alpha1.ReasonNotEffective, d.whyCapped(ch.pod, &ch.c, ch.to.Limit)}
}

// refusedRecently refuses an eviction after a recent refusal, and any change after one by a disruption budget, which
// applies to the other pods as well.
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

// anotherWriter refuses everything for a day after another writer changed a size that memfit had set, except rollbacks
// of pods that memfit wrote last.
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
	return refuse(v1alpha1.ReasonConflict, "field manager %s gave pod %s limit %s; it is not lowered before %s",
		ch.pod.Writer, ch.pod.Name, ch.from.Limit, format.Time(until))
}

func (d *decider) paused(*change) Verdict {
	if d.Paused != "" {
		return refuse(v1alpha1.ReasonPaused, "paused by %s", d.Paused)
	}
	return Verdict{}
}

// conflict refuses everything beside another controller, except to give limits back ([decider.onlyRestores]).
func (d *decider) conflict(ch *change) Verdict {
	if d.Conflict != "" && !d.onlyRestores(ch) {
		return refuse(v1alpha1.ReasonConflict,
			"memfit only recommends: %s also sizes this workload's memory; let only one of the two do it", d.Conflict)
	}
	return Verdict{}
}

// noEvidence refuses to lower without a recommendation or while some pods are not measured, and limits without a day of
// exact use, because most demand has a daily rhythm. Owner's bounds and the reversal of memfit's own raise need no
// evidence.
func (d *decider) noEvidence(ch *change) Verdict {
	r, lowers := &ch.Recommendation, ch.kind&lowerings != 0
	unseen := d.Unseen[ch.c.Name]
	switch {
	case unseen != "" && (lowers || ch.lowersRequest()) && !ch.bound && !d.returnsLoan(ch):
		return Verdict{v1alpha1.ReasonNotEnoughEvidence, unseen + ", and nothing is lowered until it is"}
	case ch.bound || d.reversesRaise(ch):
	case r.Decision == recommend.Hold && (lowers || ch.lowersRequest()):
		return Verdict{v1alpha1.ReasonNotEnoughEvidence, r.Summary}
	case lowers && r.Evidence.Window < period.Day.Duration():
		return refuse(v1alpha1.ReasonNotEnoughEvidence, "usage was measured for %s, and lowering a limit needs %s",
			format.InWords(r.Evidence.Window), format.InWords(period.Day.Duration()))
	case lowers && r.Evidence.Estimated:
		return Verdict{v1alpha1.ReasonNotEnoughEvidence,
			"demand was not exact for all of the last day, so no limit is lowered; status.containers[].reasons " +
				"has what is missing"}
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

// rolledBackRecently refuses a limit below what a rollback restored within the last week.
func (d *decider) rolledBackRecently(ch *change) Verdict {
	r, active := d.State.ActiveRevert(ch.c.Key(), d.Now)
	if !active || ch.to.Limit >= r.Restored.Limit {
		return Verdict{}
	}
	return refuse(v1alpha1.ReasonReverted,
		"a limit of %s was rolled back at %s because it caused harm; memfit does not retry it until %s", r.Tried.Limit,
		format.Time(r.At), format.Time(r.At.Add(RevertHold.Duration())))
}

// coolingDown refuses a second change within the cool-down, except for a kill or the owner's bounds, for further pods
// of the change under way and, without a restart, to reverse memfit's own raise or to raise a request below use.
func (d *decider) coolingDown(ch *change) Verdict {
	cooldown := d.Policy.Cooldown
	next := d.State.LastChange.Add(cooldown)
	_, under := d.rolloutTarget(&ch.c)
	// The scheduler counts memory beyond the request for others. This pod may use more than the recommendation knows.
	overdue := ch.c.Demand > ch.from.Request && ch.to.Request > ch.from.Request && ch.to.Limit == ch.from.Limit
	switch {
	case d.State.LastChange.IsZero() || !d.Now.Before(next) || ch.urgent || ch.bound:
	case under && d.State.Rollout.Decrease == (ch.kind&lowerings != 0):
	case ch.kind&(lowerings|evictions) == 0 && ch.pod.isDeferred(ch.c): // the last one is not effective
	case ch.kind&restarting == 0 && (ch.Recommendation.UseAboveRequest || overdue || d.reversesRaise(ch)):
	default:
		return refuse(v1alpha1.ReasonCoolingDown, "last change at %s; the next one waits until %s (cooldown %s)",
			format.TimeOfDay(d.State.LastChange, d.Now), format.TimeOfDay(next, d.Now), format.Duration(cooldown))
	}
	return Verdict{}
}

// restartedRecently bounds the restarts of a day, and the time between two.
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

// onlyReplica refuses to restart the only replica, unless the owner allows it, a kill requires it, or it does not
// serve.
func (d *decider) onlyReplica(ch *change) Verdict {
	evicted := ch.kind&(evictions|restartPod) != 0
	if len(d.pods) != 1 || d.Policy.SingleReplicaMayRestart || ch.urgent || evicted && !ch.pod.serves() {
		return Verdict{}
	}
	return Verdict{v1alpha1.ReasonSingleReplica,
		"the only replica would restart: set sizing.disruption.singleReplica to Allowed to permit it"}
}

// changesQoS refuses a resize that would change the QoS class. The API server refuses one of a Burstable pod that would
// become Guaranteed, which also depends on CPU.
func (d *decider) changesQoS(ch *change) Verdict {
	switch {
	case ch.pod.limited(): // the pod-level size determines the class, and its equal values remain equal
	case ch.pod.QoS == "Guaranteed" && ch.to.Request != ch.to.Limit:
		return refuse(v1alpha1.ReasonQoSClass,
			"the pod is Guaranteed: request %s must equal limit %s (requestPolicy: EqualsLimit)", ch.to.Request, ch.to.Limit)
	case ch.pod.QoS == "BestEffort":
		return Verdict{v1alpha1.ReasonQoSClass,
			"the pod is BestEffort: only a new pod can be given resources, not a resize"}
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
	case ch.c.Shared, ch.pod.follows(): // it is a pod-level limit
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

// allow reduces a size to what the namespace allows, and returns why. If that is nothing, the gates refuse it. The size
// of an evicted pod's successor is reduced at its creation.
func (d *decider) allow(ch *change) (less Verdict) {
	if ch.c.Shared {
		return Verdict{} // it is a pod-level limit
	}
	cuts := []func(*change) (memory.Size, Verdict){d.inRange}
	if ch.kind&resizes != 0 {
		cuts = append(cuts, d.inPod, d.inQuota)
	}
	for _, cut := range cuts {
		if within, why := cut(ch); why != (Verdict{}) && ch.isPart(within) {
			less, ch.to = why, within
		}
	}
	return less
}

// inRange returns the part of a size that LimitRanges allow for a container, and why that is not all.
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

// inPod returns the part of a raise that LimitRanges allow with the pod's other containers, and why that is not all.
func (d *decider) inPod(ch *change) (memory.Size, Verdict) {
	if ch.kind&lowerings != 0 {
		return ch.to, Verdict{}
	}
	with := func(limit memory.Bytes) memory.Size { return ch.withLess(limit, ch.to.Request) }
	most, why := constraints.Most(ch.from.Limit, ch.to.Limit, func(limit memory.Bytes) string {
		return d.inadmissible(ch, with(limit))
	})
	if why == "" || d.inadmissible(ch, with(most)) != "" {
		return ch.to, Verdict{}
	}
	return with(most), Verdict{v1alpha1.ReasonLimitRange, why}
}

// inQuota returns the part of a raise that a quota leaves, and why that is not all. Only a kill or a rollback takes a
// part of a limit or request that does not fit, because others may need it.
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

// withLess returns the new size with a lower limit or request. An equal request remains equal; another one remains
// below the limit, because the pod must not become Guaranteed.
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

// quotaLeft returns what a quota leaves for a change, in whole MiB, after changes that it does not count yet.
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

// quotaReplicas returns for how many pods a raise must fit the quota: without a kill for all that need it, because a part of
// them would take the rest from new pods.
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
			format.Count(int64(replicas), "replica"), ch.Quota.Name, constraints.Left(left))
	}
	return cmp.Or(over("limits", from.Limit, ch.to.Limit, left.Limit),
		over("requests", from.Request, ch.to.Request, left.Request))
}

// inUse refuses to lower a limit below current use or, unless it returns a loan, below the use of the last day.
func (d *decider) inUse(ch *change) Verdict {
	limit, c := ch.to.Limit, &ch.c
	switch {
	case c.Demand.Percent(105) >= limit: // it varies by a few percent between two samples
		return refuse(v1alpha1.ReasonUsageTooHigh, "demand is %s right now: a limit of %s would kill it", c.Demand, limit)
	case ch.kind == lowerInPlace && c.Usage >= limit: // as the kubelet compares
		return refuse(v1alpha1.ReasonUsageTooHigh, "memory in use is %s right now, of which %s is page cache: the kubelet "+
			"refuses to resize to %s until less is in use", c.Usage, c.Usage.Minus(c.Demand), limit)
	case ch.WindowPeak > limit && !d.returnsLoan(ch):
		day := "day"
		if period.Compressed() {
			day = format.InWords(period.Day.Duration())
		}
		return refuse(v1alpha1.ReasonUsageTooHigh, "use reached %s within the last %s: a limit of %s would not hold it",
			ch.WindowPeak, day, limit)
	}
	return Verdict{}
}

// belowHeapCap refuses to lower a limit below the heap cap of a running process, which the runtime would fill.
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

// exceedsNode refuses a request above the allocatable memory of the node. Whether it fits now, the kubelet decides.
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

// restartsShared refuses to raise the pod-level limit if that restarts a container without its own.
func (d *decider) restartsShared(ch *change) Verdict {
	for _, c := range ch.pod.Containers {
		if _, asked := ch.sizes[c.Name]; !asked && c.Shared && c.RestartsOnResize && ch.to.Limit > ch.from.Limit {
			return refuse(v1alpha1.ReasonDisruptionBudget, "container %s has no limit of its own and restarts when the pod's "+
				"changes (its resizePolicy), which is not allowed", c.Name)
		}
	}
	return Verdict{}
}

func (d *decider) queryNotClear(*change) Verdict {
	if why := d.QueryResult.Against(d.Now); why != "" {
		return Verdict{v1alpha1.ReasonWaitingForQuery, "no limit is lowered while sizing.disruption." + why}
	}
	return Verdict{}
}

// windowClosed refuses to lower, restart or evict while no maintenance window is open. A raise without a restart or
// after a kill waits only with increases: InWindows.
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
		"its owner set limit %s within the last day; it is not lowered before %s", c.Owner.Limit.OrNone(),
		format.Time(c.OwnerUntil))
}

// startedRecently refuses to lower the limit of a container that has just started: a new version, or an import at the
// start, may need more than the history shows.
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
		return refuse(v1alpha1.ReasonWatching, "pod %s runs first with a lower limit, and is watched", name)
	}
	return Verdict{}
}

// conflictsWithLoan refuses to return a loan while pods with a lower limit are watched, and to lower a limit while a
// loan is being returned or another limit is still being lowered: the start of a change of the other kind ends these
// steps.
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

// otherContainerRefused refuses to resize a container, except after a kill, for a while after its pod was refused sizes
// of others: only the last refusal of a pod is stored.
func (d *decider) otherContainerRefused(ch *change) Verdict {
	r, found := d.State.refusal(ch.pod.UID)
	if _, about := r.Sizes[ch.c.Name]; !found || about || ch.urgent || r.Reason == v1alpha1.ReasonDisruptionBudget ||
		!d.stillWanted(ch.pod, r) {
		return Verdict{}
	}
	return Verdict{r.Reason, r.Why}
}

// awaitsSuccessor refuses to evict a pod while the successor of another is not ready: it would be unknown whose
// successor a new pod is. It also refuses to restart a pod whose size is being changed, or while another is evicted for
// its size.
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

// tooManyUnavailable refuses to disrupt more pods than maxUnavailable. A pod out of service does not count,
// unless its limit is lowered in place: then only pods that memfit disrupts count.
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
