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

// TestHeapCost runs the program of the article on Go in Java, with 60 % of its limit as heap. It compares the reported
// cost of the collector with the JVM's times of its threads, and with Serial the predicted saving of 64Mi more with a
// second program with such a limit, while both answer requests in turn.
func TestHeapCost(t *testing.T) {
	work := t.TempDir()
	for _, jdk := range jdks {
		for _, tc := range []struct {
			collector string
			limit     memory.Bytes
			replaced  int // rows that a request replaces: 12 KiB are 20
			least     bool
			fast      bool // a young collection may happen before the full one is read; then nothing is predicted
		}{
			{"Serial", 134 * memory.MiB, 20, false, false},
			{"Serial", 160 * memory.MiB, 200, false, true},
			{"Serial", 107 * memory.MiB, 20, true, false}, // the live heap does not fit the old generation, but would
			{"Parallel", 160 * memory.MiB, 200, false, false},
			{"G1", 160 * memory.MiB, 200, false, false},
		} {
			t.Run(fmt.Sprintf("%s-%s, %s, %d", jdk.name, tc.collector, tc.limit, tc.replaced), func(t *testing.T) {
				now := startSeller(t, work, jdk.java, tc.collector, tc.limit, tc.replaced)
				then := now
				if tc.collector == "Serial" {
					then = startSeller(t, work, jdk.java, tc.collector, tc.limit+runtimes.MoreLimit, tc.replaced)
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
						t.Errorf("a saving of %.0f %% is predicted for %s, want none", 100*p.Cost.Saved, tc.collector)
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
						t.Errorf("predicted at least %.0f %%, measured %.0f %%", 100*p.Cost.Saved, 100*saved)
					}
					return
				}
				within(t, "what 64Mi more save", p.Cost.Saved, saved)
			})
		}
	}
}

// Indices of the program's answer: sums since it started, times in nanoseconds.
const (
	requests = iota
	busy
	collector
)

// seller is the program in Java, with its last answer and its first, which includes the compilation of its code.
type seller struct {
	*Process

	first, all []int64
}

// each returns a sum per request.
func (s *seller) each(sum int) float64 {
	return float64(s.all[sum]-s.first[sum]) / float64(s.all[requests]-s.first[requests])
}

// startSeller starts the program, which has some 50 MiB alive.
func startSeller(t *testing.T, work, java, collector string, limit memory.Bytes, replaced int) *seller {
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

// answer makes it answer requests for some processor time.
func (s *seller) answer(t *testing.T) {
	t.Helper()
	reported, err := s.Numbers("load 2500")
	if err != nil || len(reported) != 3 {
		t.Fatalf("%v, %v", reported, err)
	}
	s.all = reported
	if s.first == nil {
		s.first = reported
	}
}

// predict returns the agent's prediction for its heap while it answers requests: the live heap is known only after a
// full collection.
func (s *seller) predict(t *testing.T, limit memory.Bytes) levers.Prediction {
	t.Helper()
	answered := make(chan error)
	go func() {
		_, err := s.Ask("load 4000")
		answered <- err
	}()
	time.Sleep(time.Second) // its threads have started
	result, err := s.Attribute(t.Context())
	if err := errors.Join(err, <-answered); err != nil {
		t.Fatal(err)
	}
	return predictionOf(t, result, limit, "a larger heap")
}
