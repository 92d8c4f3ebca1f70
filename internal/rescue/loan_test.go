// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"slices"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// need is what a container needed at a time.
type need struct {
	at     time.Time
	demand memory.Bytes
}

func TestSettle(t *testing.T) {
	settle := func(loan *Loan, readings []need, now time.Time) bool {
		over := loan.Settle(0, loan.Read, 512*mib, now) // nothing new
		for _, r := range readings {
			over = loan.Settle(r.demand, r.at, 512*mib, now)
		}
		return over
	}
	// every reads each 15 s from a time on.
	every := func(from, to time.Duration, demand memory.Bytes) (out []need) {
		for at := from; at <= to; at += 15 * time.Second {
			out = append(out, need{start.Add(at), demand})
		}
		return out
	}
	hour := time.Hour
	const low, high = 300 * mib, 700 * mib
	then := func(parts ...[]need) []need { return slices.Concat(parts...) }
	for name, c := range map[string]struct {
		readings []need
		after    time.Duration
		over     bool
	}{
		"nothing read":      {nil, 2 * hour, false},
		"low for an hour":   {every(15*time.Second, hour, low), hour, true},
		"low for less":      {every(15*time.Second, hour-time.Minute, low), hour - time.Minute, false},
		"as high as before": {every(15*time.Second, 2*hour, 512*mib), 2 * hour, false},
		"low after a quarter": {
			then(every(0, hour/4, high), every(hour/4+time.Second, hour+hour/8, low)), hour + hour/8, false,
		},
		"low for an hour after a quarter": {
			then(every(0, hour/4, high), every(hour/4+time.Second, hour+hour/2, low)), hour + hour/2, true,
		},
		"high once meanwhile": {
			then(every(0, hour/2, low), []need{{start.Add(hour/2 + time.Second), high}},
				every(hour/2+time.Minute, hour, low)), hour, false,
		},
		"low, and unknown meanwhile": {
			then(every(0, hour/2, low), every(hour/2+10*time.Minute, hour, low)), hour, false,
		},
		"low, and unknown since": {every(15*time.Second, hour, low), hour + 6*time.Minute, false},
		"read in the future":     {every(hour, 3*hour, low), time.Minute, false},
	} {
		loan := Loan{At: start, LastHigh: start, Read: start}
		if over := settle(&loan, c.readings, start.Add(c.after)); over != c.over {
			t.Errorf("%s: over: %v", name, over)
		}
		before := loan
		if over := settle(&loan, c.readings, start.Add(c.after)); loan != before || over != c.over {
			t.Errorf("%s: the same readings again: %+v (%v), want %+v", name, loan, over, before)
		}
	}
}
