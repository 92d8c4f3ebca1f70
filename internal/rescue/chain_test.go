// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// life is what became of a container that may be lent memory.
type life struct {
	killed  bool
	loans   []Loan
	refused Cause // of the last alarm that got no loan
}

// lives follows a container of a limit as an agent does. Alarms are decided, and a higher limit is effective 150 ms
// after its alarm.
func lives(limit memory.Bytes, length time.Duration, demand func(time.Duration) memory.Bytes) (l life) {
	var w Watch
	var raised time.Duration // when the last loan is effective
	allowed := limit
	for at := time.Duration(0); at < length; {
		if n := len(l.loans); n > 0 && at >= raised {
			allowed = l.loans[n-1].To.Limit
		}
		now := demand(at)
		if now > allowed {
			l.killed = true
			return l
		}
		w.Add(Sample{start.Add(at), now, allowed})
		if p, due := w.Due(allowed, 0, 420*time.Millisecond); due && at >= raised {
			w.Raise(p)
			q := lent()
			q.alarm = Alarm{"app", "abc", at.Microseconds() + 8, p.At, p.Demand, p.Limit, p.PerSecond, p.Left}
			q.known.Limit, q.known.Asked, q.now, q.loans = allowed, allowed, p.At, l.loans
			loan, refusal := q.ask()
			if refusal != nil {
				l.refused = refusal.Cause
			} else {
				l.loans, raised = append(l.loans, *loan), at+150*time.Millisecond
			}
		}
		if at += seldom; w.MayReach(allowed, 2*time.Second) {
			at += often - seldom
		}
	}
	return l
}

// TestRamps: those that level off at 1.2 to 3 times the limit survive by one loan, however slow they are.
func TestRamps(t *testing.T) {
	for _, rate := range []float64{1, 5, 25, 100, 400} {
		ramps, survived, loans := 0, 0, 0
		limits := []float64{128, 256, 512, 1024}
		if rate > 100 {
			limits = limits[1:] // the first reading of a faster ramp to 128 MiB may be its last
		}
		for _, limit := range limits {
			for _, factor := range []float64{1.2, 1.5, 2, 3} {
				grows := ramp(limit/8, rate, limit*factor)
				length := time.Duration(limit*factor/rate+30) * time.Second
				l := lives(memory.Bytes(limit)*mib, length, func(at time.Duration) memory.Bytes {
					return memory.Bytes(grows(at.Seconds()) * float64(mib))
				})
				ramps, loans = ramps+1, loans+len(l.loans)
				if !l.killed {
					survived++
				}
			}
		}
		t.Logf("%v MiB/s: %d of %d survive, with %d loans", rate, survived, ramps, loans)
		if survived < ramps || loans != ramps {
			t.Errorf("%v MiB/s: %d are killed, %d get another loan", rate, ramps-survived, loans-ramps)
		}
	}
}

// TestLeaks: each gets one loan and is killed at four times its limit at most, however fast it grows.
func TestLeaks(t *testing.T) {
	for _, percent := range []float64{0.1, 1, 5, 20} { // of the limit, each second
		for _, limit := range []float64{128, 1024} {
			l := lives(memory.Bytes(limit)*mib, 2*time.Hour, func(at time.Duration) memory.Bytes {
				return memory.Bytes(limit * at.Seconds() * percent / 100 * float64(mib))
			})
			if !l.killed || len(l.loans) != 1 || l.refused != LeakSuspected ||
				l.loans[0].To.Limit != 4*memory.Bytes(limit)*mib {
				t.Errorf("%v %% of %v MiB a second: %+v", percent, limit, l)
			}
		}
	}
}

// TestRecordedLeaks: real processes that leak get one loan when they have come halfway.
func TestRecordedLeaks(t *testing.T) {
	for _, r := range recorded(t, true) {
		l := lives(r.highest()/2, time.Duration(len(r)-1)*time.Second, r.at)
		if len(l.loans) != 1 || l.killed {
			t.Errorf("%+v", l)
		}
	}
}
