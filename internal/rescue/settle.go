// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Loan is a limit that one container of one pod has until the loan is settled.
type Loan struct {
	Container string
	// ID of the container's instance; a restart of the container in the same pod does not end the loan, because the
	// limit is that of the pod's spec.
	ID string
	// Sequence of the alarm.
	Sequence int64
	// At is when it was decided.
	At time.Time
	// From is the limit before, and To the lent one.
	From, To memory.Bytes
	// Demand and PerSecond are what the alarm claimed.
	Demand, PerSecond memory.Bytes

	// Above is when demand was last not below From, as far as is known, and Read when it was last read. Both begin at At.
	Above, Read time.Time
	// Over: it was returned, or the recommendation took it over.
	Over bool
}

// Bytes is how much is lent.
func (l *Loan) Bytes() memory.Bytes { return l.To.Minus(l.From) }

// Event returns the reason and the note of the Event of a loan that was given.
func (l *Loan) Event() (reason, note string) {
	return v1alpha1.EventMemoryLoaned, fmt.Sprintf(
		"raised the limit of container %s from %s to %s before it was reached (needed %s, grew by %s/s); the loan ends when "+
			"it has needed less than %s, or than is recommended by then, for %s, or becomes the recommended size",
		l.Container, l.From, l.To, l.Demand, l.PerSecond, l.From, format.InWords(Hold),
	)
}

// Reading is what a container needed at a time.
type Reading struct {
	At     time.Time
	Demand memory.Bytes
}

// gapMost is how long demand may be unread without being taken for high. The kubelet is read every 15 s.
const gapMost = 5 * time.Minute

// Settle returns the loan with what new readings show, and whether it is over: the container has needed less than From
// for Hold. Readings that are not newer than the last one are ignored, so that the same ones may come twice; times that
// lie after now are.
func Settle(l Loan, readings []Reading, now time.Time) (settled Loan, over bool) {
	for _, r := range readings {
		if !r.At.After(l.Read) || r.At.After(now) {
			continue
		}
		if r.Demand >= l.From || r.At.Sub(l.Read) > gapMost {
			l.Above = r.At
		}
		l.Read = r.At
	}
	return l, now.Sub(l.Read) <= gapMost && l.Read.Sub(l.Above) >= Hold
}
