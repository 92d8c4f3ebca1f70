// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// TestSamplesOfAnotherTimeAreDropped: neither a wrong clock nor a lie gets into a history.
func TestSamplesOfAnotherTimeAreDropped(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(ages ...time.Duration) (r Reading) {
		for _, ahead := range ages {
			r.Samples = append(r.Samples, memory.Sample{Time: now.Add(ahead), Started: now})
		}
		return r
	}
	for what, tc := range map[string]struct {
		in   Reading
		kept int
		says string
	}{
		"as kubelets are":      {in: at(-15*time.Second, -time.Minute, time.Second), kept: 3},
		"at both ends":         {in: at(-MaxBehind, MaxAhead), kept: 2},
		"one 40 days ahead":    {in: at(-time.Second, 40*24*time.Hour), kept: 1},
		"one an hour old":      {in: at(-time.Hour, -time.Second), kept: 1},
		"all of another clock": {in: at(40*24*time.Hour, 40*24*time.Hour), says: "40 days ahead of memfit's clock"},
		"all behind":           {in: at(-time.Hour), says: "1 h behind of memfit's clock"},
		"nothing runs there":   {in: Reading{}},
	} {
		r, err := plausible(tc.in, now)
		if len(r.Samples) != tc.kept || (err == nil) != (tc.says == "") || err != nil &&
			!strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %d samples and error %v, want %d and %q", what, len(r.Samples), err, tc.kept, tc.says)
		}
		if _, clock := errors.AsType[ClockError](err); err != nil && !clock {
			t.Errorf("%s: %T is no ClockError", what, err)
		}
		for _, s := range r.Samples {
			if s.Started.After(s.Time) {
				t.Errorf("%s: a container started %s after it was measured", what, s.Started.Sub(s.Time))
			}
		}
	}
}
