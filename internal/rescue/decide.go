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
	// Hold is how long demand must be below the previous limit before a loan is returned, and the period in which loans
	// of a node count: four times the longest period of usual cron jobs and caches.
	Hold = time.Hour
	// MaxNodeLoans bounds the loans of one node within Hold. A node of 110 pods that needs more has no mere burst.
	MaxNodeLoans = 12
	// MaxWorkloadLoans bounds the loans in a workload's checkpoint: current ones, and ended ones for Hold.
	MaxWorkloadLoans = 32
	// StaleAfter is the maximum age of an alarm, which also bounds the difference of clocks. An alarm predicts about half
	// a second, and reaches the manager within one, except after a change of leaders.
	StaleAfter = 10 * time.Second
	// MaxFuture is how far a node's clock may be ahead.
	MaxFuture = 5 * time.Second
	// MaxPercent bounds a container's limit with loans, in percent of the limit before, as the highest
	// sizing.oom.factorPercent after a kill. Only used memory costs, so a loan has the full amount, for any growth,
	// which may be misjudged or forged: a ramp needs no second loan, and a leak gets none.
	MaxPercent = 400
	// worthPercent of the limit is the least loan if something bounds it: less only delays the kill.
	worthPercent = 5
	// pages: the kernel rounds limits down to whole pages, of 64 KiB at most.
	pages = 64 * memory.KiB
)

// Known is the manager's own data about the container of an alarm.
type Known struct {
	ID string // of the running instance, without the prefix of its runtime; "": none
	// Limit is the effective limit, Asked the one in the pod's spec; 0: none. They differ while a resize is in flight.
	Limit, Asked memory.Bytes
	// Demand is the kubelet's newest reading, and DemandAt its time; zero: none.
	Demand   memory.Bytes
	DemandAt time.Time
	Handled  int64 // the sequence of the pod's last alarm that this process decided; 0: none
	Loans    int   // the number of loans in the workload's checkpoint
}

// Policy is the policy of the container's owner.
type Policy struct {
	// Enabled is true if the profile enables rescues for this container, and its mode resizes running pods.
	Enabled bool
	// Paused is true if the workload, its namespace or memfit is paused. Conflict is true if something else manages the
	// workload's memory.
	Paused, Conflict bool
	RestartsOnResize bool    // the container's resizePolicy is RestartContainer for memory
	Bounds           []Bound // of the limit: LimitMax, LimitRange or PodLimit
	Shares           []Share // of shared amounts: ResourceQuota, NodeFull and ChangeBudget
}

// Bound is the largest limit that something allows for the container.
type Bound struct {
	Cause Cause
	Most  memory.Bytes
	Why   string // details of the cause; "": none
}

// Share is the unused part of shared memory. A container may borrow at most half of it.
type Share struct {
	Cause Cause
	Left  memory.Bytes
}

// Node is the state of the pod's node.
type Node struct {
	ShortOfMemory bool // the node has the condition MemoryPressure
	Loans         int  // the number of loans to all pods of the node within Hold
}

// Decide returns the loan for an alarm, or the refusal; the other is nil. loans are the earlier ones to containers of
// the pod. A loan for this alarm that was stored and not sent is returned again. The caller completes a new one.
func Decide(a Alarm, known Known, policy Policy, node Node, loans []Loan, now time.Time) (*Loan, *Refusal) {
	d := decision{a, known, policy, node, loans, now}
	if cause := cmp.Or(d.unbelievable(), d.contradicted(), d.notPermitted(), d.tooMany()); cause != "" {
		return nil, d.refusal(Bound{Cause: cause})
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

// unbelievable refuses an alarm that is not about the current instance, or not new.
func (d *decision) unbelievable() Cause {
	age := d.now.Sub(d.alarm.At)
	switch {
	case d.alarm.ID == "" || d.alarm.ID != d.known.ID:
		return OtherInstance
	case d.alarm.Sequence <= d.handled() && d.unsent() == nil:
		return Replayed
	case age > StaleAfter:
		return Stale
	case age < -MaxFuture:
		return FromTheFuture
	}
	return ""
}

// handled returns the highest sequence of the pod that any process decided or lent for.
func (d *decision) handled() int64 {
	last := d.known.Handled
	for _, l := range d.loans {
		last = max(last, l.Sequence)
	}
	return last
}

// unsent returns the stored loan for this alarm that the pod does not have, because its resize was not sent; nil: none.
func (d *decision) unsent() *Loan {
	for _, l := range d.loans {
		if l.Container == d.alarm.Container && l.Sequence == d.alarm.Sequence && l.From.Limit == d.known.Asked {
			return &l
		}
	}
	return nil
}

// contradicted refuses a claim that is inconsistent, about a limit other than the effective one, or far above a
// kubelet's reading of the same time or later. Older readings miss a burst, so they prove nothing.
func (d *decision) contradicted() Cause {
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

// plausible reports whether the time left matches the other numbers, within a tenth and 100 ms because of rounding.
func plausible(a *Alarm) bool {
	want := timeTo(a.Limit.Minus(a.Demand), a.PerSecond)
	return (a.Left - want).Abs() <= want/10+100*time.Millisecond
}

// notPermitted refuses a loan that is not enabled, or at the cost of other pods.
func (d *decision) notPermitted() Cause {
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

// tooMany refuses a loan beyond the bounds, which include unsent loans.
func (d *decision) tooMany() Cause {
	switch {
	case d.unsent() != nil:
		return ""
	case d.node.Loans >= MaxNodeLoans:
		return NodeBound
	case d.known.Loans >= MaxWorkloadLoans:
		return WorkloadBound
	case slices.ContainsFunc(d.loans, func(l Loan) bool { return l.Failed && l.Container == d.alarm.Container }):
		return NotEffective
	}
	return ""
}

// base returns the limit of the container without its loans.
func (d *decision) base() memory.Bytes {
	base := d.known.Asked
	for _, l := range d.loans {
		if l.Container == d.alarm.Container && l.Returned.IsZero() {
			base = min(base, l.From.Limit)
		}
	}
	return base
}

// lend returns the loan that all bounds allow. If the tightest one leaves less than worthPercent, it refuses.
func (d *decision) lend() (*Loan, *Refusal) {
	limit, base := d.alarm.Limit, d.base()
	lent := d.known.Asked.Minus(base)
	bounds := append(slices.Clip(d.policy.Bounds), Bound{Cause: LeakSuspected, Most: base.Percent(MaxPercent)})
	for _, r := range d.policy.Shares {
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

// timeTo returns how long growth takes to fill the rest; at most a day, which means never here.
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

// never is longer than any prediction.
const never = 24 * time.Hour
