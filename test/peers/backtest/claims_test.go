// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// TestAClaimThatHangsOnOneSeries: two of ten series differ. What one of them decides is true of two resamples in
// three (1 - 0.9^10), and what all of them agree on is true of all.
func TestAClaimThatHangsOnOneSeries(t *testing.T) {
	outcomes := []Outcome{
		outcome("memfit", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		outcome("vpa", 0.9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0), // a GiB-day less in all, and a kill
		outcome("vpa-wide", 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
	}
	got := map[string]Support{}
	for _, s := range Supports(outcomes) {
		got[s.Claim] = s
	}
	if len(got) != len(allClaims()) {
		t.Errorf("%d claims, want %d", len(got), len(allClaims()))
	}
	hangs := got["balanced 50"]
	if want := 1 - math.Pow(0.9, 10); !hangs.Held || math.Abs(hangs.Share-want) > 0.06 {
		t.Errorf("%+v, want it held in about %.2f", hangs, want)
	}
	if s := got["curve"]; !s.Held || s.Share != 1 {
		t.Errorf("%+v, want it held in all: memfit is never killed", s)
	}
	var out bytes.Buffer
	hangs.Print(&out, "s")
	if want := "set=s claim=balanced@50 held=yes resamples="; !strings.HasPrefix(out.String(), want) {
		t.Errorf("%q, want %q first", out.String(), want)
	}
}
