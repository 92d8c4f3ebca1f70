// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import "time"

const (
	// actuation is the time from sending a resize to the effective limit: at most 126 ms of 12 on a node at load 8.
	actuation = 150 * time.Millisecond
	// requests is the number of preceding requests: the alarm, the checkpoint with the loan, and the resize.
	requests = 3
	// requestDefault is the time of one until measured: at most 125 ms of those 12, and usually 20 to 40 ms.
	requestDefault = 40 * time.Millisecond
	// minChain and maxChain bound the measured time. Alarms that are seconds early are false.
	minChain = 100 * time.Millisecond
	maxChain = 2 * time.Second
	// margin allows for errors of the prediction: growth is from the last two intervals, 100 ms at the fastest.
	margin = 100 * time.Millisecond
	// measuredKept measurements count, for measuredFor. Of so few, the 99th percentile is the longest.
	measuredKept = 32
	measuredFor  = 10 * time.Minute
)

// Horizon computes how long before the limit is reached an alarm is raised. Its zero value is ready.
type Horizon struct {
	measured [measuredKept]measurement
	next     int
}

type measurement struct {
	at   time.Time
	took time.Duration
}

// Took records the time from an alarm to the higher limit. It misses slow chains whose container is killed before.
func (h *Horizon) Took(d time.Duration, now time.Time) {
	h.measured[h.next] = measurement{now, d}
	h.next = (h.next + 1) % measuredKept
}

// Wrote records the duration of a write to the API server. The manager's requests take as long.
func (h *Horizon) Wrote(d time.Duration, now time.Time) { h.Took(requests*d+actuation, now) }

// Before returns the horizon for a container that is read once in an interval: the 99th percentile of the time from
// alarm to limit, the interval until the next reading, and a margin.
func (h *Horizon) Before(interval time.Duration, now time.Time) time.Duration {
	chain := time.Duration(0)
	for _, m := range h.measured {
		if !m.at.IsZero() && now.Sub(m.at) <= measuredFor {
			chain = max(chain, m.took, minChain)
		}
	}
	if chain == 0 {
		chain = requests*requestDefault + actuation
	}
	return min(chain, maxChain) + interval + margin
}
