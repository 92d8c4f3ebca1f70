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
	// Error is the last error, in one line.
	Error string
	// Since is when the node first failed to respond.
	Since time.Time
	// LastResponse is when the node last responded; zero: never since memfit started.
	LastResponse time.Time
}

// lastingAfter is how long a node that has responded before may be silent without a report. A busy kubelet often fails
// once and responds a minute later, and each report and its end cost two writes per workload of the node.
const lastingAfter = 5 * time.Minute

// Lasting returns the silences to report to workloads: of nodes that have not responded for lastingAfter, or never.
func Lasting(all []Silence, now time.Time) []Silence {
	return slices.DeleteFunc(slices.Clone(all), func(s Silence) bool {
		silent := now.Sub(s.LastResponse)
		return !s.LastResponse.IsZero() && 0 <= silent && silent < lastingAfter // negative: the clock was set back
	})
}
