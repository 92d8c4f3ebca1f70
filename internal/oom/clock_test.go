// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"strings"
	"testing"
)

// TestAWrongClockDoesNotMoveAKill: the kubelet's time stands where it can be, and memfit's own where it cannot: a clock
// that runs behind would put a kill before the change that led to it, and one that runs ahead would keep it news for
// ever.
func TestAWrongClockDoesNotMoveAKill(t *testing.T) {
	for what, tc := range map[string]struct {
		started, finished float64 // by the node's clock
		lastLook          float64 // by memfit's; 0: none
		want              string
	}{
		"clocks agree":                       {30, 58, 50, "08:58"},
		"nobody looked before":               {30, 58, 0, "08:58"},
		"half an hour behind":                {0, 28, 50, "09:00"},
		"behind, and nobody looked before":   {10, 28, 0, "08:28"},
		"so far behind that it was not born": {-90, -70, 0, "09:00"},
		"a little ahead":                     {30, 61, 50, "09:01"},
		"a day ahead":                        {30, 60 * 24, 50, "09:00"},
	} {
		var l Ledger
		pod := makePod("web-1", "u1").created(1)
		l.Update(Observe(pod.container("app", "256Mi", running(0, 1)).pod), nil, at(0))
		obs := Observe(pod.container("app", "256Mi", ended(0, oom(0, tc.started, tc.finished))).pod)
		if tc.lastLook != 0 {
			obs[0].LastSeen = at(tc.lastLook)
		}
		kills := l.Update(obs, nil, at(60))
		if len(kills) != 1 {
			t.Fatalf("%s: %d kills, want 1", what, len(kills))
		}
		if got := kills[0].Time.Format("15:04"); got != tc.want {
			t.Errorf("%s: killed at %s, want %s", what, got, tc.want)
		}
		if corrected := strings.Contains(
			kills[0].Why, "the node's clock reports",
		); corrected != (tc.want == "09:00") {
			t.Errorf("%s: it says %q", what, kills[0].Why)
		}
		if onFile := reborn(t, &l).Kills("app"); !kills[0].Seen.Equal(at(60)) || !onFile[0].Seen.Equal(at(60)) {
			t.Errorf("%s: seen at %s, on file at %s, want the time of the look", what, kills[0].Seen, onFile[0].Seen)
		}
		if again := l.Update(obs, nil, at(61)); len(again) != 0 {
			t.Errorf("%s: counted again", what)
		}
	}
}

// TestAStatusWithoutAContainerIsNone: the node writes statuses, and could fill memfit's memory with names.
func TestAStatusWithoutAContainerIsNone(t *testing.T) {
	pod := makePod("web-1", "u1").container("app", "256Mi", running(0, 0)).pod
	for _, name := range []string{"other", "and-another"} {
		cs := running(9, 0)
		cs.Name = name
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, cs)
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, cs)
	}
	if obs := Observe(pod); len(obs) != 1 || obs[0].Container.Container != "app" {
		t.Errorf("observed %+v, want container app only", obs)
	}
}
