// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// rule is what memfit might do instead of its rules for containers that are older than two days: every hour the limit
// at which one day of holding it, plus the kills expected in that day times the price of a kill, costs least. It is not
// in memfit: docs/evidence/sizing-tried.md says why.
//
// Kills come of days that repeat, and of records: the highest use of h hours is exceeded in the next hour with a chance
// of 1/(h+1), by about as much as this container has exceeded its own records before, for which the constants below are
// the first guess. What an exceedance is distributed like is then a Lomax distribution.
type rule struct {
	price float64 // of a kill, in bytes held for a day
	young *memfit // decides in the first two days

	began, hour int64 // Unix seconds of the first sample; the present hour since the epoch
	hours       [24]cell
	low         int64 // of the present hour
	days        [ruleDays]cell
	// seen is how many records there were, or could have been; excess is by how many bytes in all they went beyond.
	seen, excess        float64
	killedAt, killLimit int64 // the last kill, and the highest limit of its row
}

// cell is an hour or a day since the epoch, with the highest and the lowest use in it.
type cell struct{ at, peak, low int64 }

// The constants of the rule, chosen on tuning halves: those of all sets, and of the generated ones with seeds 3 to 6.
const (
	ruleDays     = 35
	ruleFrom     = 2 * 86400
	ruleExcess   = 60 << 20 // the first guess of an excess
	ruleRecords  = 1.5      // it weighs as much as so many records of the container
	ruleHalfLife = 30.      // in days, of a day that repeats
	ruleBeyond   = 1.15     // a kill is remembered as a use of so much of its limit
	// To lower a limit costs a part of it, and a part of a kill, because it may be one: what a canary costs. It keeps a
	// limit from following each change of use.
	ruleLowerLimit, ruleLowerKill = 0.05, 0.004
)

// newRule is the rule at a price in GiB-days; in the first two days it is memfit at a posture.
func newRule(price float64, young recommend.Posture) *rule {
	return &rule{price: price * float64(memory.GiB), young: newMemfit(young)}
}

func (r *rule) Observe(at time.Time, use, limit int64) {
	r.advance(at)
	if at.Unix()-r.began < ruleFrom {
		r.young.Observe(at, use, limit)
	}
	hour := &r.hours[r.hour%24]
	hour.peak = max(hour.peak, use)
	if r.low == 0 || use < r.low {
		r.low = use
	}
	d := r.day(at.Unix() / 86400)
	d.peak = max(d.peak, use)
}

func (r *rule) Killed(at time.Time, limit int64) {
	r.advance(at)
	r.young.Killed(at, limit)
	if at.Unix()-r.killedAt >= 3600 {
		r.killLimit = 0
	}
	top, _ := r.top(r.hour + 1)
	r.excess += float64(max(limit-max(top, r.killLimit), 0))
	r.killedAt, r.killLimit = at.Unix(), max(r.killLimit, limit)
	d := r.day(at.Unix() / 86400)
	d.peak = max(d.peak, int64(float64(limit)*ruleBeyond))
}

// advance closes the hours that are over.
func (r *rule) advance(at time.Time) {
	hour := at.Unix() / 3600
	switch {
	case r.began == 0:
		r.began = at.Unix()
	case hour == r.hour:
		return
	default:
		r.learn()
	}
	r.hour, r.low = hour, 0
	r.hours[hour%24] = cell{at: hour}
}

// learn takes from the hour that is over whether it had a record, and how far that was from any level known.
func (r *rule) learn() {
	today := r.hour / 24
	if d := r.day(today); r.low > 0 && (d.low == 0 || r.low < d.low) {
		d.low = r.low
	}
	peak := r.hours[r.hour%24].peak
	top, hours := r.top(r.hour)
	switch {
	case hours == 0:
	case peak <= top:
		r.seen += 1 / float64(hours+1)
	default:
		excess := peak - top
		for _, d := range r.days {
			if d.peak > 0 && d.at < today && today-d.at < ruleDays {
				excess = min(excess, max(peak-d.peak, d.peak-peak))
			}
		}
		r.seen++
		r.excess += float64(excess)
	}
}

// top is the highest use of the 24 hours before an hour, and how many of them there are.
func (r *rule) top(before int64) (top, hours int64) {
	for _, h := range r.hours {
		if h.peak > 0 && h.at < before && before-h.at <= 24 {
			top = max(top, h.peak)
			hours++
		}
	}
	return top, hours
}

func (r *rule) day(day int64) *cell {
	d := &r.days[day%ruleDays]
	if d.at != day {
		*d = cell{at: day}
	}
	return d
}

func (r *rule) Limit(at time.Time, limit int64) int64 {
	r.advance(at)
	if at.Unix()-r.began < ruleFrom {
		return r.young.Limit(at, limit)
	}
	o := r.outlook(at)
	if o.top == 0 {
		return 0
	}
	best, have := o.top, float64(limit)
	if have >= o.top {
		best = have
	}
	least := o.cost(best)
	for _, candidate := range o.candidates(have) {
		if math.Abs(candidate-have) < have*leastChange/100 {
			continue
		}
		cost := o.cost(candidate)
		if candidate < have {
			cost += ruleLowerLimit*have + ruleLowerKill*r.price
		}
		if cost < least {
			best, least = candidate, cost
		}
	}
	return int64(best)
}

// outlook is what is expected of the next day.
type outlook struct {
	price, top float64
	records    lomax
	rate       float64 // records a day
	days       []outlookDay
	killed     *lomax // what a kill of the last hour wanted beyond its limit
	killLimit  float64
}

type outlookDay struct{ peak, weight float64 }

func (r *rule) outlook(at time.Time) outlook {
	top, hours := r.top(r.hour + 1)
	o := outlook{
		price: r.price, top: float64(top), rate: 24 / float64(hours+1),
		records: lomax{ruleRecords + r.seen, ruleExcess + r.excess},
	}
	today, total := at.Unix()/86400, 0.
	for _, d := range r.days {
		age := today - d.at
		if d.peak == 0 || age < 0 || age >= ruleDays || age > 0 && d.low > top {
			continue // a day that never came down to the highest of now was another load
		}
		weight := math.Exp2(-float64(age) / ruleHalfLife)
		o.days = append(o.days, outlookDay{float64(d.peak), weight})
		total += weight
	}
	for i := range o.days {
		o.days[i].weight /= total
	}
	if r.killLimit > 0 && at.Unix()-r.killedAt < 3600 {
		o.killLimit = float64(r.killLimit)
		o.killed = &lomax{ruleRecords, ruleExcess + max(o.killLimit-o.top, 0)}
	}
	return o
}

// cost of holding a limit for a day, in bytes.
func (o outlook) cost(limit float64) float64 {
	kills := o.rate * o.records.beyond(limit-o.top)
	for _, d := range o.days {
		if d.peak > limit {
			kills += d.weight
		}
	}
	if o.killed != nil {
		kills += 24 * o.killed.beyond(limit-o.killLimit)
	}
	return limit + o.price*kills
}

// candidates are the limits at which a cost can be least.
func (o outlook) candidates(have float64) []float64 {
	all := []float64{o.top + o.records.headroom(o.price*o.rate), have * (100 + leastChange + 1) / 100}
	if o.killed != nil {
		all = append(all, o.killLimit+o.killed.headroom(o.price*24))
	}
	for _, d := range o.days {
		all = append(all, d.peak)
	}
	for i := range all {
		all[i] = max(all[i], o.top)
	}
	return all
}

// lomax is an exponential distribution whose mean is known from a few values: shape of them, scale in all.
type lomax struct{ shape, scale float64 }

// beyond is the chance of more than x.
func (l lomax) beyond(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return math.Pow(1+x/l.scale, -l.shape)
}

// headroom is the x at which one byte more costs what it saves.
func (l lomax) headroom(price float64) float64 {
	return max(0, l.scale*(math.Pow(price*l.shape/l.scale, 1/(l.shape+1))-1))
}
