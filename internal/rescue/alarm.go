// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// Alarm is an agent's claim that a container is about to reach its limit.
type Alarm struct {
	Container string
	ID        string    // the container ID without the prefix of the container runtime
	Sequence  int64     // higher than in the pod's earlier alarms
	At        time.Time // when Demand and Limit were read, on the node's clock
	Demand    memory.Bytes
	Limit     memory.Bytes
	PerSecond memory.Bytes  // the growth of Demand
	Left      time.Duration // from At until the limit is reached
}

// FromAPI converts an alarm of the API. Negative amounts become 0, which [Decide] refuses.
func FromAPI(a *v1alpha1.Alarm) Alarm {
	return Alarm{
		Container: a.Container, ID: a.ContainerID, Sequence: a.Sequence, At: a.Time.Time,
		Demand: memory.FromQuantity(a.Demand), Limit: memory.FromQuantity(a.Limit),
		PerSecond: memory.FromQuantity(a.GrowthPerSecond),
		Left:      time.Duration(a.TimeToLimitMilliseconds) * time.Millisecond,
	}
}

// Near reports whether demand is at least half of the limit. Alarms below are refused: fast growth there is usually a
// start.
func Near(demand, limit memory.Bytes) bool { return limit > 0 && demand >= limit/2 }

// Kill returns when the limit will be reached, according to the alarm.
func (a *Alarm) Kill() time.Time { return a.At.Add(max(a.Left, 0)) }
