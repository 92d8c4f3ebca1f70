// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"time"

	"github.com/memfit/memfit/internal/cgroup"
)

// Reached states whether a limit of the container or its pod was reached before a kill.
type Reached string

// The values, as the API names them.
const (
	ReachedUnknown Reached = ""
	ReachedYes     Reached = "Yes"
	ReachedNo      Reached = "No" // the node ran out of memory
)

// counter is a counter of the kernel, with the time when it last rose.
type counter struct {
	count uint64
	known bool
	rose  time.Time
}

func (c *counter) add(count uint64, at time.Time) {
	if c.known && count > c.count {
		c.rose = at
	}
	c.count, c.known = count, true
}

// reach follows the kernel's OOM counters of a container, and of its pod. The pod also counts removed containers.
type reach struct{ container, pod, podKills counter }

func (r *reach) add(container, pod cgroup.Events, at time.Time) {
	if container.Known {
		r.container.add(container.LimitFailures, at)
	}
	if pod.Known {
		r.pod.add(pod.LimitFailures, at)
		r.podKills.add(pod.Kills, at)
	}
}

// before returns whether a limit was reached in the minute before a kill at a time: the kernel first counts that a
// limit was reached, and the kill when it has found a victim. neighbor is as in [Sample].
func (r *reach) before(at time.Time, neighbor bool) Reached {
	rose := func(c counter) bool { return !c.rose.IsZero() && at.Sub(c.rose) <= history }
	switch {
	case rose(r.container):
		return ReachedYes
	case !rose(r.podKills): // not read before and after, or without its containers (memory_localevents)
		return ReachedUnknown
	case !rose(r.pod):
		return ReachedNo
	case neighbor:
		return ReachedUnknown
	}
	return ReachedYes
}
