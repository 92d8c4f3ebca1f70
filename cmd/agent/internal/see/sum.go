// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/scan"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/glibc"
	"github.com/memfit/memfit/internal/levers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/pagemap"
	"github.com/memfit/memfit/internal/quote"
)

// sum adds up the processes of one container, of which the largest is added first. Shared pages count for each process.
type sum struct {
	inspection       scan.Inspection
	processes        int
	missed           int          // processes that could not be read
	missing          memory.Bytes // their resident memory
	rss, unexplained memory.Bytes
	byKind           map[attribution.Kind]*partSum
	coverage         float64                    // the lowest of all readers; 0 if a reader could not interpret its heap
	exe              string                     // of the first process
	collectAt        memory.Bytes               // of the first process; 0: unknown
	runtime          *v1alpha1.InspectedRuntime // of the first process; nil: unreadable, or its files do not show it
	levers           []levers.Process
	programs         []string // of levers
	pages            []pagemap.Region
}

func newSum(inspection scan.Inspection) *sum {
	return &sum{inspection: inspection, byKind: map[attribution.Kind]*partSum{}, coverage: 1}
}

func (s *sum) add(r *attribution.Result, of *attribution.Snapshot) {
	s.processes++
	s.rss, s.unexplained = s.rss.Plus(r.RSS), s.unexplained.Plus(r.Unexplained)
	for kind, resident := range r.ByKind() {
		if kind != attribution.Other {
			s.part(kind).add(resident, 0)
		}
	}
	unread := false
	for _, f := range r.Failed {
		if !errors.Is(f.Err, glibc.ErrNone) { // a program that never calls malloc has no arena
			s.coverage, unread = 0, true
		}
	}
	for i := range r.Usages {
		u := &r.Usages[i]
		s.coverage = min(s.coverage, u.Coverage)
		if kind, ok := whereFree(r, u.Reader); ok {
			s.part(kind).add(0, u.FreeResident)
		}
	}
	s.levers = append(s.levers, levers.Process{RSS: r.RSS, Usages: r.Usages, Unread: unread, Env: of.Env})
	s.programs = append(s.programs, of.Process.Exe)
}

// unread adds a process that could not be read.
func (s *sum) unread(resident memory.Bytes) {
	s.processes++
	s.missed++
	s.missing = s.missing.Plus(resident)
	s.rss, s.unexplained = s.rss.Plus(resident), s.unexplained.Plus(resident)
	s.levers, s.programs = append(s.levers, levers.Process{RSS: resident, Unread: true}), append(s.programs, "")
}

// why returns which processes could not be read, and the first error; empty: all were read.
func (s *sum) why(failed error) string {
	var out []string
	if s.missed > 0 {
		out = append(out, fmt.Sprintf("%d of %d processes, with %s resident, could not be read: %v", s.missed, s.processes,
			s.missing, failed))
	}
	if s.inspection.More {
		out = append(out, fmt.Sprintf("it has more processes or cgroups than the %d that are listed", s.processes))
	}
	return strings.Join(out, "; ")
}

// explained returns the share of resident memory that is in a part. A heap without a reader, such as .NET's, is not.
func (s *sum) explained() float64 {
	if s.inspection.More {
		return 0
	}
	if s.rss == 0 {
		return 1
	}
	return float64(s.rss.Minus(s.unexplained)) / float64(s.rss)
}

const (
	maxParts   = 24 // as in the API
	maxSavings = 8
	maxSummary = 512
)

func (s *sum) parts(now time.Time) *v1alpha1.MemoryParts {
	out := &v1alpha1.MemoryParts{
		Time: metav1.NewTime(now.Truncate(time.Second)), Resident: s.rss.Quantity(), Unexplained: s.unexplained.Quantity(),
		Processes:       int32(min(s.processes, 1<<30)), //nolint:gosec // bounded
		CoveragePercent: int32(100 * min(s.coverage, s.explained())),
	}
	for kind, part := range s.byKind {
		if part.resident > 0 {
			out.Parts = append(out.Parts, part.api(kind))
		}
	}
	slices.SortFunc(out.Parts, func(a, b v1alpha1.MemoryPart) int {
		return cmp.Or(b.Resident.Cmp(a.Resident), cmp.Compare(a.Name, b.Name))
	})
	out.Parts = folded(out.Parts)
	s.predict(out)
	return out
}

// predict adds the predicted savings. Processes with the largest process's program are assumed to have its runtime.
func (s *sum) predict(out *v1alpha1.MemoryParts) {
	for i := range s.levers {
		if s.runtime != nil && s.programs[i] == s.exe {
			s.levers[i].Runtime, s.levers[i].Version = s.runtime.Type, s.runtime.Version
		}
	}
	outcome := levers.Predict(s.levers, s.inspection.Limit)
	out.Summary = quote.Cut(outcome.Summary, maxSummary)
	for i := range outcome.Predictions[:min(len(outcome.Predictions), maxSavings)] {
		p := &outcome.Predictions[i]
		gain := v1alpha1.PredictedSaving{
			Action: quote.Cut(p.Action, maxWord), Amount: p.Least.FloorTo(memory.KiB).Quantity(),
			Method: quote.Cut(p.Why, maxSentence), How: quote.Cut(p.How, maxSentence), Setting: quote.Cut(p.Knob, maxWord),
		}
		if !p.Exact() {
			gain.AtMost = new(p.Most.CeilTo(memory.KiB).Quantity())
		}
		if p.Limit > 0 {
			gain.Limit = new(p.Limit.Quantity())
		}
		out.Savings = append(out.Savings, gain)
	}
}

// folded merges the smallest parts beyond maxParts into one, so that the sum remains complete.
func folded(parts []v1alpha1.MemoryPart) []v1alpha1.MemoryPart {
	if len(parts) <= maxParts {
		return parts
	}
	rest := resource.Quantity{Format: resource.BinarySI}
	for i := maxParts - 1; i < len(parts); i++ {
		rest.Add(parts[i].Resident)
	}
	return append(parts[:maxParts-1:maxParts-1], v1alpha1.MemoryPart{Name: "smaller parts", Resident: rest})
}
