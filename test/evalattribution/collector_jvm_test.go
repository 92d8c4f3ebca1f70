// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && runtimes

package evalattribution

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/levers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// TestHeapCost runs the program of the article on Go in Java, with 60 % of its limit as heap. What is reported of its
// collector is compared with what the JVM prints of its threads, and with Serial what a limit higher by 64Mi saves with
// a second program that has it, while they answer requests by turns.
func TestHeapCost(t *testing.T) {
	work := t.TempDir()
	for _, jdk := range jdks {
		for _, tc := range []struct {
			collector string
			limit     memory.Bytes
			replaced  int // rows that a request replaces: 12 KiB are 20
			least     bool
			fast      bool // the next young collection may come before the full one is read, so that nothing is said
		}{
			{"Serial", 134 * memory.MiB, 20, false, false},
			{"Serial", 160 * memory.MiB, 200, false, true},
			{"Serial", 107 * memory.MiB, 20, true, false}, // the live heap does not fit the old generation, but would
			{"Parallel", 160 * memory.MiB, 200, false, false},
			{"G1", 160 * memory.MiB, 200, false, false},
		} {
			t.Run(fmt.Sprintf("%s-%s, %s, %d", jdk.name, tc.collector, tc.limit, tc.replaced), func(t *testing.T) {
				now := sell(t, work, jdk.java, tc.collector, tc.limit, tc.replaced)
				then := now
				if tc.collector == "Serial" {
					then = sell(t, work, jdk.java, tc.collector, tc.limit+runtimes.MoreLimit, tc.replaced)
				}
				for range 8 {
					now.answer(t)
					if then != now {
						then.answer(t)
					}
				}
				p := now.predict(t, tc.limit)
				t.Log(p.Why)
				within(t, "the collector's share", p.Cost.Collector, float64(now.all[collector])/float64(now.all[busy]))
				if then == now {
					if p.Cost.Saved != 0 {
						t.Errorf("%.0f %% are saved with %s, of which that is not known", 100*p.Cost.Saved, tc.collector)
					}
					return
				}
				saved := (now.each(collector) - then.each(collector)) / now.each(busy)
				t.Logf("a request: %.2f ms, then %.2f ms, of which the collector took %.2f, then %.2f",
					now.each(busy)/1e6, then.each(busy)/1e6, now.each(collector)/1e6, then.each(collector)/1e6)
				if tc.fast && p.Cost.Saved == 0 {
					t.Logf("measured %.0f %%, nothing predicted", 100*saved)
					return
				}
				if tc.least {
					t.Logf("predicted %.0f %%, measured %.0f %%", 100*p.Cost.Saved, 100*saved)
					if p.Cost.Saved > saved+pointBound || p.Cost.Saved < saved/2 {
						t.Errorf("%.0f %% or more are predicted of %.0f %%", 100*p.Cost.Saved, 100*saved)
					}
					return
				}
				within(t, "what 64Mi more save", p.Cost.Saved, saved)
			})
		}
	}
}

// What the program answers: sums since it started, times in nanoseconds.
const (
	requests = iota
	busy
	collector
)

// seller is the program in Java, with its last answer and the first one, until which its code was compiled.
type seller struct {
	*Process

	first, all []int64
}

// each is how much of a sum a request took.
func (s *seller) each(sum int) float64 {
	return float64(s.all[sum]-s.first[sum]) / float64(s.all[requests]-s.first[requests])
}

// sell starts the program, which has some 50 MiB alive.
func sell(t *testing.T, work, java, collector string, limit memory.Bytes, replaced int) *seller {
	t.Helper()
	command, err := javaCommand(work, java, "Sales", []string{"90000", strconv.Itoa(replaced)},
		"-XX:+Use"+collector+"GC", fmt.Sprintf("-XX:MaxRAM=%d", limit), "-XX:MaxRAMPercentage=60", "-XX:MinRAMPercentage=60")
	if errors.Is(err, ErrSkip) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := start(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return &seller{Process: p}
}

// answer has it answer requests for some processor time.
func (s *seller) answer(t *testing.T) {
	t.Helper()
	said, err := s.Numbers("load 2500")
	if err != nil || len(said) != 3 {
		t.Fatalf("%v, %v", said, err)
	}
	s.all = said
	if s.first == nil {
		s.first = said
	}
}

// predict is what the agent reports of its heap while it answers requests: what is alive is known after a full
// collection only.
func (s *seller) predict(t *testing.T, limit memory.Bytes) levers.Prediction {
	t.Helper()
	answered := make(chan error)
	go func() {
		_, err := s.Ask("load 4000")
		answered <- err
	}()
	time.Sleep(time.Second) // its threads have started
	look, err := s.Look(t.Context())
	if err := errors.Join(err, <-answered); err != nil {
		t.Fatal(err)
	}
	return predictionOf(t, look, limit, "a larger heap")
}
