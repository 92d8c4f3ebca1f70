// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import "time"

const (
	// actuation is the time from a resize request to the effective limit: at most 126 ms in 12 resizes on a node with a
	// load of 8.
	actuation = 150 * time.Millisecond
	// requests is the number of requests from an alarm to a resize: the alarm, the checkpoint with the loan, the resize.
	requests = 3
	// requestDefault is the assumed time of a request before one is measured: usually 20 to 40 ms, at most 125 ms in those
	// 12 resizes.
	requestDefault = 40 * time.Millisecond
	// minChain and maxChain bound the time from an alarm to the higher limit. Alarms that are seconds early are false.
	minChain = 100 * time.Millisecond
	maxChain = 2 * time.Second
	// margin allows for errors of the prediction: growth is from the last two intervals, of at least 100 ms each.
	margin = 100 * time.Millisecond
	// measuredKept is the number of last measurements that count, for measuredFor each.
	measuredKept = 32
	measuredFor  = 10 * time.Minute
)

// Horizon computes how long before the limit is reached an agent sends an alarm. Its zero value is ready.
type Horizon struct {
	measured [measuredKept]measurement
	next     int
}

type measurement struct {
	at   time.Time
	took time.Duration
}

// RecordChain records a measured time from an alarm to the higher limit. Callers cannot measure it if the container is
// killed before.
func (h *Horizon) RecordChain(d time.Duration, now time.Time) {
	h.measured[h.next] = measurement{now, d}
	h.next = (h.next + 1) % measuredKept
}

// RecordWrite records the duration of a write to the API server, as an estimate of each request from alarm to resize.
func (h *Horizon) RecordWrite(d time.Duration, now time.Time) {
	h.RecordChain(requests*d+actuation, now)
}

// Before returns the horizon for a container that is read once per interval: the longest recorded time from an alarm to
// the higher limit, the interval until the next reading, and a margin.
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
