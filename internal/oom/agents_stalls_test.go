// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// TestAgentsExplainStalls: what an agent saw joins the stall on file that it is of, once, and counts nothing.
func TestAgentsExplainStalls(t *testing.T) {
	saw := func(pod string, from, to float64) AgentStall {
		a := AgentStall{Container: stallAt(pod, 0, 0).Container, Started: at(from), Account: "it grew"}
		if to > 0 {
			a.Ended = at(to)
		}
		return a
	}
	existing := map[types.UID]bool{"a": true, "b": true}
	first, second := []memory.Stall{stallAt("a", 20, mi(256))}, []memory.Stall{stallAt("a", 100, mi(256))}
	ended, soon := []memory.Stall{over(first[0], 30)}, []memory.Stall{stallAt("a", 31, mi(512))}
	for name, tc := range map[string]struct {
		onFile []memory.Stall
		seen   []AgentStall
		want   string // pod and minute of each stall on file with an account
		told   int
	}{
		"it goes on":                     {first, []AgentStall{saw("a", 19, 0)}, "a20", 1},
		"told again, and with its end":   {first, []AgentStall{saw("a", 19, 0), saw("a", 19, 30)}, "a20", 1},
		"the agent began anew":           {first, []AgentStall{saw("a", 19, 0), saw("a", 25, 0)}, "a20", 1},
		"another pod":                    {first, []AgentStall{saw("b", 19, 0)}, "", 0},
		"one that ended an hour before":  {second, []AgentStall{saw("a", 19, 40)}, "", 0},
		"one that came an hour later":    {ended, []AgentStall{saw("a", 90, 0)}, "", 0},
		"the older of two":               {slices.Concat(ended, second), []AgentStall{saw("a", 21, 29)}, "a20", 1},
		"one that began where one ended": {slices.Concat(ended, soon), []AgentStall{saw("a", 31, 0)}, "a31", 1},
		"the same, when it is told again": {
			slices.Concat(ended, soon), []AgentStall{saw("a", 31, 0), saw("a", 31, 0)}, "a31", 1,
		},
		"nothing is on file": {nil, []AgentStall{saw("a", 19, 0)}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Ledger{}
			for _, s := range tc.onFile {
				l.UpdateStalls([]memory.Stall{s}, existing, at(120))
			}
			told := 0
			for _, a := range tc.seen {
				told += len(l.ExplainStalls([]AgentStall{a}, at(120)))
				l = reborn(t, l)
			}
			var with []string
			for _, s := range l.AllStalls() {
				if s.Account == "it grew" {
					with = append(with, s.Container.Pod+strings.TrimSuffix(s.Since.Sub(at(0)).String(), "m0s"))
				}
			}
			got := strings.ReplaceAll(strings.Join(with, " "), "1h", "")
			if got != tc.want || told != tc.told || int(l.StallTotal("app")) != len(tc.onFile) {
				t.Errorf("told of %q %d times, want %q %d times; %d stalls counted", got, told, tc.want, tc.told,
					l.StallTotal("app"))
			}
		})
	}
}

// TestAccountsOfStallsAreBounded: the oldest lose what was told of them, and are not told again.
func TestAccountsOfStallsAreBounded(t *testing.T) {
	l, existing := &Ledger{}, map[types.UID]bool{}
	var seen []AgentStall
	for i := range stallNames * StallsKept {
		s := over(stallAt("a", float64(20*i), mi(256)), float64(20*i)+5)
		s.Container.Container = "c" + strings.Repeat("x", i/StallsKept)
		l.UpdateStalls([]memory.Stall{s}, existing, at(5000))
		seen = append(seen, AgentStall{
			Container: s.Container, Started: s.Since.Add(time.Second), Ended: s.Ended, Account: strings.Repeat("x", 320),
		})
	}
	if n := len(l.ExplainStalls(seen, at(5000))); n != len(seen) {
		t.Errorf("%d of %d are explained", n, len(seen))
	}
	size := 0
	all := l.AllStalls()
	for i := range all {
		size += len(all[i].Account)
	}
	if size > stallAccountBytes || size < stallAccountBytes-320 || all[0].Account != "" || all[len(all)-1].Account == "" {
		t.Errorf("%d bytes are kept", size)
	}
	if n := len(reborn(t, l).ExplainStalls(seen, at(5000))); n != 0 {
		t.Errorf("%d are told again", n)
	}
}

// TestAgentsReportStalls: an agent's report begins a stall that samples do not show yet, and nothing else.
func TestAgentsReportStalls(t *testing.T) {
	report := func(l *life, started time.Time) AgentStall {
		return AgentStall{
			Container: l.sample.Container, Started: started, Limit: mi(256), Anon: mi(235), Faults: 150,
		}
	}
	for name, tc := range map[string]struct {
		life   func() *life
		change func(*life, *AgentStall)
		want   bool
	}{
		"half a minute after it began": {want: true},
		"soon after the start of the container": {
			life: func() *life { return newLife(mi(256)).use(time.Minute, mi(235), mi(20), 150) }, want: true,
		},
		"it is over":                    {change: func(l *life, a *AgentStall) { a.Ended = l.sample.Time }},
		"at a limit that was raised":    {change: func(_ *life, a *AgentStall) { a.Limit = mi(192) }},
		"of an instance that is gone":   {change: func(l *life, a *AgentStall) { a.Started = lifeBegan.Add(-time.Hour) }},
		"by a clock far ahead":          {change: func(l *life, a *AgentStall) { a.Started = l.sample.Time.Add(time.Hour) }},
		"no sample of it is known":      {life: func() *life { return newLife(mi(256)) }},
		"samples have shown it already": {life: stalledLife},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(mi(256)).use(time.Hour, mi(180), mi(40), 0).use(30*time.Second, mi(235), mi(20), 150)
			if tc.life != nil {
				l = tc.life()
			}
			a := report(l, l.sample.Time.Add(-30*time.Second))
			if tc.change != nil {
				tc.change(l, &a)
			}
			bounds := StallBounds{Limit: l.limit}
			if got := l.watch.Report(a, bounds, l.sample.Time); got != tc.want {
				t.Fatalf("reported: %t, want %t", got, tc.want)
			}
			if l.watch.Report(a, bounds, l.sample.Time) {
				t.Error("the same report began it again")
			}
			if !tc.want {
				return
			}
			if s, ok := l.watch.Stall(); !ok || s.Since != a.Started || s.Limit != l.limit || !s.Ended.IsZero() {
				t.Errorf("got %+v", s)
			}
			l.use(5*time.Minute, mi(235), mi(20), 150)
			if s, _ := l.watch.Stall(); s.Since != a.Started || !s.Ended.IsZero() {
				t.Errorf("samples say otherwise: %+v", s)
			}
			l.use(5*time.Minute, mi(180), mi(40), 0)
			if s, _ := l.watch.Stall(); s.Ended.IsZero() || l.watch.Report(a, bounds, l.sample.Time) {
				t.Errorf("it goes on: %+v", s)
			}
		})
	}
}

// TestAgentsReportEnds: samples without a count of faults show neither a stall nor its end.
func TestAgentsReportEnds(t *testing.T) {
	l := newLife(mi(256))
	l.sample.HasMajorFaults = false
	l.use(time.Hour, mi(180), mi(40), 0).use(30*time.Second, mi(235), mi(20), 0)
	a := AgentStall{
		Container: l.sample.Container, Started: l.sample.Time.Add(-30 * time.Second), Limit: mi(256), Anon: mi(235),
		Faults: 150,
	}
	bounds := StallBounds{Limit: l.limit}
	if !l.watch.Report(a, bounds, l.sample.Time) {
		t.Fatal("no stall")
	}
	l.use(10*time.Minute, mi(235), mi(20), 0)
	if s, _ := l.watch.Stall(); !s.Ended.IsZero() {
		t.Fatal("it ended by samples that show nothing")
	}
	a.Ended = l.sample.Time
	if s := l.watch; !s.Report(a, bounds, l.sample.Time) || s.stall.Ended != a.Ended {
		t.Errorf("it goes on: %+v", s.stall)
	}
}
