// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/rollout"
)

const (
	// queryEvery is the least time between two times that one query is asked.
	queryEvery = 15 * time.Second
	// queryTimeout bounds one answer. It is below what an answer holds (internal/rollout), so that a slow one is of use.
	queryTimeout = 10 * time.Second
	// queriesAtOnce and queriesMost bound what is asked of Prometheus, and what is kept: one query a profile is usual.
	queriesAtOnce, queriesMost = 4, 1000
	// queryKept is how long a query that nobody asks for any more is kept.
	queryKept = 10 * time.Minute
)

// RollbackQueries asks Prometheus the owners' rollback queries beside the reconciliations, which never wait for it.
// Safe for concurrent use.
type RollbackQueries struct {
	// Count is how many series the answer to a query has.
	Count func(ctx context.Context, query string) (int, error)
	// Clock tells the time.
	Clock clock.PassiveClock

	mu    sync.Mutex
	known map[string]*asked
	slots chan struct{}
}

type asked struct {
	result  rollout.QueryResult
	wanted  time.Time // when somebody wanted to know it last
	begun   time.Time // when it was asked last
	running bool
}

// Result is the latest known result of a query. Where it is older than queryEvery, the query is sent again in the
// background, and goes on when ctx ends.
func (q *RollbackQueries) Result(ctx context.Context, query string, now time.Time) rollout.QueryResult {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known == nil {
		q.known, q.slots = map[string]*asked{}, make(chan struct{}, queriesAtOnce)
	}
	a := q.known[query]
	if a == nil {
		if q.forget(now); len(q.known) >= queriesMost {
			return rollout.QueryResult{
				Problem: fmt.Sprintf("%d other queries are asked already, the most there may be", queriesMost),
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

// forget drops queries that nobody has asked for within queryKept.
func (q *RollbackQueries) forget(now time.Time) {
	for query, a := range q.known {
		if now.Sub(a.wanted) > queryKept && !a.running {
			delete(q.known, query)
		}
	}
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
