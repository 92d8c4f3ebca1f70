// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && runtimes

package evalattribution

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/memfit/memfit/internal/levers"
)

// TestHeapCost runs the program of the article on Go in Java. What is reported of its collector is compared with what
// the JVM itself counts of its threads while it answers requests.
func TestHeapCost(t *testing.T) {
	work := t.TempDir()
	for _, jdk := range jdks {
		for _, tc := range []struct {
			collector string
			heap      int // MiB
		}{
			{"Serial", 64}, {"Serial", 128}, {"Parallel", 96}, {"G1", 96},
		} {
			t.Run(fmt.Sprintf("%s-%s, %dMi", jdk.name, tc.collector, tc.heap), func(t *testing.T) {
				s := sell(t, work, jdk.java, "-XX:+Use"+tc.collector+"GC", "-Xmx"+strconv.Itoa(tc.heap)+"m")
				for range 6 {
					s.answer(t)
				}
				p := s.predict(t)
				t.Logf("%d requests; %s", s.requests, p.Why)
				within(t, "the collector's share", p.Cost.Collector, float64(s.collector)/float64(s.busy))
			})
		}
	}
}

// seller is the program in Java, and what it last reported of all that it did.
type seller struct {
	*Process

	requests, busy, collector int64
}

// sell starts the program. It has 60 MiB alive, of which a request replaces 10 KiB.
func sell(t *testing.T, work, java string, options ...string) *seller {
	t.Helper()
	command, err := javaCommand(work, java, "Sales", []string{"90000", "20"}, options...)
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
	s.requests, s.busy, s.collector = said[0], said[1], said[2]
}

// predict is what the agent reports of its heap.
func (s *seller) predict(t *testing.T) levers.Prediction {
	t.Helper()
	look, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := predicted(&look, "a larger heap")
	if err != nil {
		t.Fatalf("%v: %+v, %v", err, look.Usages, look.Failed)
	}
	return p
}
