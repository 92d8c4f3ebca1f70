// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// Alarm is the claim of a node's agent that a container is about to reach its limit.
type Alarm struct {
	Container string
	// ID of the container's instance, without the prefix of its runtime.
	ID string
	// Sequence is higher than that of earlier alarms of the pod.
	Sequence int64
	// At is when Demand and Limit were read, by the node's clock.
	At     time.Time
	Demand memory.Bytes
	Limit  memory.Bytes
	// PerSecond is how much Demand grows.
	PerSecond memory.Bytes
	// Left is how long after At the limit is reached.
	Left time.Duration
}

// FromAPI returns an alarm of the API. Negative amounts read as 0, which [Decide] refuses.
func FromAPI(a *v1alpha1.Alarm) Alarm {
	return Alarm{
		Container: a.Container, ID: a.ContainerID, Sequence: a.Sequence, At: a.Time.Time,
		Demand: memory.FromQuantity(a.Demand), Limit: memory.FromQuantity(a.Limit),
		PerSecond: memory.FromQuantity(a.GrowthPerSecond),
		Left:      time.Duration(a.TimeToLimitMilliseconds) * time.Millisecond,
	}
}

// Near reports whether so much of a limit is needed that growth may be a danger: half of it. Fast growth below is a
// start, which usually ends there, and no alarm about it is believed.
func Near(demand, limit memory.Bytes) bool { return limit > 0 && demand >= limit/2 }

// Kill is when the limit is reached, as claimed.
func (a *Alarm) Kill() time.Time { return a.At.Add(max(a.Left, 0)) }
