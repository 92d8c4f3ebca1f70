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

// A leak that kills within minutes is over before a shape can be classified from samples: [Classify] needs two hours.
// But it leaves a mark in the kills themselves: every instance grows at the same rate from its start until it meets
// its limit, so that with four times the limit it lives four times as long. What a program needs once, at its start or
// at a burst, ends it at about the same age whatever the limit; a start that slows down, a cache that fills, lives
// ever longer than the limit grows.
const (
	// rampLeast: before this age a program starts, and takes what it needs as fast as it can.
	rampLeast = 30 * time.Second
	// rampMost is from where on samples tell more than ages do (leastClimb). All periods of ramps are real time: how fast
	// memory is taken, and how long the kubelet waits, do not depend on how evidence is counted.
	rampMost = 2 * time.Hour
	// rampSlow and rampFast bound by how much the age at death may go with the limit, as an exponent: 1 is a straight
	// line from zero; 0 is a burst at a fixed age, and a cache that fills by one and a half of its time constants has
	// 1.6. Jitter of 20 % either way moves a comparison over a doubling by a half, over a fourfold limit by a
	// quarter.
	rampSlow, rampFast = 0.6, 1.5
	// rampSpread is the least factor between the lowest and the highest limit compared. Less proves nothing, for the same
	// reason.
	rampSpread = 1.5
	// rampJitter is how far the ages of instances at one limit may lie apart, and rates of all instances, as a factor. On
	// a node that has too little CPU, a process leaks now faster, now slower: from rampMany limits on, which differ by
	// far more than that, the rates of rampMany may lie rampWide apart. So may those of two whose limits do: ages that
	// are more than rampJitter apart then are not jitter of one age, and the exponent may be as low as that makes it.
	rampJitter = 2.0
	rampMany   = 3
	rampWide   = 4.0
	// runningTimes is from where on an instance counts that runs: two doublings of the lowest limit that killed, as many
	// as kills alone may lead to (internal/recommend). Not of the last one, which memfit may have raised time and again.
	runningTimes = 4.0
	// rampFills is how long a program may take what it needs at one rate, which looks like a leak until it has it. The
	// start that shapes leave out (warmUpTime) is as long without compression.
	rampFills = 10 * time.Minute
)

// RunningInstance is one that runs, and has used more and more since its start.
type RunningInstance struct {
	Age time.Duration
	Use memory.Bytes
}

// Ramps are consecutive instances that grew at one rate until they were killed. The zero value: there are none.
type Ramps struct {
	// Running: the last of them runs, and climbs on. Last and LastAge are its own.
	Running bool
	// Instances is how many, PerMinute their usual rate.
	Instances int
	PerMinute memory.Bytes
	// First and Last are the lowest and the highest limit, FirstAge and LastAge how long an instance lived there.
	First, Last       memory.Bytes
	FirstAge, LastAge time.Duration
	// Doubt is why it may be a start that still fills instead of a leak; "" without doubt.
	Doubt string
}

// String is what was seen: "the last 3 instances each climbed about 360Mi a minute from their start until they were
// killed, at 64Mi after 10s and at 256Mi after 42s".
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

// FindRamps finds a leak in the kills of one container, oldest first. Kills at an uncertain limit, of unknown age or
// of unknown limit are skipped. A life that lasts twice as long as its ramp predicts takes the finding back, because
// then memory has levelled off.
//
// running is the fullest instance that runs and grows, if there is one: a limit that follows its use keeps a leak from
// being killed again, which is fed then for as long as it grows. So the successor of a killed instance counts before
// it is killed itself, but not before it uses more than any of them had, and runningTimes what the first had: until
// then its use is followed, which spares what is only slow to start another kill. By it alone, within rampFills of its
// start, a leak is in doubt: what is still being loaded grows in the same way.
func FindRamps(kills []memory.OOMKill, running RunningInstance, now time.Time) Ramps {
	ascents := ramps(kills)
	died := len(ascents)
	if n := len(ascents); n > 0 && running.Age < rampMost && running.Age >= rampLeast &&
		float64(running.Use) >= runningTimes*float64(ascents[0].limit) && running.Use > ascents[n-1].limit &&
		now.Sub(ascents[n-1].newest) <= 2*running.Age+rampBackoff {
		ascents = append(ascents, ascent{limit: running.Use, age: running.Age, kills: 1, newest: now, running: true})
	}
	// Of the first, much may have been in use before it began to leak.
	for all := ascents; len(ascents) > 1; ascents = ascents[1:] {
		last := ascents[len(ascents)-1]
		if since := now.Sub(last.newest); since > 2*last.age+rampBackoff {
			return Ramps{}
		}
		if proportional(ascents) {
			r := found(ascents)
			if r.Running && running.Age < rampFills && !anyProportional(all[:died]) {
				r.Doubt = "the one that runs has done so for less than " + format.Duration(rampFills)
			}
			return r
		}
	}
	return Ramps{}
}

// anyProportional: some of them, up to the last, lie on one line from about zero.
func anyProportional(ascents []ascent) bool {
	for ; len(ascents) > 1; ascents = ascents[1:] {
		if proportional(ascents) {
			return true
		}
	}
	return false
}

// proportional: all of them lie on one line from about zero.
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
	return spread >= rampSpread && last.age >= rampLeast && exponent >= slow && exponent <= rampFast &&
		fastest <= jitter*slowest
}

// exponentOf is by how much the age at death goes with the limit: the median over all pairs of limits (Theil-Sen), so
// that one life which took far longer, or less, than it should does not decide.
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

// rampBackoff is the longest that the kubelet waits before it starts a container that crashes again.
const rampBackoff = 5 * time.Minute

// ascent is what became of the instances under one limit.
type ascent struct {
	limit   memory.Bytes
	age     time.Duration // the usual one
	kills   int
	newest  time.Time
	running bool // it uses limit and runs
}

func (r ascent) rate() float64 { return float64(r.limit) / r.age.Seconds() }

// ramps are the usual ages at death by limit, lowest first; none when the instances under one limit have nothing in
// common.
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

// rampOf: the kill may be the end of a ramp. A leak whose limit follows its use is killed just when it is raised
// again, so that it is unknown at which of two limits it died. They lie closer together than rates may, and the lower
// one is as good. (On a node with one busy processor, 64Mi after 26 s, then 309Mi after 138 s with 384Mi sent shortly
// before: skipped, it was not a second life, and the leak was fed.) A raise after a kill is larger: if that may not
// have been effective, the age proves nothing.
func rampOf(k memory.OOMKill) bool {
	if k.Kind != memory.OOMMainProcess && k.Kind != memory.OOMAtStart {
		return false
	}
	unsure := float64(k.Asked) >= rampJitter*float64(k.Limit)
	return k.Limit > 0 && !unsure && k.Uptime > 0 && k.Uptime < rampMost
}
