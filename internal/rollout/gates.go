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

// Verdict is a gate's refusal: a reason for a condition, and a sentence with numbers. The zero Verdict lets a change
// pass.
type Verdict struct{ Reason, Message string }

func refuse(reason, text string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(text, args...)}
}

// kinds are ways to change a running pod.
type kinds uint16

const (
	// In place, and no container restarts. A change of the request alone is a raise.
	raiseQuietly kinds = 1 << iota
	lowerQuietly
	giveBackQuietly // it gives back what a lower limit that did harm had taken
	// In place, and the container restarts for it.
	raiseByRestart
	lowerByRestart
	giveBackByRestart
	// By eviction: the successor gets the size.
	raiseByEviction
	lowerByEviction
	giveBackByEviction
	// fresh evicts a pod for one of the same size (drift.action: Restart).
	fresh
	// podSize is the size of the pod as a whole (spec.resources).
	podSize
	// together are the changes of all containers of a pod, each of which has passed by itself.
	together

	inPlace    = raiseQuietly | lowerQuietly | giveBackQuietly | raiseByRestart | lowerByRestart | giveBackByRestart
	evictions  = raiseByEviction | lowerByEviction | giveBackByEviction
	sized      = inPlace | evictions
	lowerings  = lowerQuietly | lowerByRestart | lowerByEviction
	givesBack  = giveBackQuietly | giveBackByRestart | giveBackByEviction
	restarting = raiseByRestart | lowerByRestart | giveBackByRestart | evictions
)

// gate decides whether a change may be made now.
type gate struct {
	// of are the changes that it applies to.
	of kinds
	// refuses returns why a change must not be made; zero: it may.
	refuses func(*decider, *change) Verdict
	// bars: it refuses to change the pod where it is, and not the size, so that an eviction may help.
	bars bool
	// again is what a refusal does to a step that was written down and not sent yet.
	again again
}

// again is what becomes of a step that was written down and not sent.
type again uint8

const (
	goesOn    again = iota // it is sent
	waits                  // it is sent when the gate lets it pass
	withdrawn              // it is forgotten
)

// gates decide whether a pod may be changed now. Order matters: the first refusal is the one users see.
var gates = []gate{
	// May memfit touch the pod at all?
	{of: lowerings | evictions | fresh, refuses: (*decider).mayNot},
	{of: inPlace, refuses: (*decider).refusedInPlace, bars: true},
	{of: inPlace, refuses: (*decider).keepsCap, bars: true},
	{of: sized | fresh, refuses: (*decider).refusedLately},
	{of: sized, refuses: (*decider).anotherWriter, again: waits},
	{of: lowerings, refuses: (*decider).givenByAnother, again: withdrawn},
	{of: sized&^(giveBackQuietly|giveBackByRestart) | fresh, refuses: (*decider).paused, again: waits},
	{of: sized, refuses: (*decider).conflict, again: waits},
	// Is the evidence good enough?
	{of: sized, refuses: (*decider).noEvidence},
	{of: lowerings | fresh, refuses: (*decider).badlyMeasured, again: withdrawn},
	{of: lowerings, refuses: (*decider).reverted},
	// Was there a change recently?
	{of: sized &^ givesBack, refuses: (*decider).coolingDown},
	{of: fresh, refuses: (*decider).restartedLately},
	// Does the size fit?
	{of: restarting | fresh, refuses: (*decider).onlyReplica},
	{of: inPlace, refuses: (*decider).changesQoS, bars: true},
	{of: sized, refuses: (*decider).outsideRange},
	{of: sized | podSize, refuses: (*decider).overQuota},
	{of: lowerings, refuses: (*decider).inUse, again: withdrawn},
	{of: lowerQuietly | lowerByRestart, refuses: (*decider).frozenHeap, bars: true},
	{of: sized | podSize, refuses: (*decider).beyondNode, bars: true},
	{of: podSize, refuses: (*decider).restartsShared},
	// Is it the time for it?
	{of: lowerings, refuses: (*decider).queryAgainst, again: withdrawn},
	{of: sized&^givesBack | fresh, refuses: (*decider).windowClosed, again: withdrawn},
	{of: lowerings, refuses: (*decider).ownersDay},
	{of: lowerings, refuses: (*decider).starting},
	// Can the other pods bear it?
	{of: lowerings, refuses: (*decider).otherCanary},
	{of: lowerings, refuses: (*decider).besideALoan},
	{of: inPlace, refuses: (*decider).besideARefusal},
	{of: evictions | fresh, refuses: (*decider).othersChange},
	{of: sized&^(raiseQuietly|giveBackQuietly) | fresh, refuses: (*decider).tooFewServe, again: waits},
	// Does it fit the budget of the cluster?
	{of: together | fresh, refuses: (*decider).overChangeBudget},
}

// refusal is that of the first gate that refuses a change; zero: it may be made. bars is the gate's.
func (d *decider) refusal(ch *change) (refused Verdict, bars bool) {
	for _, g := range gates {
		if g.of&ch.kind == 0 {
			continue
		}
		if v := g.refuses(d, ch); v != (Verdict{}) {
			return v, g.bars
		}
	}
	return Verdict{}, false
}

// refusedAgain is what becomes of a step that was written down and not sent: the worst that a gate has for it.
func (d *decider) refusedAgain(ch *change) (worst again) {
	for _, g := range gates {
		if g.again > worst && g.of&ch.kind != 0 && g.refuses(d, ch) != (Verdict{}) {
			worst = g.again
		}
	}
	return worst
}

// mayNot refuses to evict a pod that no controller replaces, or a run, or to lower the limit of a run.
func (d *decider) mayNot(ch *change) Verdict {
	why := ""
	if ch.evict {
		why = d.Policy.NoEvict
	}
	switch {
	case why != "" || !ch.pod.Run:
	case ch.kind == fresh:
		why = "a Job's pod would lose its work"
	default:
		why = "this pod runs to completion (its restartPolicy is Never or OnFailure, or it belongs to a Job): memfit does " +
			"not lower its limit and does not evict it, so that its work is not lost"
		if !d.Policy.NoWebhook && d.Policy.NoEvict == "" {
			why += "; the next run gets the recommended size"
		}
	}
	if why != "" {
		return Verdict{v1alpha1.ReasonWaitingForNewPods, why}
	}
	return Verdict{}
}

// mayEvict reports whether a pod may be replaced where a resize is not possible.
func (in *Input) mayEvict(pod *Pod) bool {
	return in.Policy.Evict && in.Policy.NoEvict == "" && !pod.Run
}

// refusedInPlace refuses to resize a container for a while after the API server or the kubelet refused the same size,
// or the rollback that is a part of it. A rollback does not wait for that after more was refused.
func (d *decider) refusedInPlace(ch *change) Verdict {
	r, found := d.State.refusal(ch.pod.UID)
	size, about := r.Sizes[ch.c.Name]
	again := ch.asksAgain(size)
	back, active := d.State.ActiveRevert(ch.c.Key(), d.Now)
	switch restored := active && size.Limit == back.Restored.Limit && size.Limit < ch.to.Limit; {
	case r.All:
	case !found || r.Reason == v1alpha1.ReasonDisruptionBudget || !about:
		return Verdict{}
	case !again && ch.kind&givesBack != 0 && ch.to.Limit < size.Limit:
		return Verdict{}
	case !again && !restored && !d.stillAsked(ch.pod, r):
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

// refusedLately refuses what was refused moments ago: an eviction, or anything for want of a disruption budget. What a
// PodDisruptionBudget does not allow for one pod it does not allow for the next.
func (d *decider) refusedLately(ch *change) Verdict {
	evict := ch.kind&(evictions|fresh) != 0
	for _, r := range d.State.Refusals {
		budget := r.Reason == v1alpha1.ReasonDisruptionBudget
		own := r.UID == ch.pod.UID && (evict || budget && d.stillAsked(ch.pod, r))
		if r.Evict == evict && (own || r.All) {
			return Verdict{r.Reason, r.Why}
		}
	}
	return Verdict{}
}

// anotherWriter refuses everything for a day after another writer changed what memfit had set, but for a rollback of
// pods that memfit wrote last.
func (d *decider) anotherWriter(ch *change) Verdict {
	if d.State.ConflictingWriter == nil || ch.kind&givesBack != 0 && ch.pod.Writer == "" {
		return Verdict{}
	}
	return Verdict{v1alpha1.ReasonConflict, d.State.ConflictingWriter.Why}
}

// givenByAnother refuses to lower for a day what another writer gave a pod, as for a debug session. A kill is answered.
func (d *decider) givenByAnother(ch *change) Verdict {
	until := ch.pod.WrittenAt.Add(foreignHold.Duration())
	if ch.pod.Writer == "" || !d.Now.Before(until) {
		return Verdict{}
	}
	d.requeueIn(until.Sub(d.Now))
	return refuse(v1alpha1.ReasonConflict, "field manager %s gave pod %s limit %s; it is not lowered before %s",
		ch.pod.Writer, ch.pod.Name, ch.from.Limit, format.Time(until))
}

// paused refuses everything while memfit.dev/pause or the global switch is set.
func (d *decider) paused(*change) Verdict {
	if d.Paused != "" {
		return refuse(v1alpha1.ReasonPaused, "paused by %s", d.Paused)
	}
	return Verdict{}
}

// conflict refuses while another controller sizes this workload's memory: two writers would undo each other.
func (d *decider) conflict(*change) Verdict {
	if d.Conflict != "" {
		return refuse(v1alpha1.ReasonConflict,
			"recommend only: %s also sizes this workload's memory; let only one of the two do it", d.Conflict)
	}
	return Verdict{}
}

// noEvidence refuses to lower anything without a recommendation to, and a limit on less than a day of exact use: most
// demand has a daily rhythm. The owner's bounds need no evidence, and neither does taking back a raise of memfit's own.
func (d *decider) noEvidence(ch *change) Verdict {
	r, lowers := &ch.Recommendation, ch.kind&lowerings != 0
	switch {
	case ch.bound || d.takesBack(ch):
	case r.Decision == recommend.Hold && (lowers || ch.lowersRequest()):
		return Verdict{v1alpha1.ReasonNotEnoughEvidence, r.Summary}
	case lowers && r.Evidence.Window < period.Day.Duration():
		return refuse(v1alpha1.ReasonNotEnoughEvidence, "%s of use is too little to lower a limit: %s are needed",
			format.InWords(r.Evidence.Window), format.InWords(period.Day.Duration()))
	case lowers && r.Evidence.Estimated:
		return Verdict{v1alpha1.ReasonNotEnoughEvidence,
			"demand was not exact for all of the last day, so that no limit is lowered; the reasons name what is missing"}
	}
	return Verdict{}
}

// freshest is how old a reading may be: no limit is lowered, and no pod evicted, for what was in use some time ago.
const freshest = 2 * time.Minute

// badlyMeasured refuses to lower a limit, or to restart a pod, for an old reading, for none, or for one with page cache
// in it, which kills no process.
func (d *decider) badlyMeasured(ch *change) Verdict {
	at, workingSet := ch.c.Measured, ch.c.WorkingSetOnly
	if ch.kind == fresh {
		at, workingSet = d.Restart.Measured, d.Restart.WorkingSetOnly
	}
	switch {
	case at.IsZero():
		return Verdict{v1alpha1.ReasonNotEnoughEvidence, "its current usage was not measured yet"}
	case workingSet:
		return Verdict{v1alpha1.ReasonNotEnoughEvidence,
			"only its working set is known, and page cache in it is no danger"}
	case d.Now.Sub(at) > freshest:
		return refuse(v1alpha1.ReasonNotEnoughEvidence, "it was last measured at %s, if its node's clock is right",
			format.Time(at))
	}
	return Verdict{}
}

// reverted refuses to go below what a rollback restored within the last week.
func (d *decider) reverted(ch *change) Verdict {
	r, active := d.State.ActiveRevert(ch.c.Key(), d.Now)
	if !active || ch.to.Limit >= r.Restored.Limit {
		return Verdict{}
	}
	return refuse(v1alpha1.ReasonReverted,
		"a limit of %s was rolled back at %s because it caused harm; memfit does not retry it until %s", r.Tried.Limit,
		format.Time(r.At), format.Time(r.At.Add(RevertHold.Duration())))
}

// coolingDown refuses a second change within the cool-down, unless a kill or the owner's bounds ask for it, it is the
// change under way, one pod further, or it restarts nothing and takes back a raise of memfit's own or raises a request
// that is below what is in use.
func (d *decider) coolingDown(ch *change) Verdict {
	cooldown := d.Policy.Cooldown
	next := d.State.LastChange.Add(cooldown)
	_, under := d.underWayTo(&ch.c)
	// What is used beyond the request was promised to others. A pod may do so although the one that was sampled does not.
	overdue := ch.c.Demand > ch.from.Request && ch.to.Request > ch.from.Request && ch.to.Limit == ch.from.Limit
	switch {
	case d.State.LastChange.IsZero() || !d.Now.Before(next) || ch.urgent || ch.bound:
	case under && d.State.Rollout.Decrease == (ch.kind&lowerings != 0):
	case ch.kind&(lowerings|evictions) == 0 && ch.pod.waits(ch.c): // nothing has come of the last one
	case ch.kind&restarting == 0 && (ch.Recommendation.UseAboveRequest || overdue || d.takesBack(ch)):
	default:
		return refuse(v1alpha1.ReasonCoolingDown, "last change at %s; the next one waits until %s (cooldown %s)",
			format.TimeOfDay(d.State.LastChange, d.Now), format.TimeOfDay(next, d.Now), format.Duration(cooldown))
	}
	return Verdict{}
}

// restartedLately bounds the restarts of a day, and the time between two.
func (d *decider) restartedLately(*change) Verdict {
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

// onlyReplica refuses to restart the only replica of a workload, unless its owner allows it, a kill asks for it, or it
// does not serve anyway.
func (d *decider) onlyReplica(ch *change) Verdict {
	evicted := ch.kind&(evictions|fresh) != 0
	if len(d.pods) != 1 || d.Policy.SingleReplicaMayRestart || ch.urgent || evicted && !ch.pod.serves() {
		return Verdict{}
	}
	return Verdict{v1alpha1.ReasonSingleReplica,
		"the only replica would restart: set sizing.disruption.singleReplica to Allowed to permit it"}
}

// changesQoS refuses a resize that would move the pod to another QoS class, which the API server does not take. A
// Burstable pod that would become Guaranteed is left to its refusal: whether every other resource of the pod is
// guaranteed, CPU among them, memfit does not keep.
func (d *decider) changesQoS(ch *change) Verdict {
	switch {
	case ch.pod.limited(): // its own size decides, in which what is equal stays equal
	case ch.pod.QoS == "Guaranteed" && ch.to.Request != ch.to.Limit:
		return refuse(v1alpha1.ReasonQoSClass,
			"the pod is Guaranteed: request %s must equal limit %s (requestPolicy: EqualsLimit)", ch.to.Request, ch.to.Limit)
	case ch.pod.QoS == "BestEffort":
		return Verdict{v1alpha1.ReasonQoSClass,
			"the pod is BestEffort: only a new pod can be given resources, not a resize"}
	}
	return Verdict{}
}

// outsideRange refuses a limit that the namespace's LimitRanges do not admit.
func (d *decider) outsideRange(ch *change) Verdict {
	r, limit := &ch.Range, ch.to.Limit
	switch {
	case r.Max > 0 && limit > r.Max:
		return refuse(v1alpha1.ReasonLimitRange, "limit %s is above the maximum of %s in LimitRange %s", limit, r.Max, r.Name)
	case r.Min > 0 && limit > 0 && limit < r.Min:
		return refuse(v1alpha1.ReasonLimitRange, "limit %s is below the minimum of %s in LimitRange %s", limit, r.Min, r.Name)
	case ch.c.Shared, ch.pod.follows(): // the limit in question is the pod's
		return Verdict{}
	}
	if why := d.inadmissible(ch, ch.to); why != "" {
		return Verdict{v1alpha1.ReasonLimitRange, why}
	}
	return Verdict{}
}

// inadmissible returns why LimitRanges would not admit the pod in which a container has this size and others get
// theirs; empty: they would.
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

// allow cuts a size to what the namespace allows of it, and returns why that is less. What it allows no part of is left
// to the gates. What the successor of an evicted pod gets is cut when it is created.
func (d *decider) allow(ch *change) (less Verdict) {
	if ch.c.Shared {
		return Verdict{} // the limit in question is the pod's
	}
	cuts := []func(*change) (memory.Size, Verdict){d.inRange}
	if ch.kind&inPlace != 0 {
		cuts = append(cuts, d.inPod, d.inQuota)
	}
	for _, cut := range cuts {
		if within, why := cut(ch); why != (Verdict{}) && ch.partly(within) {
			less, ch.to = why, within
		}
	}
	return less
}

// inRange returns the part of a size that LimitRanges allow a container, and why that is not all.
func (d *decider) inRange(ch *change) (memory.Size, Verdict) {
	within := ch.Range.Within(ch.to)
	switch {
	case within == ch.to:
		return ch.to, Verdict{}
	case ch.Range.Ratio == 0 && within.Limit < ch.to.Limit:
		within = ch.less(within.Limit, within.Request)
	}
	return within, cmp.Or(d.outsideRange(ch), refuse(v1alpha1.ReasonLimitRange, "%s is not allowed by LimitRange %s",
		inWords(ch.to), ch.Range.Name))
}

// inPod returns the part of a raise that LimitRanges allow beside what the other containers of the pod have and get,
// and why that is not all.
func (d *decider) inPod(ch *change) (memory.Size, Verdict) {
	if ch.kind&lowerings != 0 {
		return ch.to, Verdict{}
	}
	with := func(limit memory.Bytes) memory.Size { return ch.less(limit, ch.to.Request) }
	most, why := constraints.Most(ch.from.Limit, ch.to.Limit, func(limit memory.Bytes) string {
		return d.inadmissible(ch, with(limit))
	})
	if why == "" || d.inadmissible(ch, with(most)) != "" {
		return ch.to, Verdict{}
	}
	return with(most), Verdict{v1alpha1.ReasonLimitRange, why}
}

// inQuota returns the part of a raise that a quota leaves, and why that is not all. Of the limits or requests that do
// not fit, only a kill or a rollback takes a part, because others may need it.
func (d *decider) inQuota(ch *change) (memory.Size, Verdict) {
	over, from, left := d.overQuota(ch), ch.from.Max(ch.c.Spec), d.quotaLeft(ch)
	if over == (Verdict{}) {
		return ch.to, over
	}
	part := func(from, to, left memory.Bytes) memory.Bytes {
		switch {
		case to.Minus(from)*d.sharing(ch) <= left:
			return to
		case ch.urgent:
			return from.Plus(left)
		}
		return from
	}
	return ch.less(
		part(from.Limit, ch.to.Limit, left.Limit), part(from.Request, ch.to.Request, left.Request),
	), over
}

// less is the new size with a lower limit or request. A request that equals the limit still does. Another one stays
// below it: a pod that became Guaranteed by that would be refused.
func (ch *change) less(limit, request memory.Bytes) memory.Size {
	switch {
	case limit == 0: // it has none
	case ch.to.Request == ch.to.Limit:
		limit = min(limit, request)
		request = limit
	case limit < ch.to.Limit && request >= limit:
		request = limit.Minus(memory.MiB)
	}
	return memory.Size{Limit: limit, Request: request}
}

// partly reports whether a size is a part of the change, and worth it. Of a raise that restarts nothing, that of the
// request is one.
func (ch *change) partly(size memory.Size) bool {
	sameWay := cmp.Compare(size.Limit, ch.from.Limit) == cmp.Compare(ch.to.Limit, ch.from.Limit)
	requested := size.Limit == ch.from.Limit && ch.kind&(lowerings|restarting) == 0 && size.Request > ch.from.Request
	return (sameWay || requested) && recommend.Differs(have(ch.c), size, ch.Policy)
}

// quotaLeft is what a quota leaves for a change, in whole MiB, when those that it does not count yet have theirs.
func (d *decider) quotaLeft(ch *change) memory.Size {
	left := memory.Size{Limit: cmp.Or(ch.Quota.Limits, memory.Max), Request: cmp.Or(ch.Quota.Requests, memory.Max)}
	taken := d.taken
	if ch.kind != podSize {
		taken = taken.Plus(ch.pod.more(ch.sizes))
	}
	return memory.Size{
		Limit:   left.Limit.Minus(taken.Limit).FloorTo(memory.MiB),
		Request: left.Request.Minus(taken.Request).FloorTo(memory.MiB),
	}
}

// more is what quotas count in addition when a pod gets these sizes.
func (p *Pod) more(sizes map[string]memory.Size) (sum memory.Size) {
	for name, size := range sizes {
		if c, _ := p.container(name); p.limited() == (name == WholePod) {
			sum = sum.Plus(memory.Size{
				Limit: size.Limit.Minus(c.Spec.Limit), Request: size.Request.Minus(c.Spec.Request),
			})
		}
	}
	return sum
}

// sharing is how many pods a raise has to fit the quota for: one that no kill asks for has to for all that lack it,
// which would take what is left from pods that are to be created.
func (d *decider) sharing(ch *change) memory.Bytes {
	if ch.urgent {
		return 1
	}
	return memory.Bytes(max(d.waiting, 1))
}

// overQuota refuses a raise that does not fit the ResourceQuota.
func (d *decider) overQuota(ch *change) Verdict {
	if ch.kind&inPlace != 0 && ch.pod.follows() && ch.pod.limited() {
		return Verdict{} // quotas count the pod as a whole
	}
	replicas, from, left := d.sharing(ch), ch.from.Max(ch.c.Spec), d.quotaLeft(ch)
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

// inUse refuses to lower a limit onto what is used now or, unless it is the end of a loan, was within the last day.
func (d *decider) inUse(ch *change) Verdict {
	limit, c := ch.to.Limit, &ch.c
	switch {
	case c.Demand.Percent(105) >= limit: // what is counted moves by a few percent between two samples
		return refuse(v1alpha1.ReasonUsageTooHigh, "demand is %s right now: a limit of %s would kill it", c.Demand, limit)
	case ch.kind == lowerQuietly && c.Usage >= limit: // the kubelet's comparison, which page cache counts in
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

// frozenHeap refuses to lower a limit below the heap cap that a process keeps: the runtime would go on filling it.
func (d *decider) frozenHeap(ch *change) Verdict {
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

// beyondNode refuses a request that the node could not take if it were empty. Whether it fits now, its kubelet
// decides.
func (d *decider) beyondNode(ch *change) Verdict {
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

// restartsShared refuses to raise the pod's limit where that restarts a container that has none of its own.
func (d *decider) restartsShared(ch *change) Verdict {
	for _, c := range ch.pod.Containers {
		if _, asked := ch.sizes[c.Name]; !asked && c.Shared && c.RestartsOnResize && ch.to.Limit > ch.from.Limit {
			return refuse(v1alpha1.ReasonDisruptionBudget, "container %s has no limit of its own and restarts when the pod's "+
				"changes (its resizePolicy), which it may not now", c.Name)
		}
	}
	return Verdict{}
}

// queryAgainst refuses to lower a limit while the owner's rollbackQuery has series, or its answer is unknown.
func (d *decider) queryAgainst(*change) Verdict {
	if why := d.QueryResult.Against(d.Now); why != "" {
		return Verdict{v1alpha1.ReasonWaitingForQuery, "no limit is lowered while sizing.disruption." + why}
	}
	return Verdict{}
}

// windowClosed refuses what lowers a limit, restarts or evicts while no maintenance window is open. A raise that
// restarts nothing or that a kill asks for waits only where the owner wants all raises to.
func (d *decider) windowClosed(ch *change) Verdict {
	harmless := ch.kind == raiseQuietly || ch.urgent && ch.kind&(raiseByRestart|raiseByEviction) != 0
	if harmless && !d.Policy.IncreasesInWindows || ch.kind == raiseQuietly && ch.lowersRequest() {
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

// ownersDay refuses to lower a limit below what its owner asks for within a day: an owner's edit is evidence, too.
func (d *decider) ownersDay(ch *change) Verdict {
	c := &ch.c
	if !lowers(c.Owner.Limit, ch.to.Limit) || !d.Now.Before(c.OwnerUntil) {
		return Verdict{}
	}
	d.requeueIn(c.OwnerUntil.Sub(d.Now))
	return refuse(v1alpha1.ReasonNotEnoughEvidence,
		"its owner set limit %s within the last day; it is not lowered before %s", none(c.Owner.Limit),
		format.Time(c.OwnerUntil))
}

// starting refuses to lower the limit of a container that has only just started: a new version, or a large import at
// the start, needs what the history of its predecessors does not show.
func (d *decider) starting(ch *change) Verdict {
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

// otherCanary refuses to lower a limit that no pod has proven while another pod is the first to run with it.
func (d *decider) otherCanary(ch *change) Verdict {
	if proven := d.State.Proven(ch.c.Name, ch.c.Program).Limit; proven > 0 && proven <= ch.to.Limit {
		return Verdict{}
	}
	if uid, name, found := d.canary(); found && uid != ch.pod.UID {
		return refuse(v1alpha1.ReasonWatching, "pod %s runs first with a lower limit, and is watched", name)
	}
	return Verdict{}
}

// besideALoan refuses to return a loan while pods with a lower limit are watched, and to lower a limit while a loan is
// being returned, or another lower limit outlasts its change: a change under way either lowers limits or does not, and
// one that is replaced is not followed.
func (d *decider) besideALoan(ch *change) Verdict {
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

// besideARefusal refuses to resize a container for a while after the same sizes were refused for others of its pod: of
// what is refused one by one, only the last would be remembered. A kill does not wait for that.
func (d *decider) besideARefusal(ch *change) Verdict {
	r, found := d.State.refusal(ch.pod.UID)
	if _, about := r.Sizes[ch.c.Name]; !found || about || ch.urgent || r.Reason == v1alpha1.ReasonDisruptionBudget ||
		!d.stillAsked(ch.pod, r) {
		return Verdict{}
	}
	return Verdict{r.Reason, r.Why}
}

// othersChange refuses to evict a pod while the fresh one for another is not ready: it would be unknown whose successor
// a new pod is. It also refuses to restart a pod whose size is being changed, or while another is evicted for its size.
func (d *decider) othersChange(ch *change) Verdict {
	begun := func(st Step) bool { return st.UID == ch.pod.UID && st.Phase != Deferred }
	switch r := d.State.Restart; {
	case r != nil:
		return refuse(v1alpha1.ReasonDisruptionBudget, "pod %s was evicted at %s, and its successor is not ready yet",
			r.Pod, format.Time(r.At))
	case ch.kind != fresh:
	case slices.ContainsFunc(d.State.Steps, begun):
		return Verdict{v1alpha1.ReasonDisruptionBudget, "its size is being changed"}
	case slices.ContainsFunc(d.State.Steps, func(st Step) bool { return st.evicts() }):
		return Verdict{v1alpha1.ReasonDisruptionBudget, "another pod is evicted for its size: one at a time"}
	}
	return Verdict{}
}

// tooFewServe refuses to disturb one pod more than maxUnavailable. One that is disturbed already is not one more. A pod
// that does not serve anyway is not a loss, unless its limit is lowered where it runs: then only what memfit changes
// counts.
func (d *decider) tooFewServe(ch *change) Verdict {
	a := d.State.Availability(d.Pods, 0, ch.pod.UID)
	if !ch.pod.serves() && ch.kind&(lowerQuietly|lowerByRestart) == 0 {
		a.Wanted = a.Serving + a.Changing
	}
	if why := a.TooFew(d.Policy.MaxUnavailable); why != "" {
		return Verdict{v1alpha1.ReasonDisruptionBudget, why}
	}
	return Verdict{}
}

// overChangeBudget refuses a change that exceeds the change budget of the cluster.
func (d *decider) overChangeBudget(ch *change) Verdict {
	cost := ch.cost()
	switch {
	case d.Allowance == nil || cost.Bytes == 0 && cost.Pods == 0 || d.waitsForNoBudget(ch):
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
