// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// outlook is what the next day is expected to be like.
//
// Kills come of days that repeat, most likely those that followed a day like the last 24 hours; and of records: the
// highest use of h hours is exceeded in the next one with a chance of 1/(h+1), by about as much as this container
// exceeded its own records before. With a first guess of that, an excess has a Lomax distribution.
type outlook struct {
	kill    float64 // what a kill costs, in bytes held for a day
	top     float64 // the highest of the last 24 hours, kills included
	records lomax   // by how much a record goes beyond
	rate    float64 // records a day
	days    []repeat
	// diedAt is the highest limit of the kills of the last hour; 0: there was none. wanted is how much more was needed.
	diedAt float64
	wanted lomax
}

// repeat is a day that may come again, with the chance of that.
type repeat struct{ peak, chance float64 }

// cheapest returns the limit at which a day of holding it, and the kills expected in that day, cost least. top is the
// highest of the last 24 hours, which it is never below.
func (e *evaluation) cheapest(top memory.Bytes) memory.Bytes {
	var buf [history.DaysKept]repeat
	o := e.outlook(float64(top), buf[:0])
	have := float64(e.Current.Limit)
	best := e.choose(&o, have)
	if diedAt := e.lastDiedAt(); diedAt > 0 {
		o.diedAt, o.wanted = float64(diedAt), e.wanted(diedAt)
		most := diedAt.Plus(diedAt.Percent(e.model.GuessPercent))
		best = max(have, best, min(e.choose(&o, have), float64(most)))
	}
	limit := memory.Bytes(math.Ceil(best)).CeilTo(memory.MiB)
	if highest := e.rec.Evidence.PeakDemand; limit < highest {
		e.say("the peak of %s is not held: that would cost more than the kills it may cause (posture %s)", highest,
			e.Policy.Posture)
	}
	if o.diedAt > 0 {
		e.say("killed at %s within the hour: %s costs least where it is not known how much more it wanted",
			memory.Bytes(o.diedAt), limit)
	} else {
		e.say("%s", o.words(limit, e.Policy.Posture))
	}
	return limit
}

// choose is the limit of the least cost. Changes that are too small to be made are left out, until hardly anything of
// the least room is left.
func (e *evaluation) choose(o *outlook, have float64) float64 {
	room, left := float64(e.Policy.LeastRoomPercent)/100, float64(e.model.EatenPercent)/100
	floor := o.top * (1 + room)
	raised := have * float64(101+e.Policy.MinChangePercent) / 100
	best := have
	if have < o.top*(1+room*left) {
		best = max(floor, raised)
	}
	least := o.cost(best)
	try := func(limit float64) {
		limit = max(limit, floor)
		if math.Abs(limit-have)*100 < have*float64(e.Policy.MinChangePercent) {
			return
		}
		cost := o.cost(limit)
		if limit < have {
			cost += e.model.LowerLimit*have + e.model.LowerKill*o.kill
		}
		if cost < least {
			best, least = limit, cost
		}
	}
	try(o.top + o.records.room(o.kill*o.rate))
	try(raised)
	if o.diedAt > 0 {
		try(o.diedAt + o.wanted.room(o.kill*hoursOfDay))
	}
	for _, d := range o.days {
		try(d.peak * (1 + room))
	}
	return best
}

// hoursOfDay: what a kill asks for is needed within the hour.
const hoursOfDay = float64(period.Day / period.Hour)

func (e *evaluation) outlook(top float64, days []repeat) outlook {
	m := &e.model
	var buf [history.HoursKept]history.Hour
	hours := e.lastHours(buf[:0])
	known := e.knownDays()
	seen := e.History.Records()
	o := outlook{
		kill: float64(m.price(e.Policy.Posture).Kill), top: top,
		records: lomax{m.Records + float64(seen.Seen), m.excess(top) + float64(seen.Excess) + e.killExcess(&known)},
		rate:    hoursOfDay / float64(min(len(hours), history.RecordHours)+1),
		days:    append(days, repeat{top, 1}),
	}
	total := 1.
	for age := 1; age < history.DaysKept; age++ {
		d := &known[age]
		if d.peak == 0 || float64(d.trough) > top && len(hours) >= history.RecordHours {
			continue // it never came down to the highest of a whole day: another release, or another load
		}
		like := m.Unlike + (1-m.Unlike)*m.alike(float64(known[age+1].peak), top)
		chance := math.Exp2(-float64(age)/m.DayHalfLife) * like
		o.days = append(o.days, repeat{float64(d.peak), chance})
		total += chance
	}
	for i := range o.days {
		o.days[i].chance /= total
	}
	return o
}

// wanted is how much more than a limit was needed where it was killed at it: about as much as it went beyond what was
// known already, which each kill in a row makes more.
func (e *evaluation) wanted(diedAt memory.Bytes) lomax {
	var buf [history.HoursKept]history.Hour
	used := highestOf(e.lastHours(buf[:0]))
	return lomax{1, e.model.excess(float64(used)) + float64(diedAt.Minus(used))}
}

// excess is the first guess of how far a container goes beyond what it used.
func (m *Model) excess(used float64) float64 { return min(float64(m.Excess), m.ExcessShare*used) }

// alike is how much a day tells of the next when it was like the last one: all up to its peak, less the higher it was,
// nothing when it is not known.
func (m *Model) alike(day, last float64) float64 {
	if day == 0 {
		return 0
	}
	least := float64(m.AlikeLeast)
	far := max(math.Log((day+least)/(last+least))/m.Alike, 0)
	return math.Exp(-far * far / 2)
}

// knownDay is a calendar day: the highest use, that and what kills show, and how far use came down.
type knownDay struct{ used, peak, trough memory.Bytes }

// knownDays are the calendar days kept, by their age. They do not move with the clock, so that a peak counts as often
// now as an hour later, and the limit does not flip.
func (e *evaluation) knownDays() (days [history.DaysKept + 1]knownDay) {
	var buf [history.DaysKept]history.Day
	for _, d := range e.History.AppendDays(buf[:0]) {
		if age := e.daysSince(d.Start); age >= 0 && age < history.DaysKept {
			days[age] = knownDay{used: d.Peak, peak: d.Peak, trough: d.Trough}
		}
	}
	for _, k := range e.kills {
		if age := e.daysSince(k.Time); age >= 0 && age < history.DaysKept {
			days[age].peak = max(days[age].peak, e.beyondKill(k))
		}
	}
	return days
}

// daysSince is how many calendar days ago a time was.
func (e *evaluation) daysSince(t time.Time) int { return int(period.DayOf(e.Now) - period.DayOf(t)) }

// killExcess is how far kills went beyond what was known: each of a row beyond the one before, the first beyond what
// was used on its day and the day before. Replicas that die together at one limit are one.
func (e *evaluation) killExcess(days *[history.DaysKept + 1]knownDay) (excess float64) {
	var row memory.Bytes
	for i, k := range e.kills {
		if i > 0 && e.since(e.kills[i-1].Time)-e.since(k.Time) >= killHold {
			row = 0
		}
		if age := e.daysSince(k.Time); age >= 0 && age < history.DaysKept {
			known := max(days[age+1].used, row)
			if used := days[age].used; used < k.Limit { // else it was used after the kill
				known = max(known, used)
			}
			if known > 0 {
				excess += float64(k.Limit.Minus(known)) * math.Exp2(-float64(age)/e.model.DayHalfLife)
			}
		}
		row = max(row, k.Limit)
	}
	return excess
}

// lastDiedAt is the highest limit of the kills of the last hour, and of those in a row with them; 0: there were none.
func (e *evaluation) lastDiedAt() (limit memory.Bytes) {
	after := e.Now
	for i := len(e.kills) - 1; i >= 0; i-- {
		k := e.kills[i]
		if period.Of(after.Sub(k.Time)) >= killHold {
			break
		}
		limit, after = max(limit, k.Limit), k.Time
	}
	return limit
}

// cost of holding a limit for a day, in bytes.
func (o *outlook) cost(limit float64) float64 { return limit + o.kill*o.kills(limit) }

// kills are those expected in a day under a limit.
func (o *outlook) kills(limit float64) float64 {
	kills := o.rate * o.records.beyond(limit-o.top)
	for _, d := range o.days {
		if d.peak > limit {
			kills += d.chance
		}
	}
	if o.diedAt > 0 {
		kills += hoursOfDay * o.wanted.beyond(limit-o.diedAt)
	}
	return kills
}

// words are the sentence by which an operator can check a limit: the peak, what is above it, the kills expected, and
// what 10 % less would save and cost.
func (o *outlook) words(limit memory.Bytes, p Posture) string {
	lower, top := limit.Percent(90), memory.Bytes(o.top)
	kills := o.kills(float64(limit))
	more := o.kills(float64(lower)) - kills
	return sprintf("%s is %s above the last day's peak of %s: %s kills are expected in 100 days like the last %d; "+
		"10 %% less would save %s and cost %s more, worth %s (%s: a kill is worth %s held for a day)", limit,
		limit.Minus(top), top, per100(kills), len(o.days), limit.Minus(lower), per100(more), memory.Bytes(o.kill*more), p,
		memory.Bytes(o.kill))
}

// per100 is a rate of kills a day as a number in 100 days.
func per100(rate float64) string { return sprintf("%.2g", 100*rate) }

// lomax is an exponential distribution whose mean is known from a few values: shape of them, scale in all.
type lomax struct{ shape, scale float64 }

// beyond is the chance of more than x.
func (l lomax) beyond(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return math.Pow(1+x/l.scale, -l.shape)
}

// room is the x at which one byte more costs what it saves.
func (l lomax) room(price float64) float64 {
	return max(0, l.scale*(math.Pow(price*l.shape/l.scale, 1/(l.shape+1))-1))
}
