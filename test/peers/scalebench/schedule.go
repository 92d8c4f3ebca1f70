// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// schedule is when a container was sampled before the measurement: a week and a day sparsely, as far as VPA looks back,
// and the end as densely as memfit does.
type schedule struct {
	days   time.Duration // between two samples in the first days
	recent time.Duration // between two samples at the end
	span   time.Duration // how long the end is
}

const lookBack = 8 * 24 * time.Hour

// each calls f with every time of the schedule, oldest first; the last is just before the epoch.
func (s schedule) each(f func(time.Time)) {
	for at := epoch.Add(-lookBack); at.Before(epoch.Add(-s.span)); at = at.Add(s.days) {
		f(at)
	}
	for at := epoch.Add(-s.span); at.Before(epoch); at = at.Add(s.recent) {
		f(at)
	}
}
