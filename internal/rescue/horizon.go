// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import "time"

const (
	// chainDefault is how long after an alarm a higher limit is effective, until a node has measured it: the alarm
	// reaches the manager like a resize reaches the API server (125 ms at most of 12 on a node at load 8), and a resize
	// was effective 126 ms after it was sent at most, for which 150 ms are taken.
	chainDefault = 275 * time.Millisecond
	// chainLeast and chainMost bound what is measured. A chain of seconds is a fault, and alarms that come seconds
	// early are false ones.
	chainLeast = 100 * time.Millisecond
	chainMost  = 2 * time.Second
	// margin is for what a prediction does not know: growth is that of the readings before, which at the fastest interval
	// is 100 ms, two intervals, old.
	margin = 100 * time.Millisecond
	// measuredKept is how many measurements count. Of so few, the 99th percentile is the longest.
	measuredKept = 32
)

// Horizon is how long before the limit is reached an alarm is raised. Its zero value is ready.
type Horizon struct {
	measured [measuredKept]time.Duration
	next     int
}

// Took takes note of the time from an alarm to the higher limit.
func (h *Horizon) Took(d time.Duration) {
	h.measured[h.next] = max(d, 1)
	h.next = (h.next + 1) % measuredKept
}

// Before returns the horizon for a container that is read once in an interval: what the chain from alarm to limit takes
// at the 99th percentile, the interval until the next reading, and a margin.
func (h *Horizon) Before(interval time.Duration) time.Duration {
	chain := time.Duration(0)
	for _, d := range h.measured {
		chain = max(chain, d)
	}
	if chain == 0 {
		chain = chainDefault
	}
	return min(max(chain, chainLeast), chainMost) + interval + margin
}
