// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/memfit/memfit/internal/usage"
)

// Name is "prometheus".
func (s *Source) Name() string { return "prometheus" }

// Read returns the last samples of the containers on node in Prometheus, with their times. No container is an error:
// every node runs some, so the labels differ, or the node is not scraped. Ended containers are included for up to five
// minutes, with their last time.
func (s *Source) Read(ctx context.Context, node usage.Node) (usage.Reading, error) {
	v, at := nodeValues(node), readings{}
	for _, q := range []struct {
		query string
		set   func(*reading, float64)
	}{
		{"RSS", (*reading).setRSS},
		{"Swap", (*reading).setSwap},
		{"Usage", (*reading).setDemand},
		{"WorkingSet", (*reading).setWorkingSet},
		{"Time", (*reading).setTime},
	} {
		vector, err := s.instant(ctx, q.query, v)
		if err != nil {
			return usage.Reading{}, err
		}
		at.add(vector, q.set)
	}
	r := usage.Reading{Source: s.Name(), Samples: at.samples()}
	if len(r.Samples) == 0 {
		return usage.Reading{}, s.wrap(fmt.Errorf("%s of node %s has no container: check that it is scraped, and the "+
			"label of its name; override the queries if that differs", rss, node.Name))
	}
	return r, nil
}

// Count returns the number of series in the result of an instant query. A scalar is an error, because it always has one
// value.
func (s *Source) Count(ctx context.Context, query string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	value, warnings, err := s.api.Query(ctx, query, time.Time{}, v1.WithTimeout(s.timeout))
	if err != nil {
		return 0, s.explain("rollbackQuery", query, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return 0, s.wrap(fmt.Errorf("%s gives a %s; write an expression like that of an alerting rule, which returns "+
			"nothing while the workload is healthy", usage.FirstLine(query), value.Type()))
	}
	if partial := warned(warnings); len(partial) > 0 && len(vector) == 0 {
		return 0, s.wrap(errors.Join(partial...)) // missing stores may have the series
	}
	return len(vector), nil
}

// instant queries current values.
func (s *Source) instant(ctx context.Context, name string, v values) (model.Vector, error) {
	query, err := fill(s.queries[name], v)
	if err != nil {
		return nil, s.wrap(err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	value, _, err := s.api.Query(ctx, query, time.Time{}, v1.WithTimeout(s.timeout))
	if err != nil {
		return nil, s.explain(name, query, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, s.wrap(fmt.Errorf("the query %s returns no vector: %s", name, usage.FirstLine(query)))
	}
	return vector, nil
}

// series queries values over time.
func (s *Source) series(ctx context.Context, name string, v values, r v1.Range) (model.Matrix, error) {
	query, err := fill(s.queries[name], v)
	if err != nil {
		return nil, s.wrap(err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	value, _, err := s.api.QueryRange(ctx, query, r, v1.WithTimeout(s.timeout))
	if err != nil {
		return nil, s.explain(name, query, err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, s.wrap(fmt.Errorf("the query %s returns no series: %s", name, usage.FirstLine(query)))
	}
	return matrix, nil
}

// warned keeps warnings about missing data, as of Thanos about stores that do not respond.
func warned(warnings v1.Warnings) []error {
	var partial []error
	for _, w := range warnings {
		if !strings.HasPrefix(w, "PromQL info") {
			partial = append(partial, errors.New("prometheus returned a partial result: "+usage.FirstLine(w)))
		}
	}
	return partial
}
