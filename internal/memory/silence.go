// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"time"
)

// Silence is a node that does not report the usage of its containers.
type Silence struct {
	Node string
	// Error is the error in one line.
	Error string
	// Since is when the node first failed to respond.
	Since time.Time
	// Answered is when it last responded since memfit started; zero: never.
	Answered time.Time
}

// lastingAfter is how long a node that has responded may be silent before that is reported, which takes two writes for
// each workload on the node. A busy kubelet misses a reading and responds a minute later.
const lastingAfter = 5 * time.Minute

// Lasting returns the silences to report to each workload: of nodes without a response for five minutes, or ever.
func Lasting(all []Silence, now time.Time) []Silence {
	return slices.DeleteFunc(slices.Clone(all), func(s Silence) bool {
		silent := now.Sub(s.Answered)
		return !s.Answered.IsZero() && 0 <= silent && silent < lastingAfter // negative: the clock was set back
	})
}
