// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import "time"

const (
	// maxSharedTime is the processor time of one inspection that counts against all containers. Large heaps, and programs
	// built to be expensive, take more; their namespace alone waits for the rest.
	maxSharedTime = 100 * time.Millisecond
	// maxInspect is the share of a core, in percent, that inspections may take, and maxUrgent while a container near
	// its limit changes or a request waits, regardless of other work. It also bounds the cost of a pod template that
	// requests inspection of all its pods.
	maxInspect = 0.5
	maxUrgent  = 5
	// maxAgentPercent is the share of a core, in percent, that the whole agent may take: inspections wait longer where
	// readings, writes, the garbage collector and debts of namespaces leave them less than maxInspect.
	maxAgentPercent = 0.9
	minInspect      = 0.2             // is guaranteed
	othersEvery     = 5 * time.Second // between measurements of the agent's other work
	othersSettle    = 0.3             // weight of a new figure in their moving average
)

// allowance bounds the processor time of inspections. On a busy node they take longer at the same cost, so their
// duration does not count.
type allowance struct {
	normal, urgent debts

	others           float64   // percent of a core that the agent uses for other work
	noted            time.Time // when these were measured; zero: never
	inspected, spent time.Duration
	all              time.Duration // processor time of all inspections, at most maxSharedTime each
}

// of returns the debts of urgent or of other inspections.
func (a *allowance) of(urgent bool) *debts {
	if urgent {
		return &a.urgent
	}
	return &a.normal
}

// charge records an inspection and the processor time that the agent has used so far.
func (a *allowance) charge(namespace string, took, agent time.Duration, now time.Time) {
	shared := min(took, maxSharedTime)
	a.all += shared
	a.measure(agent, now)
	a.urgent.charge(namespace, took, now.Add(rest(shared, maxUrgent)))
	a.normal.charge(namespace, took, now.Add(rest(shared, min(max(maxAgentPercent-a.others, minInspect), maxInspect))))
}

// measure measures the agent's processor time without inspections.
func (a *allowance) measure(agent time.Duration, now time.Time) {
	since := now.Sub(a.noted)
	if !a.noted.IsZero() && since < othersEvery {
		return
	}
	if !a.noted.IsZero() {
		others := 100 * float64((agent-a.spent)-(a.all-a.inspected)) / float64(since)
		a.others += othersSettle * (others - a.others)
	}
	a.noted, a.inspected, a.spent = now, a.all, agent
}

// pay pays the debts of namespaces with the time since the last call.
func (a *allowance) pay(now time.Time) {
	a.normal.pay(now, maxInspect)
	a.urgent.pay(now, maxUrgent)
}

// rest returns the period of which the spent time is a share, in percent.
func rest(spent time.Duration, share float64) time.Duration {
	return time.Duration(float64(spent) * 100 / share)
}

// debts make inspections wait for the cost of earlier ones: all of them for their shared part, and a namespace alone
// for what its own used above [maxSharedTime]. All debts together are paid at a share of a core, split equally among
// namespaces, so that a small debt does not wait for a large one.
type debts struct {
	next time.Time // when an inspection may begin
	owed map[string]time.Duration
	paid time.Time // until then
}

// rested reports whether an inspection may begin.
func (d *debts) rested(now time.Time) bool { return !now.Before(d.next) }

// charge records an inspection; the next may begin at next.
func (d *debts) charge(namespace string, spent time.Duration, next time.Time) {
	d.next = next
	if spent <= maxSharedTime {
		return
	}
	if d.owed == nil {
		d.owed = map[string]time.Duration{}
	}
	d.owed[namespace] += spent
}

// pay pays debts with a share, in percent, of the time since the last call.
func (d *debts) pay(now time.Time, share float64) {
	each := float64(now.Sub(d.paid)) * share / 100 / float64(max(len(d.owed), 1))
	for namespace := range d.owed {
		if d.owed[namespace] -= time.Duration(each); d.owed[namespace] <= 0 {
			delete(d.owed, namespace)
		}
	}
	d.paid = now
}
