// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"
)

func TestLasting(t *testing.T) {
	now := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	all := []Silence{
		{Node: "never"},
		{Node: "a-minute", LastResponse: now.Add(-time.Minute)},
		{Node: "five", LastResponse: now.Add(-5 * time.Minute)},
		{Node: "clock-went-back", LastResponse: now.Add(time.Hour)},
	}
	told := Lasting(all, now)
	if len(told) != 3 || told[0].Node != "never" || told[1].Node != "five" || told[2].Node != "clock-went-back" {
		t.Errorf("told of %v, want all but the one that answered a minute ago", told)
	}
	if all[1].Node != "a-minute" || all[2].Node != "five" {
		t.Error("what was handed in has changed")
	}
	if again := Lasting(told, now); len(again) != 3 {
		t.Errorf("told of %v", again)
	}
	if got := Lasting(nil, now); len(got) != 0 {
		t.Errorf("told of %v, of none", got)
	}
}
