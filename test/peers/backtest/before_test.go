// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheCheapestPostureIsComparedWithTheCheapestBefore(t *testing.T) {
	all, err := readPreviousRules("# a note\ns memfit 2 10 0.5\ns memfit-cautious 0 30 0.1\n")
	if err != nil {
		t.Fatal(err)
	}
	v := verdict("s", map[string]trade{
		"memfit": {9, 2}, "memfit-cautious": {33, 0}, "price-100": {27, 0}, "vpa": {50, 1}, "clairvoyant": {30, 0},
	})
	var out bytes.Buffer
	printChanges(&out, v, all["s"].Changes(v))
	for _, want := range []string{
		"set=s price=1 now=11.00 priced=11.00 before=12.00 change=-8.3% priced_change=-8.3% within=true\n",
		"set=s price=50 now=33.00 priced=27.00 before=30.00 change=+10.0% priced_change=-10.0% within=true\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if got := all["another"].Changes(v); got != nil {
		t.Errorf("changes of a set without previous figures: %v", got)
	}
	if _, err := readPreviousRules("s memfit 2\n"); err == nil {
		t.Error("a line without numbers was read")
	}
}

// TestThePreviousRulesCoverAllSetsOfTheEvidence, with all postures.
func TestThePreviousRulesCoverAllSetsOfTheEvidence(t *testing.T) {
	all, err := readPreviousRules(beforeText)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"bitbrains-a", "nezha-pods", "recordings", "generated-1", "generated-2"} {
		for _, policy := range []string{"memfit-frugal", "memfit", "memfit-cautious"} {
			if f := all[set][policy]; f.slack <= 0 || f.changesPerDay <= 0 {
				t.Errorf("%s, %s: %+v", set, policy, f)
			}
		}
	}
}
