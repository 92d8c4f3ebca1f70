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
// The model has two causes of kills. Earlier days may repeat, most likely those that followed a day like the last 24
// hours. And the next hour exceeds the highest use of h hours (a record) with probability 1/(h+1), by an exponential
// excess. Its mean is estimated from earlier records and a prior, so the excess has a Lomax distribution.
type outlook struct {
	kill    float64 // the cost of a kill, in bytes for a day of the hours in which the container runs
	hours   int     // number of hours in which the container ran, of [history.HoursKept]
	top     float64 // the peak of the last 24 hours (with the use assumed for kills) or of new pods, in bytes
	records lomax   // by how much a record exceeds top
	rate    float64 // expected records per day
	days    []repeat
	known   [history.DaysKept + 1]knownDay // calendar days by their age
	// excludedPeak is the highest peak of days that count as another load, because use never fell to top.
	excludedPeak memory.Bytes
}

// repeat is a day that may repeat: its peak in bytes, and the probability that the next day is like it.
type repeat struct{ peak, chance float64 }

// cheapest returns the limit with the lowest cost per day: the memory itself plus the expected kills. The limit covers
// top with a margin: the peak of the last 24 hours, or of new pods, which may start on any day.
func (e *evaluation) cheapest(top memory.Bytes) memory.Bytes {
	var buf [history.DaysKept]repeat
	o := e.outlook(float64(top), buf[:0])
	have := float64(e.Current.Limit)
	best, lower := e.choose(&o, have)
	limit := bytesOf(best).CeilTo(memory.MiB)
	if highest := e.rec.Evidence.PeakDemand; limit < highest {
		if highest <= o.excludedPeak {
			e.note("the peak of %s is not covered: use stayed above %s all of that day, which was another load", highest, top)
		} else {
			e.note("the peak of %s is not covered: that costs more than the kills it prevents", highest)
		}
	}
	e.note("%s", o.words(limit, e.least))
	if lower > 0 {
		e.note("limit stays at %s: %s was enough for %s, but saves less than lowering a limit costs (%s for a "+
			"day)", e.Current.Limit, bytesOf(lower).CeilTo(memory.MiB),
			format.Count(o.sufficientDays(lower), "day"), bytesOf(e.lowering(&o, have, lower)))
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

// choose returns the limit with the lowest cost. It skips changes that are too small, unless most of the margin is
// used. lower is the limit that would be cheaper if lowering had no cost; 0: none.
func (e *evaluation) choose(o *outlook, have float64) (best, lower float64) {
	margin, left := float64(e.Policy.MinMarginPercent)/100, float64(e.model.UsedMarginPercent)/100
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

// lowering returns the cost per day of lowering a limit. It spreads the cost of a kill over sufficientDays, because the
// lower limit is expected to suffice for as long as it would have until now.
func (e *evaluation) lowering(o *outlook, from, to float64) float64 {
	return e.model.LowerLimit*from + e.model.LowerKill*o.kill/float64(o.sufficientDays(to))
}

// sufficientDays returns for how many of the latest days a limit would have sufficed. Days without data do not count.
func (o *outlook) sufficientDays(limit float64) int {
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

// weekDays is the number of lowDays from which an earlier day on which use did not fall to top is excluded, if all
// processes started after that day: they may be idle now, as on a weekend. If a process has run since that day, the day
// is excluded immediately.
const weekDays = 7

// lowDays returns on how many of the latest days with data use fell to top or less.
func (o *outlook) lowDays() (days int) {
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

// outlook estimates the next day from the history and the kills. days is a buffer for the result.
func (e *evaluation) outlook(top float64, days []repeat) outlook {
	m := &e.model
	var buf [history.HoursKept]history.Hour
	all := e.History.AppendHours(buf[:0])
	hours := len(e.recent(all))
	known := e.knownDays()
	seen := e.History.Records()
	ran := history.HoursKept
	if len(e.Runs) > 0 { // no memory between runs; for other containers, hours without samples may be gaps
		ran = max(len(all), 1)
	}
	o := outlook{
		kill: float64(e.Policy.KillPrice) * history.HoursKept / float64(ran), hours: ran, top: top,
		records: lomax{m.Records + float64(seen.Seen), m.excess(top) + float64(seen.Excess) + e.killExcess(&known)},
		// The previous day counts if it has more hours: data of the last day may be missing.
		rate: float64(max(min(hours, history.RecordHours), len(all)-hours)) / float64(min(hours, history.RecordHours)+1),
		days: append(days, repeat{top, 1}), known: known,
	}
	total := 1.
	oldest, lowDays := e.daysSince(e.History.RunningSince()), o.lowDays()
	for age := 1; age < history.DaysKept; age++ {
		d := &known[age]
		if d.peak == 0 || float64(d.trough) > top && hours >= history.RecordHours && (age <= oldest || lowDays >= weekDays) {
			o.excludedPeak = max(o.excludedPeak, d.peak)
			continue // no data, or use never fell to top: another release or load
		}
		like := m.Unlike + (1-m.Unlike)*m.similarity(float64(known[age+1].peak), top)
		chance := math.Exp2(-float64(age)/m.DayHalfLife) * like
		o.days = append(o.days, repeat{float64(d.peak), chance})
		total += chance
	}
	for i := range o.days {
		o.days[i].chance /= total
	}
	return o
}

// excess returns Excess for a use, in bytes.
func (m *Model) excess(used float64) float64 { return min(float64(m.Excess), m.ExcessShare*used) }

// similarity returns how similar an earlier day is to the last 24 hours, by their peaks in bytes: 1 if its peak is not
// higher, and less the higher its peak is. 0: the day is unknown.
func (m *Model) similarity(day, last float64) float64 {
	if day == 0 {
		return 0
	}
	far := max(math.Log(day/last)/m.Alike, 0)
	return math.Exp(-far * far / 2)
}

// knownDay is a calendar day: its highest use, the same including the use assumed for kills, and its lowest use.
type knownDay struct{ used, peak, trough memory.Bytes }

// knownDays returns the calendar days kept, by their age. Calendar days do not change from hour to hour, so that the
// limit does not flap.
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

// killExcess returns by how much limits at kills exceeded known use, in bytes. The first kill of a series is compared
// with the use of its day and the day before, each other with the highest limit of the series so far. So replicas that
// are killed at one limit count once, and a kill below the use of its day does not count.
func (e *evaluation) killExcess(days *[history.DaysKept + 1]knownDay) (excess float64) {
	var highest memory.Bytes // limit of the series so far
	for i, k := range e.kills {
		if i > 0 && e.since(e.kills[i-1].Time)-e.since(k.Time) >= killHold {
			highest = 0
		}
		if age := e.daysSince(k.Time); age >= 0 && age < history.DaysKept {
			if known := max(days[age+1].used, days[age].used, highest); known > 0 {
				excess += float64(k.Limit.Minus(known)) * math.Exp2(-float64(age)/e.model.DayHalfLife)
			}
		}
		highest = max(highest, k.Limit)
	}
	return excess
}

// cost returns the cost per day of a limit, in bytes.
func (o *outlook) cost(limit float64) float64 { return limit + o.kill*o.kills(limit) }

// kills returns the expected kills per day at a limit.
func (o *outlook) kills(limit float64) float64 {
	kills := o.rate * o.records.exceedance(limit-o.top)
	for _, d := range o.days {
		if d.peak > limit {
			kills += d.chance
		}
	}
	return kills
}

// words returns a sentence that explains the limit: the margin above the peak, the expected kills, and what a limit
// 10 % lower would save and cost.
func (o *outlook) words(limit memory.Bytes, least string) string {
	lower, top := limit.Percent(90), memory.Bytes(o.top)
	kills := o.kills(float64(limit))
	more := o.kills(float64(lower)) - kills
	price, runs := memory.Bytes(o.kill*float64(o.hours)/history.HoursKept), ""
	if o.hours < history.HoursKept {
		runs = sprintf(", or %s while it runs, %d of %d hours", memory.Bytes(o.kill), o.hours, history.HoursKept)
	}
	return sprintf("%s is %s above %s of %s: %s kills are expected in 100 days like the last %d; "+
		"10 %% less would save %s and cost %s more, worth %s (posture: a kill is worth %s held for a day%s)", limit,
		limit.Minus(top), least, top, per100(kills), len(o.days), limit.Minus(lower), per100(more), memory.Bytes(o.kill*more),
		price, runs)
}

// per100 formats a number of kills per day as a number in 100 days.
func per100(rate float64) string { return sprintf("%.2g", 100*rate) }

// lomax is the Lomax distribution: exponential, with a mean estimated from shape values whose sum is scale.
type lomax struct{ shape, scale float64 }

// exceedance returns the probability of a value above x.
func (l lomax) exceedance(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return math.Pow(1+x/l.scale, -l.shape)
}

// space returns the margin at which one more byte costs what it saves, if exceeding the margin costs price.
func (l lomax) space(price float64) float64 {
	return max(0, l.scale*(math.Pow(price*l.shape/l.scale, 1/(l.shape+1))-1))
}
