// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/format"
)

// QueryResult is the result of sizing.disruption.rollbackQuery. As in an alerting rule, the workload is healthy if the
// result has no series.
type QueryResult struct {
	At      time.Time // when the newest result was requested; zero: no result yet
	Series  int       // the number of series in this result
	Problem string    // why the last query failed; empty: it succeeded
}

// resultValid is how long a result is valid: Prometheus evaluates rules once a minute by default. A decision follows
// within half of it (recheckAfter).
const resultValid = time.Minute

func (q *QueryResult) valid(now time.Time) bool {
	return !q.At.IsZero() && now.Sub(q.At) <= resultValid
}

// Against returns why no limit may be lowered; empty: the result has no series, or no query is set.
func (q *QueryResult) Against(now time.Time) string {
	switch {
	case q == nil:
		return ""
	case q.valid(now) && q.Series > 0:
		return fmt.Sprintf("rollbackQuery returned %d series at %s", q.Series, format.Time(q.At))
	case q.valid(now):
		return ""
	case q.Problem != "":
		return "rollbackQuery has no answer: " + q.Problem
	}
	return "rollbackQuery has no answer yet"
}

// queryHasSeries finds a series in a result of the owner's query that was requested after a limit was lowered.
func (o *observation) queryHasSeries(pod *Pod, st *Step, names []string) *symptom {
	q := o.QueryResult
	if q == nil || !q.valid(o.Now) || q.Series == 0 || !q.At.After(st.Watch.Since) {
		return nil
	}
	return &symptom{pod, st, names, fmt.Sprintf("%s, and none when the limit of pod %s was lowered", q.Against(o.Now),
		pod.Name)}
}
