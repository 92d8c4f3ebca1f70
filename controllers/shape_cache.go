// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/signals"
)

const (
	// judgedPart of what a shape rests on must be new before it is looked for again, and judgedMost is the longest it stands. Finding it
	// compares all pairs of a few hundred points and was nine tenths of a look; what two hours show, the next minute does not change.
	judgedPart = 24
	judgedMost = 5 * time.Minute
)

// shapeCache is the shape of a container's memory, and what it rests on.
type shapeCache struct {
	shape    signals.Shape
	until    time.Time // it stands so long
	limit    memory.Bytes
	kills    int
	replicas int
}

// judge finds the shape, or takes the one found before while it stands. An instance close to its limit is always looked at.
func (q *containerInput) judge() shapeCache {
	j := shapeCache{limit: q.container.current.Limit, kills: len(q.kills), replicas: len(q.replicas)}
	if b := q.before; len(q.urgent) == 0 && q.now.Before(b.until) && b.limit == j.limit && b.kills == j.kills && b.replicas == j.replicas {
		return b
	}
	j.shape = q.shape()
	if q.history != nil {
		j.until = q.now.Add(min(q.history.Span()/judgedPart, judgedMost))
	}
	return j
}

// youngest is how long the history of the container that is known least reaches back; 0: nothing is known. What is hardly known is
// looked at with every sample.
func (m *state) youngest() time.Duration {
	var span time.Duration
	for _, h := range m.containers {
		if s := h.Span(); span == 0 || s < span {
			span = s
		}
	}
	return span
}

// nearLimit: the instance uses most of its limit, and more and more of it.
func (i *instance) nearLimit() bool {
	return i != nil && i.limit > 0 && i.recent.now() >= i.limit.Percent(urgentPercent) && i.recent.rises()
}
