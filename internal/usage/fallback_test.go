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

func TestFallback(t *testing.T) {
	errA, errB, errC := errors.New("403"), errors.New("no series"), errors.New("404")
	for name, test := range map[string]struct {
		a, b, c       *script // c: b is itself a Fallback of b and c
		wantSource    string
		wantErr       []error
		wantReads     string // of a, b, c
		wantErrString string
	}{
		"the first answers": {
			a: &script{reading: Reading{Source: "a"}}, b: &script{reading: Reading{Source: "b"}},
			wantSource: "a", wantReads: "1 0 0",
		},
		"an empty node is an answer, not a failure": {
			a: &script{reading: Reading{Source: "a", Samples: nil}}, b: &script{reading: Reading{Source: "b"}},
			wantSource: "a", wantReads: "1 0 0",
		},
		"the second answers and says so": {
			a: &script{err: errA}, b: &script{reading: Reading{Source: "b"}},
			wantSource: "b", wantReads: "1 1 0",
		},
		"nobody answers": {
			a: &script{err: errA}, b: &script{err: errB},
			wantErr: []error{errA, errB}, wantErrString: "a: 403; b: no series", wantReads: "1 1 0",
		},
		"three, the last answers": {
			a: &script{err: errA}, b: &script{err: errB}, c: &script{reading: Reading{Source: "c"}},
			wantSource: "c", wantReads: "1 1 1",
		},
		"three, nobody answers": {
			a: &script{err: errA}, b: &script{err: errB}, c: &script{err: errC},
			wantErr: []error{errA, errB, errC}, wantErrString: "a: 403; b or c: b: no series; c: 404", wantReads: "1 1 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.a.name, test.b.name = "a", "b"
			var second Source = test.b
			reads := func() string { return fmt.Sprint(test.a.reads, " ", test.b.reads, " ", 0) }
			if test.c != nil {
				test.c.name = "c"
				second = Fallback(test.b, test.c)
				reads = func() string { return fmt.Sprint(test.a.reads, " ", test.b.reads, " ", test.c.reads) }
			}
			r, err := Fallback(test.a, second).Read(t.Context(), Node{Name: "n"})
			if r.Source != test.wantSource {
				t.Errorf("reading is from %q, want %q", r.Source, test.wantSource)
			}
			checkErrors(t, err, test.wantErr)
			if err != nil && err.Error() != test.wantErrString {
				t.Errorf("error is %q, want %q", err, test.wantErrString)
			}
			if got := reads(); got != test.wantReads {
				t.Errorf("reads of a, b, c: %s, want %s", got, test.wantReads)
			}
		})
	}
}

func checkErrors(t *testing.T, got error, want []error) {
	t.Helper()
	if (got == nil) != (len(want) == 0) {
		t.Errorf("error is %v, want %v", got, want)
	}
	for _, w := range want {
		if !errors.Is(got, w) {
			t.Errorf("error is %v, without %v", got, w)
		}
	}
}

func TestFallbackAsksLessAndLessOften(t *testing.T) {
	a, b := &script{name: "a", err: errors.New("timeout")}, &script{name: "b"}
	f := Fallback(a, b)
	read := func(node string) {
		t.Helper()
		if _, err := f.Read(t.Context(), Node{Name: node}); err != nil {
			t.Fatalf("reading %s: %v", node, err)
		}
	}
	var asked []int
	for i := range 40 {
		before := a.reads
		if read("n"); a.reads > before {
			asked = append(asked, i)
		}
	}
	if got, want := fmt.Sprint(asked), "[0 1 3 7 15 31]"; got != want {
		t.Errorf("a was asked at reads %s of 40, want %s", got, want)
	}
	before := a.reads
	if read("another"); a.reads != before+1 {
		t.Error("another node has to wait for the first one's failures")
	}
	a.err = nil
	for range maxSkips + 1 {
		read("n")
	}
	before = a.reads
	read("n")
	if read("n"); a.reads != before+2 {
		t.Error("a is back, but not asked each time again")
	}
}

func TestFallbackNeverLeavesTheFirstOutForLong(t *testing.T) {
	a, b := &script{name: "a", err: errors.New("timeout")}, &script{name: "b"}
	f := Fallback(a, b)
	silence, longest := 0, 0
	for range 1000 {
		before := a.reads
		if _, err := f.Read(t.Context(), Node{Name: "n"}); err != nil {
			t.Fatal(err)
		}
		if silence++; a.reads > before {
			silence = 0
		}
		longest = max(longest, silence)
	}
	if longest != maxSkips {
		t.Errorf("a was left out %d times in a row, want at most and at last %d", longest, maxSkips)
	}
}

func TestFallbackForgetsRatherThanGrows(t *testing.T) {
	f := Fallback(&script{name: "a", err: errors.New("timeout")}, &script{name: "b"}).(*fallback)
	for i := range maxRefusals + 10 {
		if _, err := f.Read(t.Context(), Node{Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.failed) != 10 {
		t.Errorf("%d nodes remembered, want 10", len(f.failed))
	}
}

func TestFallbackStopsWhenTheCallerDoes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a, b := &script{name: "a", err: context.Canceled, then: cancel}, &script{name: "b"}
	if _, err := Fallback(a, b).Read(ctx, Node{Name: "n"}); !errors.Is(err, context.Canceled) || b.reads != 0 {
		t.Errorf("error %v after %d reads of b, want %v and none", err, b.reads, context.Canceled)
	}
}

func TestFallbackReachesTheSecondAlthoughTheFirstTakesAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Fallback(&fake{name: "a", took: time.Hour}, &script{name: "b", reading: Reading{Source: "b"}})
		c := &Collector{Source: f, Now: time.Now}
		var answered []int
		for cycle := range 4 {
			if readings, _ := collect(t.Context(), c, nodes(1)); len(readings) == 1 {
				answered = append(answered, cycle)
			}
			time.Sleep(time.Minute)
		}
		if fmt.Sprint(answered) != "[2]" {
			t.Errorf("b answered in cycles %v, want [2]: a is asked in 0, 1 and 3", answered)
		}
	})
}
