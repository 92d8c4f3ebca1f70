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
	// Hold is how long demand must be low before a loan ends, and the period in which the loans of a node are counted. It
	// is four times the longest period of usual cron jobs and caches.
	Hold = time.Hour
	// MaxNodeLoans bounds the loans of one node within Hold. If a node of 110 pods needs more, the cause is not a burst.
	MaxNodeLoans = 12
	// MaxWorkloadLoans bounds the loans in a workload's checkpoint: current ones, and ended ones for Hold.
	MaxWorkloadLoans = 32
	// StaleAfter is the maximum age of an alarm, including the difference of clocks. An alarm is sent about half a second
	// before the limit is reached, and reaches the manager within a second, except after a change of leaders.
	StaleAfter = 10 * time.Second
	// MaxFuture is how far a node's clock may be ahead.
	MaxFuture = 5 * time.Second
	// MaxPercent bounds a container's limit with loans, in percent of the limit without, as the highest
	// sizing.oom.factorPercent after a kill. A loan is always as large as its bounds allow, because the growth in an alarm
	// may be wrong or forged, and memory that is not used costs nothing. So fast growth needs only one loan.
	MaxPercent = 400
	// worthPercent is the least loan, in percent of the limit. A smaller one would only delay the kill.
	worthPercent = 5
	// pageSize is the largest page. The kernel rounds limits down to whole pages.
	pageSize = 64 * memory.KiB
)

// Known is the manager's own data about the container of an alarm.
type Known struct {
	ID       string       // the container ID of the running instance without the runtime's prefix; "": none
	Limit    memory.Bytes // the effective limit; 0: none
	Asked    memory.Bytes // the limit in the pod's spec, which differs during a resize; 0: none
	Demand   memory.Bytes // the kubelet's newest reading
	DemandAt time.Time    // the time of that reading; zero: none
	Handled  int64        // the sequence of the pod's last alarm that this process decided; 0: none
	Loans    int          // the number of loans in the workload's checkpoint
}

// Policy has the owner's settings for the container, and the bounds of its limit.
type Policy struct {
	Enabled          bool    // the profile enables rescues for this container, and its mode resizes running pods
	Paused           bool    // the workload, its namespace or memfit is paused
	Conflict         bool    // another controller manages the workload's memory
	RestartsOnResize bool    // the container's resizePolicy is RestartContainer for memory
	Bounds           []Bound // bounds of the limit: LimitMax, LimitRange or PodLimit
	Shares           []Share // unused shared memory: ResourceQuota, NodeFull and ChangeBudget
}

// Bound is the largest limit that one cause allows for the container.
type Bound struct {
	Cause Cause
	Most  memory.Bytes
	Why   string // details of the cause; "": none
}

// Share is the unused part of shared memory. A container may get at most half of it.
type Share struct {
	Cause Cause
	Left  memory.Bytes
}

// Node is the state of the pod's node.
type Node struct {
	ShortOfMemory bool // the node has the condition MemoryPressure
	Loans         int  // the number of loans to all pods of the node within Hold
}

// Decide returns either the loan for an alarm or a refusal. loans are the earlier loans to containers of the pod. If
// one of them is for this alarm and was not sent, Decide returns it again. The caller sets the other fields of a new
// loan.
func Decide(a Alarm, known Known, policy Policy, node Node, loans []Loan, now time.Time) (*Loan, *Refusal) {
	d := decision{a, known, policy, node, loans, now}
	if cause := cmp.Or(d.outdated(), d.contradicted(), d.notPermitted(), d.tooMany()); cause != "" {
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

// outdated refuses an alarm that is not about the running instance, not new, or has an impossible time.
func (d *decision) outdated() Cause {
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

// handled returns the highest sequence of the pod's alarms that this process decided, or that led to a loan.
func (d *decision) handled() int64 {
	last := d.known.Handled
	for _, l := range d.loans {
		last = max(last, l.Sequence)
	}
	return last
}

// unsent returns the stored loan for this alarm whose resize was not sent, because the pod's spec still has the
// previous limit; nil: none.
func (d *decision) unsent() *Loan {
	for _, l := range d.loans {
		if l.Container == d.alarm.Container && l.Sequence == d.alarm.Sequence && l.From.Limit == d.known.Asked {
			return &l
		}
	}
	return nil
}

// contradicted refuses an alarm that is inconsistent, about a limit other than the effective one, or with a demand far
// above a reading of the kubelet of the same time or later. An older reading cannot contradict a burst.
func (d *decision) contradicted() Cause {
	a, k := &d.alarm, &d.known
	sameTime := !k.DemandAt.IsZero() && k.DemandAt.After(a.At.Add(-time.Second))
	switch {
	case !Near(a.Demand, a.Limit) || a.PerSecond <= 0 || a.Left < 0 || !plausible(a):
		return Contradicted
	case max(k.Limit, k.Asked) > a.Limit.Plus(pageSize):
		return AlreadyRaised
	case k.Limit <= 0 || a.Limit > k.Limit.Plus(pageSize):
		return Contradicted
	case sameTime && k.Demand < a.Demand/2:
		return Contradicted
	}
	return ""
}

// plausible reports whether the time left agrees with the other numbers, within 10 % and 100 ms, because of rounding.
func plausible(a *Alarm) bool {
	want := timeTo(a.Limit.Minus(a.Demand), a.PerSecond)
	return (a.Left - want).Abs() <= want/10+100*time.Millisecond
}

// notPermitted refuses a loan that the owner does not permit, or that would take memory from other pods.
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

// tooMany refuses a loan above the bounds of their number, or after a failed one. An unsent loan was already counted.
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

// lend returns the largest loan that all bounds allow, or a refusal if that is less than worthPercent.
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

// timeTo returns how long growth takes to use left bytes; never without growth, or after more than that.
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
