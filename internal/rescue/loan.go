// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Loan is a raise of the limit of one container of one pod before a kill (sizing.rescue). It is stored before the
// resize is sent, and remains over restarts of the container. It ends when demand has been below the previous limit, or
// below the current recommendation, for [Hold], or when the recommendation is as high. Until then the limit is not
// lowered.
type Loan struct {
	Pod       string    `json:"pod"`
	UID       types.UID `json:"uid"`
	Node      string    `json:"node,omitempty"`
	Container string    `json:"container"`
	Program   string    `json:"program,omitempty"`

	From       memory.Size  `json:"from"`              // the size before the loan
	To         memory.Size  `json:"to"`                // the size with the loan
	At         time.Time    `json:"at"`                // when the loan was stored, on the leader's clock
	Sequence   int64        `json:"sequence"`          // the sequence of the agent's alarm, which is handled once
	Seen       bool         `json:"seen,omitempty"`    // the pod's spec had the loan, so the resize was sent
	Peak       memory.Bytes `json:"peak,omitempty"`    // the highest demand since; above From.Limit, a kill was prevented
	LastHigh   time.Time    `json:"above,omitzero"`    // when demand was last too high, or unknown; initially At
	Read       time.Time    `json:"read,omitzero"`     // when demand was last read; initially At
	Enough     memory.Bytes `json:"enough,omitempty"`  // the limit after the loan, as last recommended; 0: at most From
	Ended      time.Time    `json:"ended,omitzero"`    // when the need ended, so that the limit is lowered; zero: not yet
	Superseded bool         `json:"taken,omitempty"`   // the recommendation is as high; the next observation ends the loan
	Failed     bool         `json:"failed,omitempty"`  // the kubelet did not make it effective, so the spec is reverted
	Returned   time.Time    `json:"returned,omitzero"` // when the limit was lowered or recommended, or the pod deleted
}

// Extra returns the increase of the limit.
func (l *Loan) Extra() memory.Bytes { return l.To.Limit.Minus(l.From.Limit) }

// Of reports whether the loan is for this container of the pod with this UID.
func (l *Loan) Of(uid types.UID, container string) bool {
	return l.UID == uid && l.Container == container
}

// Note returns the note of the Event for the loan.
func (l *Loan) Note(a *Alarm) string {
	return fmt.Sprintf(
		"raised the limit of container %s from %s to %s before it was reached (needed %s, grew by %s/s); the loan ends when "+
			"the container has needed less than %s or than the recommended limit for %s, or when the recommendation is as high",
		l.Container, l.From.Limit, l.To.Limit, a.Demand, a.PerSecond, l.From.Limit, format.InWords(Hold),
	)
}

// maxGap is the longest time between two readings of demand. After a longer one, demand counts as high. The kubelet is
// read every 15 s.
const maxGap = 5 * time.Minute

// Settle records a reading of the container's demand, and reports whether demand was below enough for [Hold]. It
// ignores a reading that is not newer than the last one, or after now.
func (l *Loan) Settle(demand memory.Bytes, at time.Time, enough memory.Bytes, now time.Time) (over bool) {
	if at.After(l.Read) && !at.After(now) {
		if demand >= enough || at.Sub(l.Read) > maxGap {
			l.LastHigh = at
		}
		l.Read = at
	}
	return now.Sub(l.Read) <= maxGap && l.Read.Sub(l.LastHigh) >= Hold
}
