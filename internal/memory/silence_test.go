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
		{Node: "a-minute", Answered: now.Add(-time.Minute)},
		{Node: "five", Answered: now.Add(-5 * time.Minute)},
	}
	told := Lasting(all, now)
	if len(told) != 2 || told[0].Node != "never" || told[1].Node != "five" {
		t.Errorf("told of %v, want those that never answered, or not for five minutes", told)
	}
	if all[1].Node != "a-minute" || all[2].Node != "five" {
		t.Error("what was handed in has changed")
	}
	if again := Lasting(told, now); len(again) != 2 {
		t.Errorf("told of %v", again)
	}
	if got := Lasting(nil, now); len(got) != 0 {
		t.Errorf("told of %v, of none", got)
	}
}
