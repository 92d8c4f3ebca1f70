// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/format"
)

// QueryResult is the result of sizing.disruption.rollbackQuery: without a series the workload is healthy, as in an
// alerting rule.
type QueryResult struct {
	At      time.Time // when the newest result was requested; zero: no result yet
	Series  int       // its number of series
	Problem string    // why the last query failed; empty: it succeeded
}

// resultHolds is how long a result is valid: Prometheus itself evaluates rules once a minute by default. recheckAfter
// is half of it.
const resultHolds = time.Minute

func (q *QueryResult) holds(now time.Time) bool {
	return !q.At.IsZero() && now.Sub(q.At) <= resultHolds
}

// Against returns why no limit may be lowered; empty: its result is empty, or no query is set.
func (q *QueryResult) Against(now time.Time) string {
	switch {
	case q == nil:
		return ""
	case q.holds(now) && q.Series > 0:
		return fmt.Sprintf("rollbackQuery returned %d series at %s", q.Series, format.Time(q.At))
	case q.holds(now):
		return ""
	case q.Problem != "":
		return "rollbackQuery has no answer: " + q.Problem
	}
	return "rollbackQuery has no answer yet"
}

// queryHasSeries finds a series in the result of the owner's query, requested after a limit was lowered.
func (o *observation) queryHasSeries(pod *Pod, st *Step, names []string) *symptom {
	q := o.QueryResult
	if q == nil || !q.holds(o.Now) || q.Series == 0 || !q.At.After(st.Watch.Since) {
		return nil
	}
	return &symptom{pod, st, names, fmt.Sprintf("%s, and none when the limit of pod %s was lowered", q.Against(o.Now),
		pod.Name)}
}
