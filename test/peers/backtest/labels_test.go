// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// TestLabelsDoNotOverlap: eight policies, some with the same result, in a picture of 14 by 9 cm.
func TestLabelsDoNotOverlap(t *testing.T) {
	area := vg.Rectangle{Max: vg.Point{X: 400, Y: 220}}
	points := []vg.Point{
		{X: 250, Y: 20}, {X: 258, Y: 20}, {X: 250, Y: 20}, {X: 230, Y: 70}, {X: 255, Y: 66}, {X: 398, Y: 24},
		{X: 200, Y: 219}, {X: 1, Y: 1},
	}
	sizes := make([]vg.Point, len(points))
	for i := range sizes {
		sizes[i] = vg.Point{X: 80, Y: 12}
	}
	boxes := placed(points, sizes, area)
	for i, box := range boxes {
		if !inside(box, area) {
			t.Errorf("label %d is at %v, outside of the picture", i, box)
		}
		for j, other := range boxes[:i] {
			if overlap(box, other) {
				t.Errorf("labels %d and %d overlap: %v, %v", j, i, other, box)
			}
		}
		for j, at := range points {
			if overlap(box, around(at, 3, 3)) {
				t.Errorf("label %d overlaps point %d", i, j)
			}
		}
	}
}

func TestNoLabelIsOutsideItsPicture(t *testing.T) {
	all := labels{at: plotter.XYs{{X: 1, Y: 1}, {X: 3, Y: 1}, {X: 1, Y: 3}}, names: []string{"in", "right", "above"}}
	if kept := all.within(2, 2); len(kept.at) != 1 || !slices.Equal(kept.names, []string{"in"}) {
		t.Errorf("kept %v", kept)
	}
}

// TestEveryQuestionHasAPicture, with the figures of nezha-pods, of which three were unreadable.
func TestEveryQuestionHasAPicture(t *testing.T) {
	dir := t.TempDir()
	if to := os.Getenv("KEEP_PICTURES"); to != "" {
		dir = to
	}
	v := verdict("nezha-pods", map[string]trade{
		"memfit": {3.9, 6}, "memfit-frugal": {3.5, 8}, "memfit-cautious": {4.9, 3}, "vpa": {5.3, 4},
		"vpa-p90-m40-f250": {7.9, 1},
		"naive20":          {3.3, 17}, "clairvoyant": {1.7, 0},
	})
	a := answer{
		verdict: v, paired: []Paired{{Price: 1, Difference: -1, Against: 4}, {Price: 50, Difference: 2, Against: 4}},
		changes: []Change{{1, 8, 8, 9}, {50, 100, 100, 90}},
		metrics: map[string]Metrics{
			"memfit-frugal": {0.34, 0.88, 1.18, 1}, "memfit": {0.36, 0.91, 1.19, 1}, "memfit-cautious": {0.37, 0.95, 1.19, 1},
			"vpa": {0.38, 0.95, 1.38, 1}, "krr": {0.34, 0.88, 1.24, 1}, "attune": {0.35, 0.91, 1.28, 1},
			"cruisekube": {0.57, 0.94, 0.97, 1},
		},
	}
	if err := drawQuestions(dir, []answer{a, a, a}); err != nil {
		t.Fatal(err)
	}
	for _, question := range []string{"kills", "words", "cost", "before"} {
		if info, err := os.Stat(filepath.Join(dir, question+".png")); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v, %v", question, info, err)
		}
	}
}
