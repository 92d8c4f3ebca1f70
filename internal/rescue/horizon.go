// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import "time"

const (
	// actuation is how long after a resize was sent its limit is effective: 126 ms at most of 12 on a node at load 8.
	actuation = 150 * time.Millisecond
	// requests to the API server come before that: the alarm, the checkpoint with the loan, and the resize.
	requests = 3
	// requestDefault is one of them, until a node has measured it: 125 ms at most of those 12, and 20 to 40 ms as a rule.
	requestDefault = 40 * time.Millisecond
	// chainLeast and chainMost bound what is measured. A chain of more seconds is a fault, and alarms that come seconds
	// early are false ones.
	chainLeast = 100 * time.Millisecond
	chainMost  = 2 * time.Second
	// margin is for what a prediction does not know: growth is that of the readings before, which at the fastest interval
	// is 100 ms, two intervals, old.
	margin = 100 * time.Millisecond
	// measuredKept is how many measurements count, and measuredFor how long. Of so few, the 99th percentile is the
	// longest.
	measuredKept = 32
	measuredFor  = 10 * time.Minute
)

// Horizon is how long before the limit is reached an alarm is raised. Its zero value is ready.
type Horizon struct {
	measured [measuredKept]measurement
	next     int
}

type measurement struct {
	at   time.Time
	took time.Duration
}

// Took takes note of the time from an alarm to the higher limit. A container that is killed before has none, so a slow
// chain is not found out from these alone.
func (h *Horizon) Took(d time.Duration, now time.Time) {
	h.measured[h.next] = measurement{now, d}
	h.next = (h.next + 1) % measuredKept
}

// Wrote takes note of how long the API server took for a write. What the manager sends takes as long.
func (h *Horizon) Wrote(d time.Duration, now time.Time) { h.Took(requests*d+actuation, now) }

// Before returns the horizon for a container that is read once in an interval: what the chain from alarm to limit takes
// at the 99th percentile, the interval until the next reading, and a margin.
func (h *Horizon) Before(interval time.Duration, now time.Time) time.Duration {
	chain := time.Duration(0)
	for _, m := range h.measured {
		if !m.at.IsZero() && now.Sub(m.at) <= measuredFor {
			chain = max(chain, m.took, chainLeast)
		}
	}
	if chain == 0 {
		chain = requests*requestDefault + actuation
	}
	return min(chain, chainMost) + interval + margin
}
