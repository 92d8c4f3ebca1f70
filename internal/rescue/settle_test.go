// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"slices"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

func TestSettle(t *testing.T) {
	loan := Loan{At: start, Above: start, Read: start, From: 512 * mib, To: 812 * mib}
	// every reads each 15 s from a time on.
	every := func(from, to time.Duration, demand memory.Bytes) (out []Reading) {
		for at := from; at <= to; at += 15 * time.Second {
			out = append(out, Reading{start.Add(at), demand})
		}
		return out
	}
	hour := time.Hour
	const low, high = 300 * mib, 700 * mib
	then := func(parts ...[]Reading) []Reading { return slices.Concat(parts...) }
	for name, c := range map[string]struct {
		readings    []Reading
		recommended memory.Bytes
		after       time.Duration
		want        Outcome
	}{
		"nothing read":      {nil, 512 * mib, 2 * hour, Keep},
		"low for an hour":   {every(15*time.Second, hour, low), 512 * mib, hour, Return},
		"low for less":      {every(15*time.Second, hour-time.Minute, low), 0, hour - time.Minute, Keep},
		"as high as before": {every(15*time.Second, 2*hour, 512*mib), 512 * mib, 2 * hour, Keep},
		"low after a quarter": {
			then(every(0, hour/4, high), every(hour/4+time.Second, hour+hour/8, low)), 0, hour + hour/8, Keep,
		},
		"low for an hour after a quarter": {
			then(every(0, hour/4, high), every(hour/4+time.Second, hour+hour/2, low)), 0, hour + hour/2, Return,
		},
		"high once meanwhile": {
			then(every(0, hour/2, low), []Reading{{start.Add(hour/2 + time.Second), high}},
				every(hour/2+time.Minute, hour, low)), 0, hour, Keep,
		},
		"low, and unknown meanwhile": {
			then(every(0, hour/2, low), every(hour/2+10*time.Minute, hour, low)), 0, hour, Keep,
		},
		"low, and unknown since": {every(15*time.Second, hour, low), 0, hour + 6*time.Minute, Keep},
		"read in the future":     {every(hour, 3*hour, low), 0, time.Minute, Keep},
		"recommended":            {every(15*time.Second, time.Minute, high), 812 * mib, time.Minute, Recommended},
		"less is recommended":    {every(15*time.Second, time.Minute, high), 800 * mib, time.Minute, Keep},
	} {
		got, outcome := Settle(loan, c.readings, c.recommended, start.Add(c.after))
		if outcome != c.want {
			t.Errorf("%s: %s, want %s", name, outcome, c.want)
		}
		again, outcome := Settle(got, c.readings, c.recommended, start.Add(c.after))
		if again != got || outcome != c.want {
			t.Errorf("%s: the same readings again: %+v (%s), want %+v", name, again, outcome, got)
		}
	}
}
