// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// epoch is the start of the measurement; history is before it.
var epoch = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// demand returns the use of a container in multiples of its base size. day is the days since the epoch, age since its
// start.
type demand func(day, age float64) float64

// patterns are the patterns of use, each as common as its number of entries. Each draws its parameters from r once.
var patterns = []func(r *rand.Rand) demand{
	flat, flat, flat,
	diurnal, diurnal, diurnal,
	sawtooth, sawtooth,
	ramp,
	leak,
}

func flat(*rand.Rand) demand { return func(_, _ float64) float64 { return 1 } }

func diurnal(r *rand.Rand) demand {
	swing, top := between(r, 0.1, 1), r.Float64()
	return func(day, _ float64) float64 { return 1 + swing*(1+math.Cos(2*math.Pi*(day-top)))/2 }
}

// sawtooth is the use of a garbage-collected heap.
func sawtooth(r *rand.Rand) demand {
	height, period := between(r, 0.2, 0.8), between(r, 5, 120)/1440
	return func(day, _ float64) float64 { return 1 + height*(day/period-math.Floor(day/period)) }
}

// ramp is the slow growth of a service's data.
func ramp(r *rand.Rand) demand {
	perDay := between(r, 0.002, 0.02)
	return func(day, _ float64) float64 { return 1 + max(0, perDay*(day+30)) }
}

// leak grows until the kernel kills it, after 7 hours to 3 days.
func leak(r *rand.Rand) demand {
	life := between(r, 0.3, 3)
	return func(_, age float64) float64 { return 0.4 + 0.6*age/life }
}

func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// container is the synthetic container of one workload.
type container struct {
	base   float64 // bytes
	noise  float64
	demand demand
	r      *rand.Rand
	drift  float64
	// limit exceeds all demand, except for a leak.
	limit   memory.Bytes
	started time.Time
}

// newContainer draws container number i. Equal numbers give equal containers.
func newContainer(i int) *container {
	r := rand.New(rand.NewPCG(2026, uint64(i)))
	kind := i % len(patterns)
	c := &container{
		base: 24 * math.Pow(4096./24, r.Float64()) * float64(memory.MiB), noise: between(r, 0.005, 0.03),
		demand: patterns[kind](r), r: r,
		started: epoch.Add(-lookBack),
	}
	c.limit = memory.Bytes(c.base * 2.5).CeilTo(memory.MiB)
	if leaks := kind == len(patterns)-1; leaks {
		c.limit = memory.Bytes(c.base).CeilTo(memory.MiB)
	}
	return c
}

// use returns the RSS of one replica: the demand, with noise that is correlated over some readings. At its limit the
// container is killed and starts over.
func (c *container) use(at time.Time) (rss memory.Bytes, killed bool) {
	c.drift = 0.85*c.drift + 0.53*c.r.NormFloat64()
	rss = memory.Bytes(c.base * c.demand(days(at.Sub(epoch)), days(at.Sub(c.started))) * (1 + c.noise*c.drift))
	if rss >= c.limit {
		c.started = at
		return c.limit, true
	}
	return rss, false
}

func days(d time.Duration) float64 { return d.Hours() / 24 }

func name(i int) string { return fmt.Sprintf("web-%06d", i) }
