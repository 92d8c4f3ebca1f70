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
	// Error is what came instead of an answer, in one line.
	Error string
	// Since is when the node first failed to answer.
	Since time.Time
	// Answered is when it answered last, since memfit began to ask; zero: never.
	Answered time.Time
}

// toldAfter is for how long a node that has answered may be silent before that is a reason for anything. A busy kubelet
// misses a reading and answers a minute later (twelve times within half an hour of a soak); telling of each, and taking
// it back, is two writes for each workload on the node.
const toldAfter = 5 * time.Minute

// Lasting are the silences that are worth telling to each workload: of nodes that have not answered for five minutes,
// or never.
func Lasting(all []Silence, now time.Time) []Silence {
	brief := func(s Silence) bool {
		silent := now.Sub(s.Answered)
		return !s.Answered.IsZero() && 0 <= silent && silent < toldAfter // below 0, the clock went back
	}
	if !slices.ContainsFunc(all, brief) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), brief)
}
