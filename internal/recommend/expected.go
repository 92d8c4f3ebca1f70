// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// outlook describes the expected use of the next day.
//
// Two causes of kills are expected: days that repeat, most likely days that followed a day like the last 24 hours, and
// records. The highest use of h hours is exceeded in the next one with a chance of 1/(h+1), by about as much as this
// container exceeded its own records before. With a first guess of that, an excess has a Lomax distribution.
type outlook struct {
	kill    float64 // what a kill costs, in bytes held for a day in those hours in which the container runs
	hours   int     // in which it ran, of [history.HoursKept]
	top     float64 // the highest of the last 24 hours, kills included
	records lomax   // by how much a record exceeds the one before
	rate    float64 // records a day
	days    []repeat
	known   [history.DaysKept + 1]knownDay // calendar days by their age
	// elsewhere is the highest peak of the days that do not count, because use never came down to top.
	elsewhere memory.Bytes
}

// repeat is a day that may repeat, with its chance.
type repeat struct{ peak, chance float64 }

// cheapest returns the limit at which a day of holding it, and the kills expected in that day, cost least. top is the
// highest of the last 24 hours, which it is never below.
func (e *evaluation) cheapest(top memory.Bytes) memory.Bytes {
	var buf [history.DaysKept]repeat
	o := e.outlook(float64(top), buf[:0])
	have := float64(e.Current.Limit)
	best, lower := e.choose(&o, have)
	limit := bytesOf(best).CeilTo(memory.MiB)
	if highest := e.rec.Evidence.PeakDemand; limit < highest {
		if highest <= o.elsewhere {
			e.note("the peak of %s is not covered: use stayed above %s all of that day, which was another load", highest, top)
		} else {
			e.note("the peak of %s is not covered: that would cost more than the kills it may cause", highest)
		}
	}
	e.note("%s", o.words(limit))
	if lower > 0 {
		e.note("limit stays at %s: %s, which has been enough for %s, would cost less, but by less than it costs to lower a "+
			"limit (%s for a day)", e.Current.Limit, bytesOf(lower).CeilTo(memory.MiB),
			format.Count(o.enough(lower), "day"), bytesOf(e.lowering(&o, have, lower)))
	}
	return limit
}

// bytesOf returns a calculated amount as bytes.
func bytesOf(amount float64) memory.Bytes {
	if amount >= float64(memory.Max) {
		return memory.Max
	}
	return memory.Bytes(math.Ceil(amount))
}

// choose returns the limit of the least cost. Changes that are too small to be made are left out, until hardly anything
// of the margin is left. lower is a lower limit that only the cost of lowering rules out; 0: none.
func (e *evaluation) choose(o *outlook, have float64) (best, lower float64) {
	margin, left := float64(e.Policy.MinMarginPercent)/100, float64(e.model.EatenPercent)/100
	percent := float64(e.Policy.MinChangePercent)
	floor, raised := o.top*(1+margin), have*(101+percent)/100
	best = have
	if have < o.top*(1+margin*left) || floor-have >= max(have*percent/100, 1) {
		best = max(floor, raised)
	}
	least := o.cost(best)
	free := least
	try := func(limit float64) {
		limit = max(limit, floor)
		if math.Abs(limit-have)*100 < have*percent {
			return
		}
		cost := o.cost(limit)
		if cost < free {
			lower, free = limit, cost
		}
		if limit < have {
			cost += e.lowering(o, have, limit)
		}
		if cost < least {
			best, least = limit, cost
		}
	}
	try(o.top + o.records.space(o.kill*o.rate))
	try(raised)
	for _, d := range o.days {
		try(d.peak * (1 + margin))
	}
	if best != have || lower > have {
		lower = 0
	}
	return best, lower
}

// lowering returns what it costs a day to lower a limit. A lower one is expected to be enough for as long as it has
// been, and what a kill adds is spread over these days.
func (e *evaluation) lowering(o *outlook, from, to float64) float64 {
	return e.model.LowerLimit*from + e.model.LowerKill*o.kill/float64(o.enough(to))
}

// enough returns for how many days a limit would have been enough. Days without data do not count.
func (o *outlook) enough(limit float64) int {
	days := 1 // the last 24 hours
	for _, d := range o.known[1:] {
		if float64(d.peak) > limit {
			break
		}
		if d.peak > 0 {
			days++
		}
	}
	return days
}

// weekDays is for how many days processes that started since a day must have used less than all of that day, before it
// counts as another load: until then they may idle, as on a weekend. One that ran on that day and came down shows it in
// a day.
const weekDays = 7

// lasts returns for how many of the latest days with data use came down to the highest of the last 24 hours.
func (o *outlook) lasts() (days int) {
	for _, d := range o.known[1:] {
		if float64(d.trough) > o.top {
			break
		}
		if d.peak > 0 {
			days++
		}
	}
	return days
}

func (e *evaluation) outlook(top float64, days []repeat) outlook {
	m := &e.model
	var buf [history.HoursKept]history.Hour
	all := e.History.AppendHours(buf[:0])
	hours := len(e.recent(all))
	known := e.knownDays()
	seen := e.History.Records()
	ran := history.HoursKept
	if len(e.Runs) > 0 { // between its runs it holds nothing; of others, samples may be missing
		ran = max(len(all), 1)
	}
	o := outlook{
		kill: float64(e.Policy.KillPrice) * history.HoursKept / float64(ran), hours: ran, top: top,
		records: lomax{m.Records + float64(seen.Seen), m.excess(top) + float64(seen.Excess) + e.killExcess(&known)},
		// The hours of the day before are more where data is missing, and as few where the program does not always run.
		rate: float64(max(min(hours, history.RecordHours), len(all)-hours)) / float64(min(hours, history.RecordHours)+1),
		days: append(days, repeat{top, 1}), known: known,
	}
	total := 1.
	oldest, lasts := e.daysSince(e.History.RunningSince()), o.lasts()
	for age := 1; age < history.DaysKept; age++ {
		d := &known[age]
		if d.peak == 0 || float64(d.trough) > top && hours >= history.RecordHours && (age <= oldest || lasts >= weekDays) {
			o.elsewhere = max(o.elsewhere, d.peak)
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

// excess returns the first guess of how far a container goes beyond what it used.
func (m *Model) excess(used float64) float64 { return min(float64(m.Excess), m.ExcessShare*used) }

// alike returns how much a day predicts of the next when it was like the last one: all up to its peak, less the higher
// it was, nothing when it is not known.
func (m *Model) alike(day, last float64) float64 {
	if day == 0 {
		return 0
	}
	far := max(math.Log(day/last)/m.Alike, 0)
	return math.Exp(-far * far / 2)
}

// knownDay is a calendar day: the highest use, that and what kills show, and how far use came down.
type knownDay struct{ used, peak, trough memory.Bytes }

// knownDays returns the calendar days kept, by their age. They do not move with the clock, so that a peak counts as
// often now as an hour later, and the limit does not flip.
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

// daysSince returns how many calendar days ago a time was.
func (e *evaluation) daysSince(t time.Time) int { return int(period.DayOf(e.Now) - period.DayOf(t)) }

// killExcess returns how far kills went beyond what was known: each of a row beyond the one before, the first beyond
// what was used on its day and the day before. Where more than the limit was used on that day, the record of it was
// learned already. Replicas that die together at one limit are one.
func (e *evaluation) killExcess(days *[history.DaysKept + 1]knownDay) (excess float64) {
	var row memory.Bytes
	for i, k := range e.kills {
		if i > 0 && e.since(e.kills[i-1].Time)-e.since(k.Time) >= killHold {
			row = 0
		}
		if age := e.daysSince(k.Time); age >= 0 && age < history.DaysKept {
			if known := max(days[age+1].used, days[age].used, row); known > 0 {
				excess += float64(k.Limit.Minus(known)) * math.Exp2(-float64(age)/e.model.DayHalfLife)
			}
		}
		row = max(row, k.Limit)
	}
	return excess
}

// cost of holding a limit for a day in those hours in which the container runs, in bytes.
func (o *outlook) cost(limit float64) float64 { return limit + o.kill*o.kills(limit) }

// kills returns the expected kills a day under a limit.
func (o *outlook) kills(limit float64) float64 {
	kills := o.rate * o.records.beyond(limit-o.top)
	for _, d := range o.days {
		if d.peak > limit {
			kills += d.chance
		}
	}
	return kills
}

// words returns the sentence by which an operator can check a limit: the peak, what is above it, the kills expected,
// and what 10 % less would save and cost.
func (o *outlook) words(limit memory.Bytes) string {
	lower, top := limit.Percent(90), memory.Bytes(o.top)
	kills := o.kills(float64(limit))
	more := o.kills(float64(lower)) - kills
	price, runs := memory.Bytes(o.kill*float64(o.hours)/history.HoursKept), ""
	if o.hours < history.HoursKept {
		runs = sprintf(", or %s while it runs, %d of %d hours", memory.Bytes(o.kill), o.hours, history.HoursKept)
	}
	return sprintf("%s is %s above the last day's peak of %s: %s kills are expected in 100 days like the last %d; "+
		"10 %% less would save %s and cost %s more, worth %s (posture: a kill is worth %s held for a day%s)", limit,
		limit.Minus(top), top, per100(kills), len(o.days), limit.Minus(lower), per100(more), memory.Bytes(o.kill*more),
		price, runs)
}

// per100 returns a rate of kills a day as a number in 100 days.
func per100(rate float64) string { return sprintf("%.2g", 100*rate) }

// lomax is an exponential distribution whose mean is known from a few values: shape of them, scale in all.
type lomax struct{ shape, scale float64 }

// beyond returns the chance of more than x.
func (l lomax) beyond(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return math.Pow(1+x/l.scale, -l.shape)
}

// space returns the amount x at which one byte more costs what it saves.
func (l lomax) space(price float64) float64 {
	return max(0, l.scale*(math.Pow(price*l.shape/l.scale, 1/(l.shape+1))-1))
}
