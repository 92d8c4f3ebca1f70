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
			"it has needed less than %s for %s, or becomes the recommended size",
		l.Container, l.From, l.To, l.Demand, l.PerSecond, l.From, format.InWords(Hold),
	)
}

// Returned returns the reason and the note of the Event of a loan that ended with an outcome; both are empty for Keep.
func (l *Loan) Returned(o Outcome) (reason, note string) {
	switch o {
	case Return:
		return v1alpha1.EventLoanReturned, fmt.Sprintf(
			"container %s has needed less than %s for %s: its limit goes back from %s", l.Container, l.From,
			format.InWords(Hold), l.To,
		)
	case Recommended:
		return v1alpha1.EventLoanReturned, fmt.Sprintf(
			"the recommended size of container %s covers the loan of %s beyond %s: the limit remains", l.Container, l.Bytes(),
			l.From,
		)
	case Keep:
	}
	return "", ""
}

// Reading is what a container needed at a time.
type Reading struct {
	At     time.Time
	Demand memory.Bytes
}

// Outcome is what becomes of a loan.
type Outcome string

// The outcomes.
const (
	// Keep: the loan goes on.
	Keep Outcome = "Keep"
	// Return: the limit goes back to From by the ordinary way of lowering a limit.
	Return Outcome = "Return"
	// Recommended: the recommended limit is at least the lent one; the loan is over, and the ordinary rollout keeps the
	// pod's size.
	Recommended Outcome = "Recommended"
)

// gapMost is how long demand may be unread without being taken for high. The kubelet is read every 15 s.
const gapMost = 5 * time.Minute

// Settle returns the loan with what new readings show, and what becomes of it. Readings that are not newer than the
// last one are ignored, so that the same ones may come twice; times that lie after now are. recommended is the limit
// that memfit recommends; 0: none.
func Settle(l Loan, readings []Reading, recommended memory.Bytes, now time.Time) (Loan, Outcome) {
	for _, r := range readings {
		if !r.At.After(l.Read) || r.At.After(now) {
			continue
		}
		if r.Demand >= l.From || r.At.Sub(l.Read) > gapMost {
			l.Above = r.At
		}
		l.Read = r.At
	}
	switch {
	case recommended >= l.To && l.To > 0:
		return l, Recommended
	case now.Sub(l.Read) <= gapMost && l.Read.Sub(l.Above) >= Hold:
		return l, Return
	}
	return l, Keep
}
