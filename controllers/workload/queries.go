// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/rollout"
)

const (
	queryEvery = 15 * time.Second // minimum time between two requests of one query
	// queryTimeout limits one request. It is below the validity of a result (internal/rollout), so that a result is still
	// valid when it arrives.
	queryTimeout         = 10 * time.Second
	maxConcurrentQueries = 4
	maxQueries           = 1000             // usually there is one query per profile
	queryKept            = 10 * time.Minute // after its last use
)

// RollbackQueries sends the rollback queries of profiles to Prometheus in the background; reconciles do not wait for
// it. Safe for concurrent use.
type RollbackQueries struct {
	// Count returns the number of series in the result of a query.
	Count func(ctx context.Context, query string) (int, error)
	Clock clock.PassiveClock

	mu    sync.Mutex
	known map[string]*trackedQuery
	slots chan struct{}
}

type trackedQuery struct {
	result  rollout.QueryResult
	usedAt  time.Time // last call of Result
	sentAt  time.Time // last request
	running bool
}

// Result returns the latest known result of a query. If it is older than queryEvery, the query is sent again in the
// background, independent of ctx.
func (q *RollbackQueries) Result(ctx context.Context, query string, now time.Time) rollout.QueryResult {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known == nil {
		q.known, q.slots = map[string]*trackedQuery{}, make(chan struct{}, maxConcurrentQueries)
	}
	a := q.known[query]
	if a == nil {
		maps.DeleteFunc(q.known, func(_ string, a *trackedQuery) bool { return now.Sub(a.usedAt) > queryKept && !a.running })
		if len(q.known) >= maxQueries {
			return rollout.QueryResult{
				Problem: fmt.Sprintf("memfit already runs %d other queries, the maximum", maxQueries),
			}
		}
		a = &trackedQuery{}
		q.known[query] = a
	}
	a.usedAt = now
	if !a.running && now.Sub(a.sentAt) >= queryEvery {
		a.running, a.sentAt = true, now
		go q.send(context.WithoutCancel(ctx), query, a)
	}
	return a.result
}

func (q *RollbackQueries) send(ctx context.Context, query string, a *trackedQuery) {
	q.slots <- struct{}{}
	defer func() { <-q.slots }()
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	at := q.Clock.Now()
	n, err := q.Count(ctx, query)
	q.mu.Lock()
	defer q.mu.Unlock()
	a.running = false
	if err != nil {
		a.result.Problem = quote.Line(err.Error())
		return
	}
	a.result = rollout.QueryResult{At: at, Series: n}
}
