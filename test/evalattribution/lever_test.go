// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && runtimes

package evalattribution

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/levers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// predicted is what a lever is said to give back.
func predicted(look *Look, action string) (levers.Prediction, error) {
	all := levers.Predict([]levers.Process{{
		RSS: look.RSS, Usages: look.Usages, Env: look.Snapshot.Env, Unread: len(look.Failed) > 0,
	}}, 0).Predictions
	i := slices.IndexFunc(all, func(p levers.Prediction) bool { return p.Action == action })
	if i < 0 {
		return levers.Prediction{}, fmt.Errorf("nothing is predicted of %s", action)
	}
	return all[i], nil
}

// bounded compares what a lever gave back with its bounds; an estimate within them has no error.
func bounded(p levers.Prediction, gave, of memory.Bytes) Comparison {
	return Comparison{
		Measure: Lever, What: fmt.Sprintf("%s: %s to %s", p.Action, p.Least, p.Most), Truth: gave,
		Estimate: min(max(gave, p.Least), p.Most), Of: of,
	}
}

// pull compares the prediction of a lever with what it gives back of the RSS.
func (p *Process) pull(ctx context.Context, action string, lever func() error) (Comparison, error) {
	look, err := p.Look(ctx)
	if err != nil {
		return Comparison{}, err
	}
	prediction, err := predicted(&look, action)
	if err != nil {
		return Comparison{}, err
	}
	before, err := p.RSS()
	if err != nil {
		return Comparison{}, err
	}
	if err := lever(); err != nil {
		return Comparison{}, err
	}
	after, err := p.RSS()
	return bounded(prediction, before.Minus(after), before), err
}

// checkArenas starts the same program a second time, with two arenas, and compares how much less of it is resident.
func checkArenas(ctx context.Context, p *Process) ([]Comparison, error) {
	look, err := p.Look(ctx)
	if err != nil {
		return nil, err
	}
	prediction, err := predicted(&look, "MALLOC_ARENA_MAX=2")
	if err != nil {
		return nil, err
	}
	command := exec.Command(p.command.Path, p.command.Args[1:]...)
	command.Env = append(os.Environ(), "MALLOC_ARENA_MAX=2")
	second, err := start(command)
	if err != nil {
		return nil, err
	}
	defer second.stop()
	rss, err := second.RSS()
	return []Comparison{bounded(prediction, look.RSS.Minus(rss), look.RSS)}, err
}

// located is how much is resident of ranges.
func located(s *attribution.Snapshot, free []procmem.Run) (sum memory.Bytes, err error) {
	for _, r := range free {
		runs, err := s.Memory.Resident(r.Start, r.End())
		if err != nil {
			return sum, err
		}
		sum += memory.FromUint64(procmem.ResidentBytes(runs, r.Start, r.End()))
	}
	return sum, nil
}

// locatedFree compares where readers say that free memory lies with how much of it they count. It is relative to the
// RSS: of little that is free, a page that came meanwhile is much.
func locatedFree(look *Look) Comparison {
	c := Comparison{Measure: Map, What: "where free pages lie", Estimate: look.Located, Of: look.RSS}
	for i := range look.Usages {
		if u := &look.Usages[i]; u.Coverage >= amounts.MinCoverage && u.Reader != counts {
			c.Truth += u.FreeResident
		}
	}
	return c
}

// counts is the reader that counts free memory and does not locate it.
const counts = "go"
