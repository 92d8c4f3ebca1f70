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

// Span is a period of history. The highest and the lowest values of each Step are read.
type Span struct {
	From, To time.Time
	Step     time.Duration // 0: 5m; at least 15s
}

// A query covers at most maxPoints steps, because Prometheus allows 11,000, and at most longestChunk, because its
// response is held in memory.
const (
	maxPoints    = 10_000
	longestChunk = 24 * time.Hour
)

// History passes the usage of a workload's pods within span to take, in chunks of at most a day, oldest first, each
// sorted by time. take must not block. Each step has two samples per container: one with the highest values at the end
// of the step, and one with the lowest in the middle, so that neither a peak nor the live set between two peaks is
// lost. Steps without data have no samples. Series of several clusters are an error ([ErrOtherCluster]).
//
// A workload of 60 pods takes 6 queries and some 15 MB per day of history.
func (s *Source) History(ctx context.Context, w memory.WorkloadRef, span Span, take func(memory.Sample)) error {
	step := max(cmp.Or(span.Step, 5*time.Minute), 15*time.Second)
	chunk := min(longestChunk, maxPoints*step).Truncate(step)
	// Times are multiples of step, so that repeated queries return equal samples, which internal/history counts once.
	first, last := span.From.Truncate(step).Add(step), span.To.Truncate(step)
	from := origin{step: step, clusters: map[model.LabelName]model.LabelValue{}}
	for start := first; !start.After(last); start = start.Add(chunk) {
		end := start.Add(chunk - step)
		if end.After(last) {
			end = last
		}
		if err := s.readChunk(ctx, w, v1.Range{Start: start, End: end, Step: step}, &from, take); err != nil {
			return fmt.Errorf("history of %s: %w", w, err)
		}
	}
	return nil
}

// moment identifies one sample of one container instance.
type moment struct {
	identity
	at time.Time
}

// readChunk passes the samples of one chunk to take, sorted by time. from has the clusters of the chunks so far.
func (s *Source) readChunk(
	ctx context.Context, w memory.WorkloadRef, r v1.Range, from *origin, take func(memory.Sample),
) error {
	v := workloadValues(w, r.Step)
	middle := -r.Step / 2 // from the end of a step; for its lowest values
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
		if err := from.check(matrix); err != nil {
			return s.wrap(err)
		}
		store(at, matrix, q.shift, q.set)
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

// store sets the values of a query, with times moved by shift.
func store(into map[moment]*reading, matrix model.Matrix, shift time.Duration, set func(*reading, float64)) {
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
