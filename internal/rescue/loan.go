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

// Loan is a higher limit that one container of one pod got before the kernel would have killed it (sizing.rescue). It
// is written down before the resize is sent. While it lasts, the limit is not lowered; it ends when demand has stayed
// below the previous limit, or below what is recommended by now, for [Hold], or when the recommendation asks for as
// much. A restart of the container does not end it, because the limit is that of the pod's spec.
type Loan struct {
	Pod       string    `json:"pod"`
	UID       types.UID `json:"uid"`
	Node      string    `json:"node,omitempty"`
	Container string    `json:"container"`
	Program   string    `json:"program,omitempty"`
	// From is the size before the loan, To the size with it.
	From memory.Size `json:"from"`
	To   memory.Size `json:"to"`
	// At is when it was written down, by the leader's clock.
	At time.Time `json:"at"`
	// Sequence is the number of the agent's alarm, which is answered once.
	Sequence int64 `json:"sequence"`
	// Seen: the pod's spec had it, so that it was sent.
	Seen bool `json:"seen,omitempty"`
	// Peak is the highest demand seen since: above From.Limit, the loan prevented a kill.
	Peak memory.Bytes `json:"peak,omitempty"`
	// Above is when demand was last not below what ends the loan, as far as is known, and Read when it was last read. Both
	// begin at At.
	Above time.Time `json:"above,omitzero"`
	Read  time.Time `json:"read,omitzero"`
	// Enough is the limit that is recommended for all pods, as decided last, where that is above From; 0: it is not. The
	// limit goes back to it then: a container whose need has grown would have a loan of four times its limit for ever.
	Enough memory.Bytes `json:"enough,omitempty"`
	// Ended is when the container no longer needed it; zero: it does. Until Returned the limit is still to be lowered.
	Ended time.Time `json:"ended,omitzero"`
	// Taken: the recommendation asks for as much. It ends with the next observation.
	Taken bool `json:"taken,omitempty"`
	// Failed: the kubelet did not make it effective. It ended then, and is taken out of the pod's spec.
	Failed bool `json:"failed,omitempty"`
	// Returned is when the limit was lowered again, the recommendation took over, or the pod was gone; zero: not yet.
	Returned time.Time `json:"returned,omitzero"`
}

// Extra is what the loan added to the limit.
func (l *Loan) Extra() memory.Bytes { return l.To.Limit.Minus(l.From.Limit) }

// Of reports whether the loan is to that container of that pod.
func (l *Loan) Of(uid types.UID, container string) bool {
	return l.UID == uid && l.Container == container
}

// Note returns the note of the Event of a loan that was given for an alarm.
func (l *Loan) Note(a *Alarm) string {
	return fmt.Sprintf(
		"raised the limit of container %s from %s to %s before it was reached (needed %s, grew by %s/s); the loan ends when "+
			"it has needed less than %s, or than is recommended by then, for %s, or becomes the recommended size",
		l.Container, l.From.Limit, l.To.Limit, a.Demand, a.PerSecond, l.From.Limit, format.InWords(Hold),
	)
}

// gapMost is how long demand may be unread without being taken for high. The kubelet is read every 15 s.
const gapMost = 5 * time.Minute

// Settle notes what the container needed at a time, and reports whether it has needed less than enough for [Hold]. A
// reading that is not newer than the last one is ignored, so that the same one may come twice; one that lies after now
// is.
func (l *Loan) Settle(demand memory.Bytes, at time.Time, enough memory.Bytes, now time.Time) (over bool) {
	if at.After(l.Read) && !at.After(now) {
		if demand >= enough || at.Sub(l.Read) > gapMost {
			l.Above = at
		}
		l.Read = at
	}
	return now.Sub(l.Read) <= gapMost && l.Read.Sub(l.Above) >= Hold
}
