// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

func stallAt(pod string, minutes float64, limit memory.Bytes) memory.Stall {
	return memory.Stall{
		Container: memory.ContainerRef{Namespace: "shop", Pod: pod, UID: types.UID(pod), Container: "app"},
		Limit:     limit, Since: at(minutes), Confirmed: at(minutes + 1), Anon: limit.Percent(92), Usage: limit.Percent(99),
		Faults: 150, PressurePercent: 12,
	}
}

func over(s memory.Stall, minutes float64) memory.Stall {
	s.Ended = at(minutes)
	return s
}

func TestAStallIsCountedOnce(t *testing.T) {
	existing := map[types.UID]bool{"a": true, "b": true}
	first := stallAt("a", 0, mi(256))
	raised := first
	raised.RaisedTo = mi(512)
	inVain := over(raised, 9)
	inVain.FaultsAfter, inVain.NotRelieved = 140, true
	for name, tc := range map[string]struct {
		told             []memory.Stall
		want             int64
		wantNew, wantEnd int
	}{
		"told again and again":          {[]memory.Stall{first, first, first}, 1, 1, 0},
		"it ends":                       {[]memory.Stall{first, over(first, 5), over(first, 5)}, 1, 1, 1},
		"it comes back within minutes":  {[]memory.Stall{first, over(first, 5), stallAt("a", 12, mi(256))}, 1, 1, 1},
		"it comes back an hour later":   {[]memory.Stall{first, over(first, 5), stallAt("a", 65, mi(256))}, 2, 2, 1},
		"memfit restarts in the middle": {[]memory.Stall{first, stallAt("a", 4, mi(256))}, 1, 1, 0},
		"two replicas":                  {[]memory.Stall{first, stallAt("b", 1, mi(256))}, 2, 2, 0},
		"again at the limit it got":     {[]memory.Stall{first, raised, stallAt("a", 6, mi(512))}, 2, 2, 0},
		"what is late changes nothing": {
			[]memory.Stall{first, over(first, 5), stallAt("a", 65, mi(256)), over(first, 5)}, 2, 2, 1,
		},
		"a raise in vain is remembered":  {[]memory.Stall{first, raised, inVain, stallAt("a", 12, mi(256))}, 1, 1, 1},
		"its pod goes":                   {[]memory.Stall{stallAt("gone", 0, mi(256))}, 1, 1, 1},
		"it is over before it was filed": {[]memory.Stall{over(first, 5)}, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Ledger{}
			began, ended := 0, 0
			for _, s := range tc.told {
				b, e := l.UpdateStalls([]memory.Stall{s}, existing, at(70))
				began, ended = began+len(b), ended+len(e)
				l = reborn(t, l)
			}
			if l.StallTotal("app") != tc.want || began != tc.wantNew || ended != tc.wantEnd {
				t.Errorf(
					"counted %d, new %d, ended %d, want %d, %d, %d: %+v", l.StallTotal("app"), began, ended, tc.want, tc.wantNew,
					tc.wantEnd, l.byName("app").Stalls,
				)
			}
			if l.Total("app") != 0 || len(l.All()) != 0 || killsOf(l) != 0 {
				t.Error("a stall is among the kills")
			}
			if kept := l.byName("app").Stalls; name == "a raise in vain is remembered" &&
				(!kept[0].NotRelieved || kept[0].RaisedTo != mi(512)) {
				t.Errorf("%+v does not say that a raise was in vain", kept)
			}
		})
	}
}

// At the limit from before, it stalls again: with the same process, or with the next ones.
func TestARaiseInVainIsNotForgottenWhileStallsGoOn(t *testing.T) {
	vain := over(stallAt("a", 0, mi(256)), 9)
	vain.RaisedTo, vain.FaultsAfter, vain.NotRelieved = mi(512), 140, true
	asks := func(l *Ledger, minutes float64) int { return len(l.KillsAndStalls(at(minutes))) }

	l := &Ledger{}
	l.UpdateStalls([]memory.Stall{vain, stallAt("a", 12, mi(256))}, map[types.UID]bool{"a": true}, at(13))
	if _, open := l.OpenStall(vain.Container); !open || asks(l, 14) != 0 {
		t.Errorf("open %v, and %d stalls ask for a raise: %+v", open, asks(l, 14), l.byName("app").Stalls)
	}
	if _, known := l.IneffectiveRaise("app", at(14)); !known {
		t.Error("a stall that goes on made the raise in vain forgotten")
	}
	l = &Ledger{}
	l.UpdateStalls([]memory.Stall{vain}, nil, at(13))
	for i := range 3 * StallsKept {
		pod, from := fmt.Sprintf("b%d", i), float64(60*i+60)
		l.UpdateStalls([]memory.Stall{over(stallAt(pod, from, mi(256)), from+9)}, nil, at(from+9))
		if l = reborn(t, l); asks(l, from+10) != 0 {
			t.Fatalf("after %d more stalls one asks for a raise again: %+v", i+1, l.byName("app").Stalls)
		}
	}
	if n := len(l.byName("app").Stalls); n != StallsKept {
		t.Errorf("%d stalls are kept, want %d", n, StallsKept)
	}
}

func TestStallsSurviveARestartWhole(t *testing.T) {
	l, existing := &Ledger{}, map[types.UID]bool{"a": true}
	want := over(stallAt("a", 0, mi(256)), 9)
	want.RaisedTo, want.FaultsAfter, want.NotRelieved = mi(512), 140, true
	l.UpdateStalls([]memory.Stall{want}, existing, at(9))
	if diff := cmp.Diff([]memory.Stall{want}, reborn(t, l).byName("app").Stalls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	open := stallAt("a", 60, mi(512))
	l.UpdateStalls([]memory.Stall{open}, existing, at(61))
	var w StallWatch
	if s, found := reborn(t, l).OpenStall(open.Container); !found {
		t.Error("the stall that goes on is lost")
	} else {
		w.Resume(s)
	}
	if s, ok := w.Stall(); !ok || !s.Ended.IsZero() || !s.Since.Equal(open.Since) {
		t.Errorf("resumed as %+v", s)
	}
}

// TestAStallKeepsItsProgram: after a restart of memfit a stall counts for the program that stalled, not for all.
func TestAStallKeepsItsProgram(t *testing.T) {
	var l Ledger
	s := over(stallAt("web-1", 0, mi(256)), 5)
	l.UpdateStalls([]memory.Stall{s}, map[types.UID]bool{}, at(10))
	l.Attribute(func(memory.ContainerRef) string { return "p1" })
	got := reborn(t, &l).byName(s.Container.Container).Stalls
	if len(got) != 1 || got[0].Program != "p1" {
		t.Errorf("after a restart: %+v", got)
	}
}

// TestStallsOfManyReplicasAreCountedOnce: more stall at a time than are kept, as when a service of theirs is slow.
func TestStallsOfManyReplicasAreCountedOnce(t *testing.T) {
	const replicas = 500
	l, existing := &Ledger{}, map[types.UID]bool{}
	var found []memory.Stall
	for i := range replicas {
		s := stallAt(fmt.Sprintf("pod-%04d", i), float64(i/100), mi(256)) // a hundred in one second
		existing[s.Container.UID] = true
		found = append(found, s)
	}
	for step := range 3 {
		began, ended := l.UpdateStalls(found, existing, at(10+float64(step)))
		if step == 0 && len(began) != replicas || step > 0 && len(began) > 0 || len(ended) > 0 {
			t.Fatalf("step %d: %d began and %d ended, want %d to begin once", step, len(began), len(ended), replicas)
		}
		slices.Reverse(found)
		l = reborn(t, l)
	}
	if got := l.StallTotal("app"); got != replicas {
		t.Errorf("%d stalls counted, want %d", got, replicas)
	}
}

func TestStallsAreBounded(t *testing.T) {
	var l Ledger
	existing := map[types.UID]bool{}
	for i := range 1000 {
		s := over(stallAt(fmt.Sprintf("pod-%04d", i), float64(i), mi(256)), float64(i)+0.5)
		s.Container.Container = fmt.Sprintf("c%d", i%40)
		l.UpdateStalls([]memory.Stall{s}, existing, at(2000))
	}
	if got := len(l.AllStalls()); got != stallNames*StallsKept {
		t.Errorf("%d stalls kept, want %d", got, stallNames*StallsKept)
	}
	data, err := l.MarshalBinary()
	if most := stallNames * StallsKept * 300; err != nil || len(data) > most {
		t.Errorf("stored in %d bytes (%v), want at most %d", len(data), err, most)
	}
}
