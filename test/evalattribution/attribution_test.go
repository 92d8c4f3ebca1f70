// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && runtimes

package evalattribution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/memory"
)

// bounds are the largest allowed errors.
var bounds = map[Measure]float64{Regions: 0.02, Trim: 0.02, Heap: 0.03, Map: 0.02, Lever: 0.02}

// TestAttribution runs each case, and prints the largest errors.
func TestAttribution(t *testing.T) {
	work := t.TempDir()
	slices.SortStableFunc(cases, func(a, b Case) int { return cmp.Compare(a.Name, b.Name) })
	worst := map[Measure]float64{}
	ran := 0
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			compared, err := runCase(t, c, work)
			if errors.Is(err, ErrSkip) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			ran++
			for _, x := range compared {
				report(t, x)
				if x.MayDiffer == 0 {
					worst[x.Measure] = max(worst[x.Measure], x.Error())
				}
			}
		})
	}
	t.Logf("regions_error_max=%.3f%% trim_error_max=%.3f%% heap_error_max=%.3f%% map_error_max=%.3f%% "+
		"lever_error_max=%.3f%% cases=%d", 100*worst[Regions], 100*worst[Trim], 100*worst[Heap], 100*worst[Map],
		100*worst[Lever], ran)
	if ran == 0 {
		t.Error("no case ran")
	}
}

func report(t *testing.T, x Comparison) {
	t.Helper()
	t.Logf("%-8s %-34s estimate %9d KiB  truth %9d KiB  error %.3f%%",
		x.Measure, x.What, x.Estimate/memory.KiB, x.Truth/memory.KiB, 100*x.Error())
	if bound := cmp.Or(x.MayDiffer, bounds[x.Measure]); x.Error() > bound {
		t.Errorf("%s, %s: the error exceeds %.1f%%", x.Measure, x.What, 100*bound)
	}
}

// runCase runs a case: it compares the sum of the regions and the located free memory, and runs the case's check.
func runCase(t *testing.T, c Case, work string) ([]Comparison, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command, err := c.Command(work)
	if err != nil {
		return nil, err
	}
	p, err := start(command)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	result, err := p.Attribute(ctx)
	if err != nil {
		return nil, err
	}
	rss, err := p.RSS()
	if err != nil {
		return nil, err
	}
	show(t, &result)
	var sum memory.Bytes
	for _, r := range result.Regions {
		sum += r.RSS
	}
	took := result.Took.Round(time.Millisecond)
	compared := []Comparison{
		{Measure: Regions, What: fmt.Sprintf("sum of regions (%s)", took), Estimate: sum, Truth: rss},
		{Measure: Regions, What: "without what is unexplained", Estimate: sum.Minus(result.Unexplained), Truth: rss},
	}
	compared = append(compared, locatedFree(&result))
	if c.Check == nil {
		return compared, nil
	}
	more, err := c.Check(ctx, p)
	return append(compared, more...), err
}

func show(t *testing.T, l *Attribution) {
	t.Helper()
	sums := l.ByKind()
	kinds := slices.SortedFunc(maps.Keys(sums), func(a, b attribution.Kind) int { return cmp.Compare(sums[b], sums[a]) })
	for _, k := range kinds {
		t.Logf("    %-16s %8d KiB", k, sums[k]/memory.KiB)
	}
	for _, u := range l.Usages {
		t.Logf("    %s: in use %s, free resident %s, returnable %s, free partial %s, coverage %.4f, %v",
			u.Reader, u.InUse, u.FreeResident, u.Returnable, u.FreePartial, u.Coverage, u.Details)
	}
	for _, f := range l.Failed {
		t.Logf("    %s: %v", f.Reader, f.Err)
	}
}
