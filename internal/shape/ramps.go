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

// A leak that kills within minutes is too fast for [Classify], which needs two hours of samples. But the kills show it:
// with four times the limit, an instance lives four times as long. A one-time need, at a start or in a burst, kills at
// about the same age at any limit; with a slowing start or a filling cache, ages grow faster than limits.
const (
	// minRamp: younger programs are starting, and allocate as fast as they can.
	minRamp = 30 * time.Second
	// maxRamp is the age from which samples show more than ages (minClimbSpan). All periods of ramps are real time,
	// because the rate of a leak and the kubelet's backoff do not depend on compressed evidence.
	maxRamp = 2 * time.Hour
	// rampSlow and rampFast bound the exponent of the age at the kill as a function of the limit: 1 is a straight line
	// from zero; 0 is a burst at a fixed age, and a cache that fills over one and a half of its time constants has 1.6.
	// Jitter of 20 % either way changes the exponent by a half over a doubled limit, by a quarter over a fourfold one.
	rampSlow, rampFast = 0.6, 1.5
	// rampSpread is the least factor between the lowest and the highest compared limit, for the same reason.
	rampSpread = 1.5
	// rampJitter is the largest factor between ages of instances at one limit, and between rates of all instances. On a
	// node short of CPU, the rate of a leak varies: with rampMany or more limits, which differ far more, rates may differ
	// by rampWide. So may the rates of two instances with such limits: ages that differ by more than rampJitter are not
	// jitter of one age, and the exponent may be this low.
	rampJitter = 2.0
	rampMany   = 3
	rampWide   = 4.0
	// runningTimes is the multiple of the lowest limit with a kill from which a running instance counts: two doublings,
	// as many as kills alone may cause (internal/recommend). Not of the last limit, which memfit may have raised
	// repeatedly.
	runningTimes = 4.0
	// rampFills is how long a program may load at a constant rate, which resembles a leak until it ends. warmUpTime is
	// equal without compression.
	rampFills = 10 * time.Minute
)

// RunningInstance is a running instance that has grown since its start.
type RunningInstance struct {
	Age time.Duration
	Use memory.Bytes
}

// Ramps are consecutive instances that grew at one rate until they were killed. The zero value has none.
type Ramps struct {
	Running   bool         // the last of them is running and still climbs; Last and LastAge are its own
	Instances int          // their number
	PerMinute memory.Bytes // their usual rate
	// First and Last are the lowest and the highest limit, FirstAge and LastAge the ages of instances there.
	First, Last       memory.Bytes
	FirstAge, LastAge time.Duration
	// Doubt is why it may be a start instead of a leak; "": none.
	Doubt string
}

// String describes them in a sentence.
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

// FindRamps finds a leak in the kills of one container, oldest first. Kills at an uncertain limit, of unknown age or of
// unknown limit are skipped. An instance that lives twice as long as predicted disproves the leak, because memory has
// leveled off.
//
// running is the fullest growing instance, if any: a limit that follows its use prevents further kills of a leak and
// feeds it. So the successor of a killed instance counts before it is killed, but only once it uses more than all of
// them did, and runningTimes the first limit: until then its limit follows its use, which avoids kills of a slow start.
// By it alone, within rampFills of its start, a leak is in doubt, because loading grows in the same way.
func FindRamps(kills []memory.OOMKill, running RunningInstance, now time.Time) Ramps {
	ascents := ramps(kills)
	died := len(ascents)
	if n := len(ascents); n > 0 && running.Age < maxRamp && running.Age >= minRamp &&
		float64(running.Use) >= runningTimes*float64(ascents[0].limit) && running.Use > ascents[n-1].limit &&
		now.Sub(ascents[n-1].newest) <= 2*running.Age+rampBackoff {
		ascents = append(ascents, ascent{limit: running.Use, age: running.Age, kills: 1, newest: now, running: true})
	}
	// The first may have used much before it began to leak.
	for all := ascents; len(ascents) > 1; ascents = ascents[1:] {
		last := ascents[len(ascents)-1]
		if since := now.Sub(last.newest); since > 2*last.age+rampBackoff {
			return Ramps{}
		}
		if proportional(ascents) {
			r := found(ascents)
			if r.Running && running.Age < rampFills && !anyProportional(all[:died]) {
				r.Doubt = "the running instance is younger than " + format.Duration(rampFills)
			}
			return r
		}
	}
	return Ramps{}
}

// anyProportional reports whether some of them, up to the last, are on one line from about zero.
func anyProportional(ascents []ascent) bool {
	for ; len(ascents) > 1; ascents = ascents[1:] {
		if proportional(ascents) {
			return true
		}
	}
	return false
}

// proportional reports whether all of them are on one line from about zero.
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
	for _, l := range ascents {
		slowest, fastest = min(slowest, l.rate()), max(fastest, l.rate())
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

func found(ascents []ascent) Ramps {
	first, last := ascents[0], ascents[len(ascents)-1]
	r := Ramps{Running: last.running, First: first.limit, Last: last.limit, FirstAge: first.age, LastAge: last.age}
	var rates []float64
	for _, l := range ascents {
		r.Instances += l.kills
		rates = append(rates, l.rate())
	}
	r.PerMinute = toBytes(stats.Median(rates) * 60)
	return r
}

// rampBackoff is the kubelet's longest backoff of a crashing container.
const rampBackoff = 5 * time.Minute

// ascent sums up the instances under one limit.
type ascent struct {
	limit   memory.Bytes
	age     time.Duration // usual age
	kills   int
	newest  time.Time
	running bool // running, and uses limit
}

func (r ascent) rate() float64 { return float64(r.limit) / r.age.Seconds() }

// ramps returns the usual ages at the kill by limit, lowest first; none if those under one limit differ too much.
func ramps(kills []memory.OOMKill) []ascent {
	ages := map[memory.Bytes][]float64{}
	newest := map[memory.Bytes]time.Time{}
	for _, k := range kills {
		if rampOf(k) {
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

// rampOf reports whether the kill may be the end of a ramp. A leak whose limit follows its use is killed around a
// raise, so it is unknown at which of two limits. These are closer than rates may be, so it uses the lower one. (On a
// busy node, 64Mi after 26 s, then 309Mi after 138 s with 384Mi sent shortly before: skipping it would have fed the
// leak.) A raise after a kill is larger: if it may not have been effective, the age proves nothing.
func rampOf(k memory.OOMKill) bool {
	if k.Kind != memory.OOMMainProcess && k.Kind != memory.OOMAtStart {
		return false
	}
	unsure := float64(k.Asked) >= rampJitter*float64(k.Limit)
	return k.Limit > 0 && !unsure && k.Uptime > 0 && k.Uptime < maxRamp
}
