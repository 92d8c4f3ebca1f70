// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package evalshapes

import (
	"slices"
	"strings"
	"testing"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/shape"
)

func TestScoreCountsAFalseClimbAndAWrongOutlier(t *testing.T) {
	var s score
	r := recording{name: "node-sick-1"}
	if s.add(r, label{name: "healthy"}, shape.Shape{Kind: shape.Climb}) {
		t.Error("a climb was accepted as healthy")
	}
	if s.falseClimbs != 1 {
		t.Errorf("%d false climbs, want 1", s.falseClimbs)
	}
	if s.add(
		r, label{name: "retaining", sick: "5"},
		shape.Shape{Kind: shape.StepRetention, Outliers: []string{"node-sick-1-2"}},
	) {
		t.Error("the wrong pod was accepted")
	}
	if !s.add(
		r, label{name: "retaining", sick: "5"},
		shape.Shape{Kind: shape.StepRetention, Outliers: []string{"node-sick-1-5"}},
	) {
		t.Error("the right pod was rejected")
	}
}

// TestTheClassifierSeesNoFuture: its input at half time has only the first half.
func TestTheClassifierSeesNoFuture(t *testing.T) {
	recs, err := recordings("../recordings")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(recs, func(r recording) bool { return r.name == "go-leak-1" })
	half := input(recs[i], 0.5)
	var top memory.Bytes
	for _, p := range half.Instances[0].Points {
		top = max(top, p.RSS)
		if now := recs[i].now(0.5); p.Time.After(now) {
			t.Fatalf("a point at %s, after %s", p.Time, now)
		}
	}
	if whole := input(recs[i], 1); len(whole.Instances[0].Points) < 2*len(half.Instances[0].Points)-2 ||
		top > whole.Instances[0].Points[len(whole.Instances[0].Points)-1].RSS {
		t.Error("the first half of a leak does not have half its points, or not its end")
	}
}

func TestRecordingsAreManyAndLabeled(t *testing.T) {
	recs, err := recordings("../recordings")
	if err != nil {
		t.Fatal(err)
	}
	known, err := labels("../recordings")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, r := range recs {
		count[known[r.name].name]++
		count[strings.SplitN(r.name, "-", 2)[0]]++
		if n := len(r.samples); n < 600 {
			t.Errorf("%s: %d samples are less than ten minutes", r.name, n)
		}
	}
	if len(recs) < 40 {
		t.Errorf("%d recordings, want 40 at least", len(recs))
	}
	for _, want := range []string{
		"healthy", "bursty", "retaining", "leaking", "following", "node", "jvm", "go", "python", "ruby",
	} {
		if count[want] < 5 {
			t.Errorf("%d recordings of %s, want 5 at least", count[want], want)
		}
	}
}
