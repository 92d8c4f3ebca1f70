// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command evalattribution starts real processes, lets internal/attribution say where their memory is, asks the
// processes themselves, and prints how far apart the two are: `make eval-attribution`. It exits 1 where an error is
// larger than docs/design/attribution.md says. It must be root, or run with the capabilities of the agent.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/memory"
)

// bounds are the largest errors that are allowed.
var bounds = map[Measure]float64{Regions: 0.02, Trim: 0.02, Heap: 0.03, Map: 0.02, Lever: 0.02}

func main() {
	run := flag.String("run", ".", "run only cases whose name matches this")
	verbose := flag.Bool("v", false, "print the regions of each process")
	flag.Parse()
	pattern, err := regexp.Compile(*run)
	if err == nil {
		err = evaluate(context.Background(), pattern, *verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "evalattribution:", err)
		os.Exit(1)
	}
}

func evaluate(ctx context.Context, pattern *regexp.Regexp, verbose bool) error {
	work, err := os.MkdirTemp("", "evalattribution-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	slices.SortStableFunc(cases, func(a, b Case) int { return cmp.Compare(a.Name, b.Name) })
	worst := map[Measure]float64{}
	ran, skipped, failed := 0, 0, 0
	for _, c := range cases {
		if !pattern.MatchString(c.Name) {
			continue
		}
		compared, err := one(ctx, c, work, verbose)
		if errors.Is(err, ErrSkip) {
			fmt.Printf("%-28s %v\n", c.Name, err)
			skipped++
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		ran++
		for _, x := range compared {
			if !report(c.Name, x) {
				failed++
			}
			if x.MayDiffer == 0 {
				worst[x.Measure] = max(worst[x.Measure], x.Error())
			}
		}
	}
	fmt.Printf("regions_error_max=%.3f%% trim_error_max=%.3f%% heap_error_max=%.3f%% map_error_max=%.3f%% "+
		"lever_error_max=%.3f%% cases=%d not_checked=%d\n",
		100*worst[Regions], 100*worst[Trim], 100*worst[Heap], 100*worst[Map], 100*worst[Lever], ran, skipped)
	if failed > 0 {
		return fmt.Errorf("%d comparisons are beyond their bounds", failed)
	}
	if ran == 0 {
		return errors.New("no case ran")
	}
	return nil
}

func report(name string, x Comparison) bool {
	bound := cmp.Or(x.MayDiffer, bounds[x.Measure])
	verdict := ""
	if x.Error() > bound {
		verdict = fmt.Sprintf("  BEYOND %.1f%%", 100*bound)
	}
	fmt.Printf("%-28s %-8s %-34s estimate %9d KiB  truth %9d KiB  error %.3f%%%s\n",
		name, x.Measure, x.What, x.Estimate/memory.KiB, x.Truth/memory.KiB, 100*x.Error(), verdict)
	return verdict == ""
}

// one runs a case: the sum of the regions is compared in each, everything else by its own check.
func one(ctx context.Context, c Case, work string, verbose bool) ([]Comparison, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
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
	look, err := p.Look(ctx)
	if err != nil {
		return nil, err
	}
	rss, err := p.RSS()
	if err != nil {
		return nil, err
	}
	if verbose {
		show(look)
	}
	var sum memory.Bytes
	for _, r := range look.Regions {
		sum += r.RSS
	}
	took := look.Took.Round(time.Millisecond)
	compared := []Comparison{
		{Measure: Regions, What: fmt.Sprintf("sum of regions (%s)", took), Estimate: sum, Truth: rss},
		{Measure: Regions, What: "without what is unexplained", Estimate: sum.Minus(look.Unexplained), Truth: rss},
	}
	compared = append(compared, locatedFree(&look))
	if c.Check == nil {
		return compared, nil
	}
	more, err := c.Check(ctx, p)
	return append(compared, more...), err
}

func show(l Look) {
	sums := l.ByKind()
	kinds := slices.SortedFunc(maps.Keys(sums), func(a, b attribution.Kind) int { return cmp.Compare(sums[b], sums[a]) })
	for _, k := range kinds {
		fmt.Printf("    %-16s %8d KiB\n", k, sums[k]/memory.KiB)
	}
	for _, u := range l.Usages {
		fmt.Printf("    %s: in use %s, free resident %s, returnable %s, free partial %s, coverage %.4f, %v %v\n",
			u.Reader, u.InUse, u.FreeResident, u.Returnable, u.FreePartial, u.Coverage, u.Details, u.Notes)
	}
	for _, f := range l.Failed {
		fmt.Printf("    %s: %v\n", f.Reader, f.Err)
	}
}
