// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// script is a Source that answers as configured.
type script struct {
	name    string
	reading Reading
	err     error
	reads   int
	then    func() // run during a read
}

func (s *script) Name() string { return s.name }

func (s *script) Read(context.Context, Node) (Reading, error) {
	s.reads++
	if s.then != nil {
		s.then()
	}
	return s.reading, s.err
}

func TestTheFirstSourceThatAnswersIsTaken(t *testing.T) {
	errA, errB := errors.New("403"), errors.New("no series")
	for name, test := range map[string]struct {
		a, b      *script
		source    string
		gap       string
		wantReads string // of a, b
	}{
		"the first answers":                         {a: &script{}, b: &script{}, source: "a", wantReads: "1 0"},
		"an empty node is an answer, not a failure": {a: &script{}, b: &script{err: errB}, source: "a", wantReads: "1 0"},
		"the second answers and says so":            {a: &script{err: errA}, b: &script{}, source: "b", wantReads: "1 1"},
		"nobody answers": {
			a: &script{err: errA}, b: &script{err: errB}, gap: "a: 403; b: no series", wantReads: "1 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.a.name, test.a.reading.Source = "a", "a"
			test.b.name, test.b.reading.Source = "b", "b"
			c := &Collector{Sources: []Source{test.a, test.b}, Now: time.Now}
			readings, gaps := collect(t.Context(), c, nodes(1))
			source, gap := "", ""
			for _, r := range readings {
				source += r.Source
			}
			for _, g := range gaps {
				gap += g.Error
			}
			got := [3]string{source, gap, fmt.Sprint(test.a.reads, " ", test.b.reads)}
			if want := [3]string{test.source, test.gap, test.wantReads}; got != want {
				t.Errorf("the source of the reading, the gap and the reads of a and b are %q, want %q", got, want)
			}
			if c.Name() != "a or b" {
				t.Errorf("they are called %q", c.Name())
			}
		})
	}
}

// TestASourceThatFailsIsAskedLessAndLessOften: the other one answers meanwhile, and other nodes do not wait for it.
func TestASourceThatFailsIsAskedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{name: "a", err: errors.New("timeout")}, &script{name: "b"}
		c := &Collector{Sources: []Source{a, b}, Now: time.Now}
		began := time.Now()
		var asked []time.Duration
		for time.Since(began) < time.Hour {
			before := a.reads
			if readings, gaps := collect(t.Context(), c, nodes(1)); len(readings) != 1 || len(gaps) > 0 {
				t.Fatalf("%d readings and gaps %v, want those of b", len(readings), gaps)
			}
			if a.reads > before {
				asked = append(asked, time.Since(began))
			}
			time.Sleep(15 * time.Second)
		}
		var longest time.Duration
		for i := range asked[1:] {
			longest = max(longest, asked[i+1]-asked[i])
		}
		if len(asked) > 25 || longest > 5*time.Minute+15*time.Second {
			t.Errorf("a was asked %d times in an hour, at %v: want 25 at most, and once in five minutes", len(asked), asked)
		}
		before := a.reads
		if collect(t.Context(), c, nodes(2)); a.reads == before {
			t.Error("another node has to wait for the first one's failures")
		}
		a.err = nil
		time.Sleep(5 * time.Minute)
		for range 2 {
			before := a.reads
			if collect(t.Context(), c, nodes(1)); a.reads != before+1 {
				t.Error("a is back, but not asked each time again")
			}
		}
	})
}

func TestTheNextSourceIsNotAskedWhenTheCallerStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a, b := &script{name: "a", err: context.Canceled, then: cancel}, &script{name: "b"}
	c := &Collector{Sources: []Source{a, b}, Now: time.Now}
	if _, gaps := collect(ctx, c, nodes(1)); len(gaps) != 1 || b.reads != 0 || c.states["n0"].sources[0].failures != 0 {
		t.Errorf("gaps %v after %d reads of b, want one, none, and nobody's failure", gaps, b.reads)
	}
}

func TestTheSecondSourceIsReachedAlthoughTheFirstTakesAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &script{name: "b", reading: Reading{Source: "b"}}
		c := &Collector{Sources: []Source{&fake{name: "a", took: time.Hour}, b}, Now: time.Now}
		answered := 0
		for range 20 {
			if readings, _ := collect(t.Context(), c, nodes(1)); len(readings) == 1 {
				answered++
			}
			time.Sleep(15 * time.Second)
		}
		if answered < 12 {
			t.Errorf("b answered in %d of 20 cycles, want nearly all", answered)
		}
	})
}
