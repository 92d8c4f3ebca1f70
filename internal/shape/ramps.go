// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/stats"
)

// A leak that kills within minutes is too fast for [Classify], which needs two hours of samples. But its kills form a
// ramp: at four times the limit, an instance lives four times as long. A one-time need, at a start or in a burst, kills
// at about the same age at any limit. With a slowing start or a filling cache, ages grow faster than limits.
const (
	// minRamp is the age below which a program may still be starting, and allocates as fast as it can.
	minRamp = 30 * time.Second
	// maxRamp is the age from which samples show more than kills (minClimbSpan). All periods of ramps are real time,
	// because neither the rate of a leak nor the kubelet's back-off is compressed like evidence.
	maxRamp = 2 * time.Hour
	// rampSlow and rampFast bound the exponent of the age at the kill as a function of the limit. A constant leak has 1,
	// a burst at a fixed age 0, and a cache that fills over one and a half of its time constants 1.6. Jitter of 20 %
	// either way changes the exponent by 0.5 over a doubled limit, and by 0.25 over a fourfold limit.
	rampSlow, rampFast = 0.6, 1.5
	// rampSpread is the least factor between the lowest and the highest limit: with closer limits, jitter decides.
	rampSpread = 1.5
	// rampJitter is the largest factor between the rates of instances.
	rampJitter = 2.0
	// rampMany is the number of limits from which rates may differ by rampWide, because the rate of a leak varies on a
	// node short of CPU. Rates may also differ by rampWide if the limits differ by rampWide: the exponent may then be
	// as low as for ages that differ by rampJitter.
	rampMany = 3
	rampWide = 4.0
	// runningTimes is the multiple of the lowest limit with a kill from which a running instance counts: two doublings,
	// as many as kills alone may cause (internal/recommend). The last limit would not do, because memfit may have raised
	// it repeatedly.
	runningTimes = 4.0
	// rampFills is how long a program may load data at a constant rate, which resembles a leak until it ends.
	rampFills = 10 * time.Minute
)

// RunningInstance is a running instance whose memory has grown since its start.
type RunningInstance struct {
	Age time.Duration
	Use memory.Bytes
}

// Ramps are consecutive instances that grew at one rate until they were killed. The zero value has no instances.
type Ramps struct {
	Running   bool         // the last instance is running and still grows; Last and LastAge are its use and age
	Instances int          // number of instances
	PerMinute memory.Bytes // the usual growth per minute
	// First and Last are the lowest and the highest limit.
	First, Last memory.Bytes
	// FirstAge and LastAge are the usual ages of the instances that were killed at First and Last.
	FirstAge, LastAge time.Duration
	// Doubt is why the ramp may be a start instead of a leak; "": no doubt.
	Doubt string
}

// String describes the ramp in a sentence; "" without instances.
func (r Ramps) String() string {
	if r.Instances == 0 {
		return ""
	}
	if r.Running {
		return fmt.Sprintf("%d instances in a row climbed about %s a minute from their start, at %s the first was killed "+
			"after %s, and the last is at %s after %s",
			r.Instances, r.PerMinute, r.First, format.Duration(r.FirstAge), r.Last, format.Duration(r.LastAge))
	}
	return fmt.Sprintf("%d instances in a row climbed about %s a minute from their start until they were killed, at %s "+
		"after %s and at %s after %s",
		r.Instances, r.PerMinute, r.First, format.Duration(r.FirstAge), r.Last, format.Duration(r.LastAge))
}

// FindRamps finds a leak in the kills of one container, oldest first; now is the current time. It ignores kills whose
// age or limit is unknown or uncertain. An instance that lives twice as long as predicted disproves the leak, because
// its memory has leveled off.
//
// running is the growing instance with the highest use, if any. It counts before it is killed, because a limit that
// follows its use would prevent its kill and feed the leak. It counts only once it uses more than all killed instances
// and runningTimes the lowest limit; until then, its limit follows its use, which avoids kills of a slow start. If the
// ramp depends on a running instance younger than rampFills, the result has a Doubt, because loading data grows in the
// same way.
func FindRamps(kills []memory.OOMKill, running RunningInstance, now time.Time) Ramps {
	ascents := ascentsOf(kills)
	killed := len(ascents)
	if n := len(ascents); n > 0 && running.Age < maxRamp && running.Age >= minRamp &&
		float64(running.Use) >= runningTimes*float64(ascents[0].limit) && running.Use > ascents[n-1].limit &&
		now.Sub(ascents[n-1].newest) <= 2*running.Age+rampBackoff {
		ascents = append(ascents, ascent{limit: running.Use, age: running.Age, kills: 1, newest: now, running: true})
	}
	// The lowest limits are dropped one by one: those instances may have used much memory before they began to leak.
	for all := ascents; len(ascents) > 1; ascents = ascents[1:] {
		last := ascents[len(ascents)-1]
		if since := now.Sub(last.newest); since > 2*last.age+rampBackoff {
			return Ramps{}
		}
		if proportional(ascents) {
			r := newRamps(ascents)
			if r.Running && running.Age < rampFills && !anyProportional(all[:killed]) {
				r.Doubt = "the running instance is younger than " + format.Duration(rampFills)
			}
			return r
		}
	}
	return Ramps{}
}

// anyProportional reports whether the ascents are proportional, from any of them to the last.
func anyProportional(ascents []ascent) bool {
	for ; len(ascents) > 1; ascents = ascents[1:] {
		if proportional(ascents) {
			return true
		}
	}
	return false
}

// proportional reports whether ages are proportional to limits, within the bounds for the exponent and the rates.
func proportional(ascents []ascent) bool {
	first, last := ascents[0], ascents[len(ascents)-1]
	spread := float64(last.limit) / float64(first.limit)
	exponent, slow, jitter := exponentOf(ascents), rampSlow, rampJitter
	if len(ascents) >= rampMany {
		jitter = rampWide
	}
	if spread >= rampWide {
		slow, jitter = math.Log(rampJitter)/math.Log(spread), rampWide
	}
	slowest, fastest := first.rate(), first.rate()
	for _, a := range ascents {
		slowest, fastest = min(slowest, a.rate()), max(fastest, a.rate())
	}
	return spread >= rampSpread && last.age >= minRamp && exponent >= slow && exponent <= rampFast &&
		fastest <= jitter*slowest
}

// exponentOf returns the exponent of age as a function of the limit: the median over all pairs of limits (Theil-Sen).
func exponentOf(ascents []ascent) float64 {
	var all []float64
	for i, a := range ascents {
		for _, b := range ascents[i+1:] {
			all = append(all, math.Log(b.age.Seconds()/a.age.Seconds())/math.Log(float64(b.limit)/float64(a.limit)))
		}
	}
	return stats.Median(all)
}

func newRamps(ascents []ascent) Ramps {
	first, last := ascents[0], ascents[len(ascents)-1]
	r := Ramps{Running: last.running, First: first.limit, Last: last.limit, FirstAge: first.age, LastAge: last.age}
	var rates []float64
	for _, a := range ascents {
		r.Instances += a.kills
		rates = append(rates, a.rate())
	}
	r.PerMinute = toBytes(stats.Median(rates) * 60)
	return r
}

// rampBackoff is the kubelet's longest back-off of a crashing container.
const rampBackoff = 5 * time.Minute

// ascent summarizes the instances that were killed at one limit, or is the running instance.
type ascent struct {
	limit   memory.Bytes  // the use of the running instance
	age     time.Duration // the median
	kills   int
	newest  time.Time // of the last kill
	running bool
}

// rate returns the growth in bytes per second.
func (a ascent) rate() float64 { return float64(a.limit) / a.age.Seconds() }

// ascentsOf returns the ascents of kills, lowest limit first; none if ages at one limit differ too much.
func ascentsOf(kills []memory.OOMKill) []ascent {
	ages := map[memory.Bytes][]float64{}
	newest := map[memory.Bytes]time.Time{}
	for _, k := range kills {
		if endsRamp(k) {
			ages[k.Limit] = append(ages[k.Limit], k.Uptime.Seconds())
			newest[k.Limit] = k.Time
		}
	}
	var all []ascent
	for limit, seconds := range ages {
		if slices.Max(seconds) > 2*rampJitter*slices.Min(seconds) {
			return nil
		}
		all = append(all, ascent{
			limit: limit, age: time.Duration(stats.Median(seconds) * float64(time.Second)), kills: len(seconds),
			newest: newest[limit],
		})
	}
	slices.SortFunc(all, func(a, b ascent) int { return cmp.Compare(a.limit, b.limit) })
	return all
}

// endsRamp reports whether the kill may be the end of a ramp. A kill shortly after a raise may have been at the limit
// before or after it. If memfit raised the limit to follow use, the two are closer than rates may differ, so the kill
// counts at the lower one. (On a busy node, an instance was killed at 309Mi after 138 s, with 384Mi requested shortly
// before; to ignore this kill would have fed the leak.) A raise after a kill is larger, so the age proves nothing.
func endsRamp(k memory.OOMKill) bool {
	if k.Kind != memory.OOMMainProcess && k.Kind != memory.OOMAtStart {
		return false
	}
	uncertain := float64(k.Requested) >= rampJitter*float64(k.Limit)
	return k.Limit > 0 && !uncertain && k.Uptime > 0 && k.Uptime < maxRamp
}
