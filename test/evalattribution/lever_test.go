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

// predicted returns the predicted release by a lever.
func predicted(result *Attribution, action string) (levers.Prediction, error) {
	all := levers.Predict([]levers.Process{{
		RSS: result.RSS, Usages: result.Usages, Env: result.Snapshot.Env, Unread: len(result.Failed) > 0,
	}}, 0).Predictions
	i := slices.IndexFunc(all, func(p levers.Prediction) bool { return p.Action == action })
	if i < 0 {
		return levers.Prediction{}, fmt.Errorf("no prediction for %s", action)
	}
	return all[i], nil
}

// bounded compares the release by a lever with the predicted bounds; a release within them has no error.
func bounded(p levers.Prediction, released, of memory.Bytes) Comparison {
	return Comparison{
		Measure: Lever, What: fmt.Sprintf("%s: %s to %s", p.Action, p.Least, p.Most), Truth: released,
		Estimate: min(max(released, p.Least), p.Most), Of: of,
	}
}

// applyLever compares the prediction of a lever with the decrease of the RSS.
func (p *Process) applyLever(ctx context.Context, action string, lever func() error) (Comparison, error) {
	result, err := p.Attribute(ctx)
	if err != nil {
		return Comparison{}, err
	}
	prediction, err := predicted(&result, action)
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

// checkArenas starts the same program with two arenas, and compares the difference of the RSS with the prediction.
func checkArenas(ctx context.Context, p *Process) ([]Comparison, error) {
	result, err := p.Attribute(ctx)
	if err != nil {
		return nil, err
	}
	prediction, err := predicted(&result, "MALLOC_ARENA_MAX=2")
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
	return []Comparison{bounded(prediction, result.RSS.Minus(rss), result.RSS)}, err
}

// located returns the resident size of ranges.
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

// locatedFree compares the size of the free ranges that readers locate with the free memory that they count. The error
// is relative to the RSS: a single new page is a large part of little free memory.
func locatedFree(result *Attribution) Comparison {
	c := Comparison{Measure: Map, What: "where free pages lie", Estimate: result.Located, Of: result.RSS}
	for i := range result.Usages {
		if u := &result.Usages[i]; u.Coverage >= amounts.MinCoverage && u.Reader != counts {
			c.Truth += u.FreeResident
		}
	}
	return c
}

// counts is the reader that counts free memory without locating it.
const counts = "go"
