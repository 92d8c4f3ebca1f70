// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// ramped returns a ramp of the arm rescue that reached its limit.
func ramped(rate, limit int, killed bool) result {
	return result{
		arm: "rescue", killed: killed, peak: int64(limit) << 20, program: program{kind: "ramp", rate: rate, limit: limit},
	}
}

func TestTheRunFailsWhenATargetIsMissed(t *testing.T) {
	short := ramped(25, 128, false)
	short.peak = 1 // it did not reach its limit, and does not count
	other := ramped(25, 128, true)
	other.arm = "nothing"
	survivors := []result{ramped(5, 128, false), ramped(25, 256, false), ramped(400, 512, false), short, other}
	for name, tc := range map[string]struct {
		more []result
		want string
	}{
		"none is killed":               {nil, ""},
		"a small one that grows fast":  {[]result{ramped(400, 128, true)}, ""},
		"half of the large ones":       {[]result{ramped(400, 1024, true)}, ""},
		"two thirds of the large ones": {[]result{ramped(400, 1024, true), ramped(400, 512, true)}, "1 of 3 ramps of 400"},
		"one of three slow ones":       {[]result{ramped(100, 512, true)}, "2 of 3 ramps up to 100 MiB/s survived, and 95 %"},
	} {
		got := strings.Join(missedTargets(append(slices.Clip(survivors), tc.more...)), "; ")
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestLoansPerHundredContainerHours(t *testing.T) {
	r := result{arm: "rescue", program: program{kind: "heap", lasts: 6 * time.Minute}, raises: []raise{{}, {}}}
	var b strings.Builder
	otherPrograms(&b, &options{arms: []string{"rescue"}}, []result{r})
	if want := "| rescue | heap | 1 | 0 | 2 | 6.0 | 2000 |"; !strings.Contains(b.String(), want) {
		t.Errorf("%s\nwant %s", b.String(), want)
	}
}
