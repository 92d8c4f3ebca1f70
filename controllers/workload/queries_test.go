// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestRollbackQueries: nobody waits for Prometheus, a query is asked at most every 15 s, and an answer that fails
// leaves the one before with what is wrong.
func TestRollbackQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times int
		series, problem := 2, error(nil)
		q := &RollbackQueries{Clock: clock.RealClock{}, Count: func(ctx context.Context, query string) (int, error) {
			times++
			if problem != nil {
				<-ctx.Done() // it hangs
			}
			return series, problem
		}}
		if a := q.Result(t.Context(), "up == 0", time.Now()); !a.At.IsZero() || a.Problem != "" {
			t.Errorf("known before it was asked: %+v", a)
		}
		began := time.Now()
		for range 14 {
			synctest.Wait()
			if a := q.Result(t.Context(), "up == 0", time.Now()); a.Series != 2 || !a.At.Equal(began) || times != 1 {
				t.Fatalf("%+v after %d questions", a, times)
			}
			time.Sleep(time.Second)
		}
		problem = errors.New("nothing\nlistens")
		time.Sleep(time.Second)
		q.Result(t.Context(), "up == 0", time.Now())
		time.Sleep(5 * time.Second)
		q.Result(t.Context(), "up == 0", time.Now())
		time.Sleep(queryTimeout)
		synctest.Wait()
		if a := q.Result(t.Context(), "up == 0", time.Now()); a.Series != 2 || !a.At.Equal(began) ||
			a.Problem != "nothing listens" || times != 2 {
			t.Errorf("%+v after %d questions", a, times)
		}
		time.Sleep(queryTimeout)
	})
}

// TestRollbackQueriesAreBounded: by how many are kept, and by how many are asked at once.
func TestRollbackQueriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most int
		q := &RollbackQueries{Clock: clock.RealClock{}}
		q.Count = func(context.Context, string) (int, error) {
			q.mu.Lock()
			running++
			most = max(most, running)
			q.mu.Unlock()
			time.Sleep(time.Millisecond)
			q.mu.Lock()
			running--
			q.mu.Unlock()
			return 0, nil
		}
		for i := range maxQueries {
			q.Result(t.Context(), string(rune('a'+i)), time.Now())
		}
		if a := q.Result(t.Context(), "one more", time.Now()); a.Problem == "" {
			t.Error("one more is kept")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != maxConcurrentQueries {
			t.Errorf("%d at once", most)
		}
		time.Sleep(queryKept)
		if a := q.Result(t.Context(), "one more", time.Now()); a.Problem != "" || len(q.known) != 1 {
			t.Errorf("%+v; %d are kept", a, len(q.known))
		}
		time.Sleep(time.Second)
	})
}
