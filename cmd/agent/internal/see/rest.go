// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"time"

	"github.com/memfit/memfit/cmd/agent/internal/scan"
)

const (
	// agentMost is the share of a core, in percent, that the whole agent may take: inspections wait longer where readings,
	// writes, the garbage collector and what namespaces pay for themselves leave them less than [scan.InspectMost].
	// inspectLeast is what they get anyway.
	agentMost    = 0.9
	inspectLeast = 0.2
	// othersEvery is how often the agent measures its own other work, and othersSettle how much of a new figure counts
	// immediately; the remainder is history.
	othersEvery  = 5 * time.Second
	othersSettle = 0.3
)

// rest computes how long inspections rest.
type rest struct {
	others float64 // percent of a core that the agent takes for anything else

	at               time.Time // when these were noted; zero: never
	inspected, spent time.Duration
}

// note takes note of the processor time that inspections and the whole agent have used so far.
func (r *rest) note(now time.Time, inspected, spent time.Duration) {
	since := now.Sub(r.at)
	if !r.at.IsZero() && since < othersEvery {
		return
	}
	if !r.at.IsZero() {
		others := 100 * float64((spent-r.spent)-(inspected-r.inspected)) / float64(since)
		r.others += othersSettle * (others - r.others)
	}
	r.at, r.inspected, r.spent = now, inspected, spent
}

// after is how long to wait after an inspection that took so much processor time, before one that is urgent and before
// any other.
func (r *rest) after(took time.Duration) (urgent, any time.Duration) {
	share := min(max(agentMost-r.others, inspectLeast), scan.InspectMost)
	return scan.Rest(took, scan.UrgentMost), scan.Rest(took, share)
}
