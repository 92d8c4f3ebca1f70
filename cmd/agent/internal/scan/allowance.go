// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import "time"

const (
	// maxSharedTime bounds the processor time by which an inspection delays inspections of other namespaces. A longer one,
	// of a large heap or a program built to be expensive, further delays its own namespace.
	maxSharedTime = 100 * time.Millisecond
	// maxInspect is the share of a core, in percent, for inspections.
	maxInspect = 0.5
	// maxUrgent is that share for urgent inspections, regardless of other work: of a container near its limit, or at a
	// user's request. It also bounds the cost of a pod template that requests inspections of all its pods.
	maxUrgent = 5
	// maxAgentPercent is the share of a core, in percent, for the whole agent. Inspections get less than maxInspect while
	// the agent's other work takes the rest, but at least minInspect.
	maxAgentPercent = 0.9
	minInspect      = 0.2
	othersEvery     = 5 * time.Second // between measurements of the agent's other work
	othersSettle    = 0.3             // weight of a new measurement in the moving average
)

// allowance bounds the processor time of inspections, not their duration, which also depends on the load of the node.
type allowance struct {
	normal, urgent debts

	others    float64       // percent of a core that the agent uses for other work, a moving average
	noted     time.Time     // when others was last measured; zero: never
	inspected time.Duration // the value of all at that time
	spent     time.Duration // the processor time of the agent at that time
	all       time.Duration // processor time of all inspections, at most maxSharedTime each
}

// of returns the debts of urgent or of other inspections.
func (a *allowance) of(urgent bool) *debts {
	if urgent {
		return &a.urgent
	}
	return &a.normal
}

// charge records the processor time that an inspection took; agent is the processor time of the agent so far.
func (a *allowance) charge(namespace string, took, agent time.Duration, now time.Time) {
	shared := min(took, maxSharedTime)
	a.all += shared
	a.measure(agent, now)
	a.urgent.charge(namespace, took, now.Add(rest(shared, maxUrgent)))
	a.normal.charge(namespace, took, now.Add(rest(shared, min(max(maxAgentPercent-a.others, minInspect), maxInspect))))
}

// measure updates others; agent is the processor time of the agent so far.
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

// pay reduces the debts of namespaces by the time since the last call.
func (a *allowance) pay(now time.Time) {
	a.normal.pay(now, maxInspect)
	a.urgent.pay(now, maxUrgent)
}

// rest returns the period of which spent is the share, in percent.
func rest(spent time.Duration, share float64) time.Duration {
	return time.Duration(float64(spent) * 100 / share)
}

// debts delay inspections to limit their cost. Each inspection delays the next one of any namespace; one that took more
// than [maxSharedTime] also delays its own namespace until the debt is paid. All debts together are paid at a share of
// a core, split equally among namespaces, so that a small debt does not wait for a large one.
type debts struct {
	next time.Time                // when an inspection may begin
	owed map[string]time.Duration // by namespace
	paid time.Time                // the last call of pay
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

// pay reduces the debts by a share, in percent, of the time since the last call.
func (d *debts) pay(now time.Time, share float64) {
	each := float64(now.Sub(d.paid)) * share / 100 / float64(max(len(d.owed), 1))
	for namespace := range d.owed {
		if d.owed[namespace] -= time.Duration(each); d.owed[namespace] <= 0 {
			delete(d.owed, namespace)
		}
	}
	d.paid = now
}
