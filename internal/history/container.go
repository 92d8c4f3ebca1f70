// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Container is the bounded memory of one container name of one workload, all replicas together. The zero value is empty and ready.
type Container struct {
	first, last time.Time
	samples     int64
	peak        memory.Bytes
	peakWS      memory.Bytes
}

// New is an empty history.
func New() *Container { return &Container{} }

// Point is one recent look at one instance.
type Point struct {
	// Instance numbers container instances; the same pod after a restart has another number.
	Instance int
	Time     time.Time
	// RSS is anonymous memory, or the working set when HasRSS is false for the whole history.
	RSS memory.Bytes
}

// Day is one day (UTC) of the workload.
type Day struct {
	// Start is midnight UTC.
	Start time.Time
	// Peak is the highest demand seen in any replica.
	Peak memory.Bytes
	// Trough is the lowest of the low points of that day: the live set of a garbage collected runtime.
	Trough memory.Bytes
}

// Add takes one sample, with the limit in force when it was taken (0: none or unknown). Samples may come twice or late.
func (c *Container) Add(s memory.Sample, limit memory.Bytes) {
	if c.samples == 0 || s.Time.Before(c.first) {
		c.first = s.Time
	}
	if s.Time.After(c.last) {
		c.last = s.Time
	}
	c.samples++
	c.peak = max(c.peak, s.RSS)
	c.peakWS = max(c.peakWS, s.WorkingSet)
}

// Restarted says that an instance of the container ended, for whatever reason: what follows is a new process.
func (c *Container) Restarted(ref memory.ContainerRef, at time.Time) {}

// MarshalBinary is the versioned, compact form kept in a MemoryCheckpoint; the current window is part of it.
func (c *Container) MarshalBinary() ([]byte, error) { return []byte{1}, nil }

// UnmarshalBinary restores what MarshalBinary wrote. Damaged input is an error and leaves c unchanged.
func (c *Container) UnmarshalBinary(data []byte) error { return nil }

// Recent is the last hours at the resolution the samples came in, oldest first.
func (c *Container) Recent() []Point { return nil }

// Days are up to 35 days with samples, oldest first.
func (c *Container) Days() []Day { return nil }

// Samples is the number of samples taken in so far.
func (c *Container) Samples() int64 { return c.samples }

// First is the time of the oldest sample; zero without samples.
func (c *Container) First() time.Time { return c.first }

// Last is the time of the newest sample; zero without samples.
func (c *Container) Last() time.Time { return c.last }

// Span is the time between the oldest and the newest sample.
func (c *Container) Span() time.Duration { return c.last.Sub(c.first) }

// Replicas is the number of container instances seen in the last hours.
func (c *Container) Replicas() int { return 0 }

// PeakRSS is the highest anonymous memory in the days remembered; 0 when the source never said.
func (c *Container) PeakRSS() memory.Bytes { return c.peak }

// PeakWorkingSet is the highest working set in the days remembered.
func (c *Container) PeakWorkingSet() memory.Bytes { return c.peakWS }
