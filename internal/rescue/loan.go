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

// Loan is a higher limit that one container of one pod got before a kill (sizing.rescue), also after a restart. It is
// stored before the resize is sent. It ends when demand has been below the previous limit, or below the current
// recommendation, for [Hold], or when the recommendation is as high; until then the limit is not lowered.
type Loan struct {
	Pod       string    `json:"pod"`
	UID       types.UID `json:"uid"`
	Node      string    `json:"node,omitempty"`
	Container string    `json:"container"`
	Program   string    `json:"program,omitempty"`
	// From is the size before the loan, To the size with it.
	From memory.Size `json:"from"`
	To   memory.Size `json:"to"`
	// At is when it was stored, on the leader's clock.
	At time.Time `json:"at"`
	// Sequence is the number of the agent's alarm, which is handled once.
	Sequence int64 `json:"sequence"`
	// Seen is true if the pod's spec had the loan, so it was sent.
	Seen bool `json:"seen,omitempty"`
	// Peak is the highest demand since: above From.Limit, the loan prevented a kill.
	Peak memory.Bytes `json:"peak,omitempty"`
	// Above is when demand was last known to be too high to end the loan, Read when it was last read; both begin at At.
	Above time.Time `json:"above,omitzero"`
	Read  time.Time `json:"read,omitzero"`
	// Enough is the last limit recommended for all pods, to which the limit is lowered; 0: at most From.
	Enough memory.Bytes `json:"enough,omitempty"`
	// Ended is when the container no longer needed it; zero: not yet. The limit is to be lowered until Returned.
	Ended time.Time `json:"ended,omitzero"`
	// Taken is true if the recommendation is as high as the loan, which then ends with the next observation.
	Taken bool `json:"taken,omitempty"`
	// Failed is true if the kubelet did not make the loan effective. It then ended, and is removed from the pod's spec.
	Failed bool `json:"failed,omitempty"`
	// Returned is when the limit was lowered again, the recommendation took over, or the pod was deleted; zero: not yet.
	Returned time.Time `json:"returned,omitzero"`
}

// Extra returns the increase of the limit.
func (l *Loan) Extra() memory.Bytes { return l.To.Limit.Minus(l.From.Limit) }

// Of reports whether it is a loan to that container of that pod.
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

// maxGap is how long demand may be unread before it counts as high. The kubelet is read every 15 s.
const maxGap = 5 * time.Minute

// Settle records the container's demand at a time, and reports whether it was below enough for [Hold]. It ignores a
// reading that is not newer than the last one, or after now.
func (l *Loan) Settle(demand memory.Bytes, at time.Time, enough memory.Bytes, now time.Time) (over bool) {
	if at.After(l.Read) && !at.After(now) {
		if demand >= enough || at.Sub(l.Read) > maxGap {
			l.Above = at
		}
		l.Read = at
	}
	return now.Sub(l.Read) <= maxGap && l.Read.Sub(l.Above) >= Hold
}
