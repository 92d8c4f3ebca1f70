// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLookups: the context is what context.WithDeadline would be, whichever of its methods comes first.
func TestLookups(t *testing.T) {
	type key struct{}
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	defer cancel()
	far := time.Now().Add(time.Hour)

	t.Run("not over", func(t *testing.T) {
		l := &lookups{Context: parent, deadline: far}
		defer l.end()
		if at, ok := l.Deadline(); !ok || !at.Equal(far) || l.Value(key{}) != "value" {
			t.Errorf("deadline %v (%t), value %v", at, ok, l.Value(key{}))
		}
		if l.timed != nil {
			t.Error("a timer was started though nobody waits")
		}
		if err := l.Err(); err != nil {
			t.Error(err)
		}
		select {
		case <-l.Done():
			t.Error("done an hour early")
		default:
		}
	})
	t.Run("the deadline is over", func(t *testing.T) {
		l := &lookups{Context: parent, deadline: time.Now().Add(-time.Second)}
		defer l.end()
		if err := l.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v before anybody waited", err)
		}
		<-l.Done()
	})
	t.Run("somebody waits", func(t *testing.T) {
		l := &lookups{Context: parent, deadline: time.Now().Add(time.Millisecond)}
		defer l.end()
		<-l.Done()
		if err := l.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the parent is over first", func(t *testing.T) {
		soon, stop := context.WithDeadline(parent, time.Now().Add(time.Minute))
		defer stop()
		l := &lookups{Context: soon, deadline: far}
		defer l.end()
		if at, _ := l.Deadline(); !at.Before(far) {
			t.Errorf("deadline %v, want the parent's", at)
		}
		waiting := l.Done()
		stop()
		<-waiting
		if err := l.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("derived contexts", func(t *testing.T) {
		l := &lookups{Context: parent, deadline: time.Now().Add(time.Millisecond)}
		derived, stop := context.WithTimeout(l, time.Hour)
		defer stop()
		<-derived.Done()
		if err := derived.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		l.end()
	})
}
