// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import "time"

const (
	// SharedMost is how much processor time of one inspection all containers rest for. Most inspections take less; only
	// large heaps, and programs that are made to cost much, take more.
	SharedMost = 100 * time.Millisecond
	// InspectMost is the share of a core, in percent, that inspections may take, and UrgentMost while a container near its
	// limit changes or a request waits, whatever the rest takes. So UrgentMost also bounds what a pod template can cost
	// that asks for all of its pods.
	InspectMost = 0.5
	// UrgentMost is explained beside InspectMost.
	UrgentMost = 5
)

// Rest is so long that what was spent is a share of it, in percent.
func Rest(spent time.Duration, share float64) time.Duration {
	return time.Duration(float64(spent) * 100 / share)
}

// debts make a namespace wait after an inspection that cost more than [SharedMost], so that the others do not. All
// debts together are paid at a share of a core, of which each namespace pays as much: a small debt does not wait for a
// large one.
type debts struct {
	owed map[string]time.Duration
	paid time.Time // until then
}

// charge takes note of an inspection.
func (d *debts) charge(namespace string, spent time.Duration) {
	if spent <= SharedMost {
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

// owes reports whether a namespace has to wait.
func (d *debts) owes(namespace string) bool { return d.owed[namespace] > 0 }
