// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"cmp"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// Hold is how long a container must need no more than its previous limit until a loan is returned, and how far back
	// the loans of a node count. An hour has four times the longest period of usual cron jobs and caches.
	Hold = time.Hour
	// NodeLoansMost bounds what the agent of one node can cause within Hold, whatever it claims. A node of 110 pods that
	// needs more has another problem than a burst.
	NodeLoansMost = 12
	// WorkloadLoansMost bounds the loans that the checkpoint of a workload keeps: those that last, and those of the last
	// Hold. A loan that the checkpoint does not have is neither returned nor counted, so none is given beyond that.
	WorkloadLoansMost = 32
	// StaleAfter is how old an alarm may be. It is about half a second, and reaches the manager within one. What is older
	// was delayed, as after a change of leaders, and its container has been killed or not since. It also bounds how far
	// clocks differ.
	StaleAfter = 10 * time.Second
	// FutureMost is how far the clock of a node may be ahead.
	FutureMost = 5 * time.Second
	// MostPercent of the limit before its loans is what a container gets in all: as much as the highest
	// sizing.oom.factorPercent allows after a kill. A ramp of minutes and a leak are alike while they last. What is lent
	// costs when it is used, so that a loan has all of that at once, whatever the growth: a ramp needs no second one, and
	// a leak gets none. Growth of half a second may be wrong, or claimed.
	MostPercent = 400
	// worthPercent of the limit is the least that is lent where something bounds the loan: less only delays the kill.
	worthPercent = 5
	// pages: the kernel rounds limits down to whole pages, of 64 KiB at most.
	pages = 64 * memory.KiB
)

// Known is the manager's own view of the container that an alarm is about.
type Known struct {
	// ID of the instance that runs, without the prefix of its runtime; "": none runs.
	ID string
	// Limit is the effective limit in the container's status, and Asked the one in the pod's spec; 0: none. They differ
	// while a resize is in flight.
	Limit, Asked memory.Bytes
	// Demand is the newest reading by the kubelet, and DemandAt its time; zero: there is none.
	Demand   memory.Bytes
	DemandAt time.Time
	// Handled is the sequence of the last alarm of the pod that this process decided; 0: none was.
	Handled int64
	// Loans is the number of loans to pods of the workload that its checkpoint has.
	Loans int
}

// Policy is what the owner of the container allows.
type Policy struct {
	// Enabled: the profile enables rescues for this container, and its mode resizes running pods.
	Enabled bool
	// Paused: the workload, its namespace or memfit is paused. Conflict: something else manages the workload's memory.
	Paused, Conflict bool
	// RestartsOnResize: the container's resizePolicy is RestartContainer for memory.
	RestartsOnResize bool
	// Bounds of the limit. Each has its cause: LimitMax, LimitRange or PodLimit.
	Bounds []Bound
	// Rooms are what others need as well: ResourceQuota, NodeFull and ChangeBudget.
	Rooms []Room
}

// Bound is the largest limit that something allows the container.
type Bound struct {
	Cause Cause
	Most  memory.Bytes
	// Why it is not more, where the cause alone does not say it.
	Why string
}

// Room is how much memory is left of something. A container has at most half of it on loan.
type Room struct {
	Cause Cause
	Left  memory.Bytes
}

// Node is the state of the pod's node.
type Node struct {
	// ShortOfMemory: the node has the condition MemoryPressure.
	ShortOfMemory bool
	// Loans is the number of loans to all pods of the node within Hold.
	Loans int
}

// Decide returns the loan for an alarm, or why there is none. Exactly one of the two results is not nil. loans are the
// earlier ones to this pod, to whatever container. A loan for this very alarm that was written down and not sent is
// returned again. Of a new one, the caller fills in what Decide does not know.
func Decide(a Alarm, known Known, policy Policy, node Node, loans []Loan, now time.Time) (*Loan, *Refusal) {
	d := decision{a, known, policy, node, loans, now}
	for _, refuses := range []func(*decision) Cause{
		unbelievable, // it is not a claim about this container now
		contradicted, // it is not what the manager sees
		notPermitted, // the owner did not ask for it, or the node's other pods would pay for it
		tooMany,      // it is more than loans may cause
	} {
		if cause := refuses(&d); cause != "" {
			return nil, d.refusal(Bound{Cause: cause})
		}
	}
	if unsent := d.unsent(); unsent != nil {
		return unsent, nil
	}
	return d.lend()
}

type decision struct {
	alarm  Alarm
	known  Known
	policy Policy
	node   Node
	loans  []Loan
	now    time.Time
}

func (d *decision) refusal(b Bound) *Refusal {
	left := min(max(d.alarm.Kill().Sub(d.now), 0), max(d.alarm.Left, 0))
	return &Refusal{Alarm: d.alarm, Cause: b.Cause, Most: b.Most, Why: b.Why, Left: left}
}

func unbelievable(d *decision) Cause {
	age := d.now.Sub(d.alarm.At)
	switch {
	case d.alarm.ID == "" || d.alarm.ID != d.known.ID:
		return OtherInstance
	case d.alarm.Sequence <= d.handled() && d.unsent() == nil:
		return Replayed
	case age > StaleAfter:
		return Stale
	case age < -FutureMost:
		return FromTheFuture
	}
	return ""
}

// handled is the highest sequence of the pod that was decided or lent for, by whatever process.
func (d *decision) handled() int64 {
	last := d.known.Handled
	for i := range d.loans {
		last = max(last, d.loans[i].Sequence)
	}
	return last
}

// unsent is the loan for this alarm that was written down and that the pod does not show: its resize failed, or an
// earlier leader ended before it sent it. Nil: there is none.
func (d *decision) unsent() *Loan {
	for i := range d.loans {
		l := d.loans[i]
		if l.Container == d.alarm.Container && l.Sequence == d.alarm.Sequence && l.From.Limit == d.known.Asked {
			return &l
		}
	}
	return nil
}

// contradicted reports a claim that is wrong in itself, about another limit than the effective one, or far above what
// the kubelet read at the same time or later. The kubelet's readings are seconds older as a rule, and a burst is not in
// them, so that they prove nothing else.
func contradicted(d *decision) Cause {
	a, k := &d.alarm, &d.known
	sameTime := !k.DemandAt.IsZero() && k.DemandAt.After(a.At.Add(-time.Second))
	switch {
	case !Near(a.Demand, a.Limit) || a.PerSecond <= 0 || a.Left < 0 || !plausible(a):
		return Contradicted
	case max(k.Limit, k.Asked) > a.Limit.Plus(pages):
		return AlreadyRaised
	case k.Limit <= 0 || a.Limit > k.Limit.Plus(pages):
		return Contradicted
	case sameTime && k.Demand < a.Demand/2:
		return Contradicted
	}
	return ""
}

// plausible reports whether the time left follows from the other numbers: within a tenth and 100 ms, because each of
// them is rounded.
func plausible(a *Alarm) bool {
	want := timeTo(a.Limit.Minus(a.Demand), a.PerSecond)
	return (a.Left - want).Abs() <= want/10+100*time.Millisecond
}

func notPermitted(d *decision) Cause {
	switch {
	case !d.policy.Enabled:
		return NotEnabled
	case d.policy.Paused:
		return Paused
	case d.policy.Conflict:
		return Conflict
	case d.policy.RestartsOnResize:
		return RestartsOnResize
	case d.node.ShortOfMemory:
		return NodeShortOfMemory
	}
	return ""
}

// tooMany refuses a loan beyond those that were given. One that was not sent is among them.
func tooMany(d *decision) Cause {
	switch {
	case d.unsent() != nil:
		return ""
	case d.node.Loans >= NodeLoansMost:
		return NodeBound
	case d.known.Loans >= WorkloadLoansMost:
		return WorkloadBound
	case slices.ContainsFunc(d.loans, func(l Loan) bool { return l.Failed && l.Container == d.alarm.Container }):
		return NotEffective
	}
	return ""
}

// base is the limit of the container without the loans that it has.
func (d *decision) base() memory.Bytes {
	base := d.known.Asked
	for i := range d.loans {
		if l := &d.loans[i]; l.Container == d.alarm.Container && l.Returned.IsZero() {
			base = min(base, l.From.Limit)
		}
	}
	return base
}

// lend returns the loan that all bounds allow. Where the tightest one leaves less than worthPercent, nothing is lent.
func (d *decision) lend() (*Loan, *Refusal) {
	limit, base := d.alarm.Limit, d.base()
	lent := d.known.Asked.Minus(base)
	bounds := append(slices.Clip(d.policy.Bounds), Bound{Cause: LeakSuspected, Most: base.Percent(MostPercent)})
	for _, r := range d.policy.Rooms {
		bounds = append(bounds, Bound{Cause: r.Cause, Most: base.Plus(r.Left.Plus(lent) / 2)})
	}
	tightest := slices.MinFunc(bounds, func(a, b Bound) int { return cmp.Compare(a.Most, b.Most) })
	to := max(tightest.Most, 0).FloorTo(memory.MiB)
	if worth := max(limit.Percent(worthPercent), memory.MiB); to < limit.Plus(worth) {
		return nil, d.refusal(tightest)
	}
	return &Loan{
		Container: d.alarm.Container, Sequence: d.alarm.Sequence, At: d.now,
		From: memory.Size{Limit: limit}, To: memory.Size{Limit: to},
	}, nil
}

// timeTo is how long growth takes to fill what is left; at most a day, which is as good as never here.
func timeTo(left, perSecond memory.Bytes) time.Duration {
	if perSecond <= 0 {
		return never
	}
	seconds := float64(left) / float64(perSecond)
	if seconds >= never.Seconds() {
		return never
	}
	return time.Duration(seconds * float64(time.Second))
}

// never is longer than any growth is predicted.
const never = 24 * time.Hour
