// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// What the time of a sample may be, as seen from memfit's own clock. A kubelet measures every 10 to 15 s,
// metrics-server every minute, and Prometheus answers with what is up to 5 minutes old; clocks that are kept in step
// differ by less than a second. A time outside of this is a wrong clock or a lie, and one of 40 days ahead would push
// ten days of history out.
const (
	MostBehind = 10 * time.Minute
	MostAhead  = 2 * time.Minute
)

// ClockError is a node whose samples are all of another time.
type ClockError struct{ Ahead time.Duration }

func (e ClockError) Error() string {
	how := "behind"
	if e.Ahead > 0 {
		how = "ahead"
	}
	return fmt.Sprintf("its samples are %s %s of memfit's clock, so all are ignored (at most %s behind and %s ahead): "+
		"compare the clocks of the node and of memfit's node",
		format.InWords(e.Ahead.Abs()), how, format.InWords(MostBehind), format.InWords(MostAhead))
}

// plausible drops the samples of another time, and a start that comes after its own sample. When none is left of some,
// that is an error.
func plausible(r Reading, now time.Time) (Reading, error) {
	had := len(r.Samples)
	var off time.Duration
	r.Samples = slices.DeleteFunc(r.Samples, func(s memory.Sample) bool {
		ahead := s.Time.Sub(now)
		if ahead <= MostAhead && ahead >= -MostBehind {
			return false
		}
		off = ahead
		return true
	})
	if had > 0 && len(r.Samples) == 0 {
		return Reading{}, ClockError{off}
	}
	for i := range r.Samples {
		if s := &r.Samples[i]; s.Started.After(s.Time) {
			s.Started = time.Time{}
		}
	}
	return r, nil
}
