// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// hours is how long each container lives in the tests of this file. docs/evidence/rescue.md has the figures of 100.
var hours = flag.Float64("hours", 2, "hours that each container lives in the tests of false alarms")

// containerLife follows a container that never needs more than its limit, with the loans that its alarms get and that
// end after an hour, and returns when it raised alarms. Each is false.
func containerLife(limit memory.Bytes, demand func(at time.Duration) memory.Bytes) (raised []time.Duration) {
	var w Watch
	until := time.Duration(0)
	for at := time.Duration(0); at.Hours() < *hours; {
		allowed := limit
		if at < until {
			allowed = limit.Percent(MaxPercent)
		}
		w.Add(Sample{start.Add(at), demand(at), allowed})
		if p, due := w.Due(allowed, 0, 420*time.Millisecond); due {
			w.Raise(p)
			raised, until = append(raised, at), at+Hold
		}
		if at += seldom; w.MayReach(allowed, 2*time.Second) {
			at += often - seldom
		}
	}
	return raised
}

// collected is a garbage-collected heap: it grows by what the program allocates until a collection, which leaves what
// is alive. Both vary from one collection to the next, and with the time of day.
type collected struct {
	rng *rand.Rand
	// cap is the heap at which it is collected at the latest, live what is alive at most, in MiB; early is the mean share
	// of what is between them by which a collection comes before.
	cap, live, early float64
	perSecond        float64 // MiB that are allocated

	last      time.Duration
	now, peak float64
}

func (h *collected) at(at time.Duration) memory.Bytes {
	load := 0.55 + 0.45*math.Sin(2*math.Pi*at.Hours()/24) // of the day
	h.now += h.perSecond * load * (at - h.last).Seconds()
	if h.last = at; h.now >= h.peak {
		h.now = h.live * (0.8 + 0.2*load*h.rng.Float64())
		h.peak = h.cap - (h.cap-h.now)*min(h.early*h.rng.ExpFloat64(), 0.9)
	}
	return memory.Bytes(h.now * float64(mib))
}

// TestSteadyHeaps counts the alarms of collected heaps that run for days near their limit of 512 MiB, and of how many
// they come in the first hour. A container starts with what is alive, so that its first climb may give one.
func TestSteadyHeaps(t *testing.T) {
	for _, c := range []struct {
		name                   string
		live, early, perSecond float64
	}{
		{"Node.js, some garbage", 150, 0.10, 20},
		{"Node.js, much garbage", 150, 0.10, 150},
		{"JVM, small young generation", 300, 0.02, 100},
		{"JVM, large young generation", 120, 0.02, 600},
		{"Go, GOGC", 200, 0.20, 50},
		{"Go, GOMEMLIMIT", 200, 0.05, 300},
	} {
		for _, share := range []float64{0.75, 0.9, 0.96} {
			alarms, later, containers := 0, 0, 4
			for i := range containers {
				h := &collected{
					rng: rand.New(rand.NewPCG(uint64(i), 33)), cap: 512 * share, live: c.live, early: c.early, perSecond: c.perSecond,
				}
				for _, at := range containerLife(512*mib, h.at) {
					if alarms++; at > time.Hour {
						later++
					}
				}
			}
			total := *hours * float64(containers)
			t.Logf("%-28s up to %.0f %% of the limit: %d alarms of %d containers, %d after the first hour: %.2f per 100 h",
				c.name, 100*share, alarms, containers, later, 100*float64(alarms)/total)
			if alarms > containers || later > 0 {
				t.Errorf("%s up to %.0f %% of the limit: %d alarms of %d containers, %d of them after the first hour", c.name,
					100*share, alarms, containers, later)
			}
		}
	}
}

// TestRecordedHeapsForDays repeats each recorded process, its start included, for as long as a container lives.
func TestRecordedHeapsForDays(t *testing.T) {
	for _, above := range []int32{4, 15} {
		alarms, later, processes := 0, 0, 0
		for _, r := range recorded(t, false) {
			length := time.Duration(len(r)-1) * time.Second
			limit := r.highest().Percent(100 + above).Plus(2 * mib)
			for _, at := range containerLife(limit, func(at time.Duration) memory.Bytes { return r.at(at % length) }) {
				if alarms++; at > length {
					later++
				}
			}
			processes++
		}
		total := *hours * float64(processes)
		t.Logf("%d %% above the highest: %d alarms of %d processes, %d after the first time: %.2f per 100 h", above, alarms,
			processes, later, 100*float64(alarms)/total)
		if later > 0 {
			t.Errorf("%d %% above the highest: %d alarms after the first time", above, later)
		}
	}
}
