// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import "time"

const (
	// sharedMost is the processor time of one inspection that counts against all containers. Large heaps, and programs
	// built to be expensive, take more; their namespace alone waits for the rest.
	sharedMost = 100 * time.Millisecond
	// inspectMost is the share of a core, in percent, that inspections may take, and urgentMost while a container near
	// its limit changes or a request waits, whatever other work takes. It also bounds the cost of a pod template that
	// requests inspection of all its pods.
	inspectMost = 0.5
	urgentMost  = 5
	// agentMost is the share of a core, in percent, that the whole agent may take: inspections wait longer where
	// readings, writes, the garbage collector and debts of namespaces leave them less than inspectMost. inspectLeast is
	// guaranteed.
	agentMost    = 0.9
	inspectLeast = 0.2
	// othersEvery is how often the agent measures its own other work, and othersSettle the weight of a new figure in the
	// moving average.
	othersEvery  = 5 * time.Second
	othersSettle = 0.3
)

// allowance bounds the processor time of inspections. On a busy node they take long without costing more, so their
// duration does not count.
type allowance struct {
	soon, later    time.Time // when an urgent inspection may begin, and any other
	normal, urgent debts

	others           float64   // percent of a core that the agent uses for other work
	noted            time.Time // when these were measured; zero: never
	inspected, spent time.Duration
	all              time.Duration // processor time of all inspections, at most sharedMost each
}

// charge records an inspection and the processor time that the agent has used so far.
func (a *allowance) charge(namespace string, took, agent time.Duration, now time.Time) {
	shared := min(took, sharedMost)
	a.all += shared
	a.measure(agent, now)
	a.soon = now.Add(rest(shared, urgentMost))
	a.later = now.Add(rest(shared, min(max(agentMost-a.others, inspectLeast), inspectMost)))
	a.normal.charge(namespace, took)
	a.urgent.charge(namespace, took)
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
	a.normal.pay(now, inspectMost)
	a.urgent.pay(now, urgentMost)
}

// rested reports whether an inspection may begin.
func (a *allowance) rested(urgent bool, now time.Time) bool {
	if urgent {
		return !now.Before(a.soon)
	}
	return !now.Before(a.later)
}

// owes reports whether a namespace has to pay for earlier inspections first.
func (a *allowance) owes(namespace string, urgent bool) bool {
	if urgent {
		return a.urgent.owed[namespace] > 0
	}
	return a.normal.owed[namespace] > 0
}

// rest returns the period of which the spent time is a share, in percent.
func rest(spent time.Duration, share float64) time.Duration {
	return time.Duration(float64(spent) * 100 / share)
}

// debts make a namespace wait after an inspection that cost more than [sharedMost], so that the others do not. All
// debts together are paid at a share of a core, split equally among namespaces, so that a small debt does not wait for
// a large one.
type debts struct {
	owed map[string]time.Duration
	paid time.Time // until then
}

// charge records an inspection.
func (d *debts) charge(namespace string, spent time.Duration) {
	if spent <= sharedMost {
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
