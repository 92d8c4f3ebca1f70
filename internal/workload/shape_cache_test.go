// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/shape"
)

// TestJudge: a shape stands while little of what it rests on is new, and no longer than the limit and the kills it was
// found with.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	h := history.New()
	for at := now.Add(-2 * time.Hour); at.Before(now); at = at.Add(time.Minute) {
		h.Add(
			memory.Sample{
				Container: memory.ContainerRef{Pod: "web", Container: "app"}, Time: at, RSS: 100 * memory.MiB,
				HasRSS: true, Exact: true,
			},
			256*memory.MiB,
		)
	}
	before := shapeCache{
		shape: shape.Shape{Kind: shape.Burst}, until: now.Add(time.Minute), limit: 256 * memory.MiB, kills: 1,
	}
	ask := func(edit func(*containerInput)) shapeCache {
		q := containerInput{
			Input: recommend.Input{History: h, Kills: make([]memory.OOMKill, 1), Now: now},
			plan:  inject.Plan{}.Container("app"), cached: before,
		}
		q.container.current.Limit = 256 * memory.MiB
		edit(&q)
		return q.findShape()
	}
	for name, tc := range map[string]struct {
		edit   func(*containerInput)
		stands bool
	}{
		"nothing is new":      {edit: func(*containerInput) {}, stands: true},
		"its time is over":    {edit: func(q *containerInput) { q.Now = now.Add(time.Minute) }},
		"another limit":       {edit: func(q *containerInput) { q.container.current.Limit = 512 * memory.MiB }},
		"a kill":              {edit: func(q *containerInput) { q.Kills = make([]memory.OOMKill, 2) }},
		"a replica":           {edit: func(q *containerInput) { q.replicas = make([]shape.Replica, 1) }},
		"close to the limit":  {edit: func(q *containerInput) { q.urgent = make([]shape.Instance, 1) }},
		"never looked before": {edit: func(q *containerInput) { q.cached = shapeCache{} }},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(tc.edit)
			if stands := got.shape.Kind == shape.Burst; stands != tc.stands {
				t.Errorf("the shape is %s, found again: %t", got.shape.Kind, !stands)
			}
		})
	}
	if got, want := ask(
		func(q *containerInput) { q.cached = shapeCache{} },
	).until, now.Add(119*time.Minute/24); !got.Equal(want) {
		t.Errorf("found after two hours, it stands until %s, want %s", got, want)
	}
}
