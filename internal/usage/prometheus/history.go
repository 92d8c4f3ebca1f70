// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/memfit/memfit/internal/memory"
)

// Span is a period of history. Of each step the highest and the lowest figure are read. Default 5m, at least 15s.
type Span struct {
	From, To time.Time
	Step     time.Duration
}

// Prometheus allows 11,000 points per series in a query; one response is held in memory.
const (
	pointsAtOnce = 10_000
	longestChunk = 24 * time.Hour
)

// History passes the usage of a workload's pods within span to take, oldest day first and sorted by time within a day.
// Each step has two samples per container: its highest figures at the end of the step, and its lowest in the middle. So
// neither a peak nor the live set between two peaks is lost. Gaps in Prometheus are omitted. Series of several clusters
// are an error.
//
// A workload of 60 pods takes 6 queries and some 15 MB per day of history. take must not block.
func (s *Source) History(ctx context.Context, w memory.WorkloadRef, span Span, take func(memory.Sample)) error {
	step := max(cmp.Or(span.Step, 5*time.Minute), 15*time.Second)
	chunk := min(longestChunk, pointsAtOnce*step).Truncate(step)
	// Steps are aligned to multiples, so that repeated queries give equal samples, which count once.
	first, last := span.From.Truncate(step).Add(step), span.To.Truncate(step)
	of := origin{step: step, clusters: map[model.LabelName]model.LabelValue{}}
	for start := first; !start.After(last); start = start.Add(chunk) {
		end := start.Add(chunk - step)
		if end.After(last) {
			end = last
		}
		if err := s.stretch(ctx, w, v1.Range{Start: start, End: end, Step: step}, &of, take); err != nil {
			return fmt.Errorf("history of %s: %w", w, err)
		}
	}
	return nil
}

// moment is one step of one series.
type moment struct {
	identity
	at time.Time
}

// stretch passes on one chunk.
func (s *Source) stretch(
	ctx context.Context, w memory.WorkloadRef, r v1.Range, of *origin, take func(memory.Sample),
) error {
	v := workloadValues(w, r.Step)
	middle := -r.Step / 2 // time of a step's lowest figures
	at := map[moment]*reading{}
	for _, q := range []struct {
		query string
		shift time.Duration
		set   func(*reading, float64)
	}{
		{"PeakDemand", 0, (*reading).setDemand},
		{"PeakRSS", 0, (*reading).setRSS},
		{"PeakWorkingSet", 0, (*reading).setWorkingSet},
		{"LowDemand", middle, (*reading).setDemand},
		{"LowRSS", middle, (*reading).setRSS},
		{"LowWorkingSet", middle, (*reading).setWorkingSet},
	} {
		matrix, err := s.series(ctx, q.query, v, r)
		if err != nil {
			return err
		}
		if err := of.check(matrix); err != nil {
			return s.wrap(err)
		}
		note(at, matrix, q.shift, q.set)
	}
	samples := make([]memory.Sample, 0, len(at))
	for m, l := range at {
		l.measured = m.at
		samples = append(samples, l.sample(m.ContainerRef, false))
	}
	samples = slices.DeleteFunc(samples, func(s memory.Sample) bool { return s.Demand() == 0 && s.WorkingSet == 0 })
	slices.SortFunc(samples, byTime)
	for _, sample := range samples {
		take(sample)
	}
	return nil
}

func note(into map[moment]*reading, matrix model.Matrix, shift time.Duration, set func(*reading, float64)) {
	for _, series := range matrix {
		if series == nil {
			continue
		}
		id, ok := identify(series.Metric)
		if !ok {
			continue
		}
		for _, p := range series.Values {
			m := moment{id, p.Timestamp.Time().UTC().Add(shift)}
			if into[m] == nil {
				into[m] = &reading{}
			}
			set(into[m], float64(p.Value))
		}
	}
}
