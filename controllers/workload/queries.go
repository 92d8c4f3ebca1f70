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
	queryEvery = 15 * time.Second // at least, between two requests of one query
	// queryTimeout bounds one request. It is below the validity of a result (internal/rollout), so that a slow one is
	// still useful.
	queryTimeout = 10 * time.Second
	// queriesAtOnce bounds concurrent requests, maxQueries the kept queries: usually one per profile.
	queriesAtOnce, maxQueries = 4, 1000
	queryKept                 = 10 * time.Minute // unused
)

// RollbackQueries sends the owners' rollback queries to Prometheus in the background; reconciles never wait for it.
// Safe for concurrent use.
type RollbackQueries struct {
	// Count returns the number of series in the result of a query.
	Count func(ctx context.Context, query string) (int, error)
	Clock clock.PassiveClock

	mu    sync.Mutex
	known map[string]*asked
	slots chan struct{}
}

type asked struct {
	result        rollout.QueryResult
	wanted, begun time.Time // of the last use, and of the last request
	running       bool
}

// Result returns the latest known result of a query. If it is older than queryEvery, the query is sent again in the
// background, independent of ctx.
func (q *RollbackQueries) Result(ctx context.Context, query string, now time.Time) rollout.QueryResult {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known == nil {
		q.known, q.slots = map[string]*asked{}, make(chan struct{}, queriesAtOnce)
	}
	a := q.known[query]
	if a == nil {
		maps.DeleteFunc(q.known, func(_ string, a *asked) bool { return now.Sub(a.wanted) > queryKept && !a.running })
		if len(q.known) >= maxQueries {
			return rollout.QueryResult{
				Problem: fmt.Sprintf("%d other queries are running already, which is the maximum", maxQueries),
			}
		}
		a = &asked{}
		q.known[query] = a
	}
	a.wanted = now
	if !a.running && now.Sub(a.begun) >= queryEvery {
		a.running, a.begun = true, now
		go q.ask(context.WithoutCancel(ctx), query, a)
	}
	return a.result
}

func (q *RollbackQueries) ask(ctx context.Context, query string, a *asked) {
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
