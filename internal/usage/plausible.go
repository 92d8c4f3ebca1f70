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

// Bounds of a sample's time, relative to memfit's clock. A kubelet measures every 10 to 15 s, metrics-server every
// minute, and Prometheus returns values up to 5 minutes old; synchronized clocks differ by less than a second. Other
// times are wrong or forged, and one of 40 days ahead would displace ten days of history.
const (
	MostBehind = 10 * time.Minute
	MostAhead  = 2 * time.Minute
)

// ClockError is returned for a node whose samples all have implausible times.
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

// plausible drops samples with implausible times, and starts after their own sample. If no sample is left, it returns
// an error.
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
