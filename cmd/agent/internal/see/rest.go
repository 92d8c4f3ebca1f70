// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package see

import "time"

const (
	// inspectMost is the share of a core, in percent, that inspections may take, and agentMost what the whole agent may:
	// inspections wait longer where readings, writes and the garbage collector leave them less, as they do while the
	// agent starts on a busy node. inspectLeast is what they get all the same.
	inspectMost  = 0.5
	agentMost    = 0.9
	inspectLeast = 0.2
	// urgentMost is while a container near its limit changes or somebody waits for an inspection, whatever the rest
	// takes. So it also bounds what a pod template can cost that asks for all of its pods.
	urgentMost = 5
	// othersEvery is how often the agent looks at what else it takes, and othersSettle how much of a new figure counts at
	// once; the rest is history.
	othersEvery  = 5 * time.Second
	othersSettle = 0.3
)

// rest says how long inspections rest.
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
	share := min(max(agentMost-r.others, inspectLeast), inspectMost)
	return wait(took, urgentMost), wait(took, share)
}

// wait is so long that what was taken is a share of it, in percent.
func wait(took time.Duration, share float64) time.Duration {
	return time.Duration(float64(took) * 100 / share)
}
