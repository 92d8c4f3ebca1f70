// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestDominanceIsBothOfCurvesAndCosts: a curve below the other one is not enough when nothing lean is cheaper.
func TestDominanceIsBothOfCurvesAndCosts(t *testing.T) {
	vpa := curve{{2, 4}, {6, 0}}
	for name, c := range map[string]struct {
		rules []trade
		want  bool
	}{
		"below and cheaper":        {[]trade{{1, 4}, {5, 0}, {9, 0}}, true},
		"dearer at one price":      {[]trade{{1, 6}, {5.9, 0.2}, {9, 0}}, false},
		"no kills, but never lean": {[]trade{{7, 0}, {8, 0}, {9, 0}}, false},
		"lean, and never wide":     {[]trade{{1, 4}, {1.2, 3}, {1.5, 2}}, false},
	} {
		good := field{vpa: vpa, rules: []trade{{0.5, 3}, {3, 0}, {4, 0}}}
		if got := dominate([]field{good, {vpa: vpa, rules: c.rules}}, 2, 1, 0); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestRoomRulesHaveTheDefault: memfit's own rule is among those of hindsight, so that they reach what it does.
func TestRoomRulesHaveTheDefault(t *testing.T) {
	points := Generate(3).Series[0].Points[:600]
	want := Simulate(Series{Points: points}, newMemfit(""), false)
	for _, c := range roomRules() {
		got := Simulate(Series{Points: points}, c.contender().make(), false)
		if got.Slack == want.Slack && got.Kills == want.Kills {
			return
		}
	}
	t.Error("no rule does what memfit's default does")
}

func TestPosturesAreInOrder(t *testing.T) {
	little, more := roomRule{0, 10, 20, 30, 40}, roomRule{0, 10, 40, 30, 40}
	floor, steep := roomRule{100, 10, 30, 30, 40}, roomRule{0, 20, 10, 30, 40}
	for name, c := range map[string]struct {
		rules []roomRule
		want  bool
	}{
		"each gives as much as the one before": {[]roomRule{more, little, little}, true},
		"one has a floor, and a shorter span":  {[]roomRule{little, more, floor}, false},
		"one is steeper, and ends earlier":     {[]roomRule{little, steep, more}, false},
	} {
		if got := inOrder(c.rules...); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
