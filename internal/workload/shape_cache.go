// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/shape"
)

const (
	// shapePart of what a shape rests on must be new before it is looked for again, and shapeMost is how long it is valid
	// at most. Finding it compares all pairs of a few hundred points and was nine tenths of a step; what two hours show,
	// the next minute does not change.
	shapePart = 24
	shapeMost = 5 * period.Minute
)

// shapeCache is the shape of a container's memory, and what it rests on.
type shapeCache struct {
	shape    shape.Shape
	until    time.Time // until then it is valid
	limit    memory.Bytes
	kills    int
	replicas int
}

// youngest is how long the history of the least known container reaches back; 0: nothing is known. What is hardly
// known is examined with every sample.
func (st *State) youngest() time.Duration {
	var span time.Duration
	for name := range st.containers {
		if s := st.newest(name).history.Span(); span == 0 || s < span {
			span = s
		}
	}
	return span
}
