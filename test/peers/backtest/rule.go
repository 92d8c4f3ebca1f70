// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// rule is a proposal for the limit of a container older than two days: every hour the limit at which one day of holding
// it, plus the kills expected in that day times the price of a kill, costs least. It is not in memfit:
// docs/evidence/sizing-tried.md has its figures and what is missing.
//
// Kills come of days that repeat, most likely those that followed a day like the last 24 hours; and of records: the
// highest use of h hours is exceeded in the next hour with a chance of 1/(h+1), by about as much as this container
// exceeded its own records before. With a first guess of that, an excess has a Lomax distribution.
type rule struct {
	price float64 // of a kill, in bytes held for a day
	young *memfit // decides in the first two days

	began, hour int64 // Unix seconds of the first sample; the present hour since the epoch
	hours       [ruleHours + 1]cell
	low         int64 // of the present hour
	days        [ruleDays]cell
	// seen is how many records there were, or could have been; excess is by how many bytes in all they went beyond.
	seen, excess        float64
	killedAt, killLimit int64 // the last kill, and the highest limit of its row
}

// cell is an hour or a day since the epoch, with the highest and the lowest use in it, and the highest limit it was
// killed at.
type cell struct{ at, peak, low, killed int64 }

// The constants of the rule, chosen on tuning halves and on the generated sets with seeds 3 to 6.
const (
	ruleDays      = 35
	ruleHours     = 25 // the last 24, and the present one
	ruleFrom      = 2 * 86400
	ruleRecords   = 3.        // the first guess weighs as much as so many records of the container,
	ruleExcess    = 120 << 20 // which together went so far beyond
	ruleHalfLife  = 30.       // in days, of a day that repeats and of what was learned of records
	ruleLike      = 0.2       // days are alike when their peaks differ by about this share
	ruleLikeLeast = 20 << 20  // or by an amount that matters to no container
	ruleUnlike    = 0.2       // weight of a day that followed an unlike one
	ruleBeyond    = 1.15      // a kill is remembered as a use of so much of its limit
	// A limit is never chosen within ruleRoom of the last 24 hours' peak, because samples miss peaks between them; it is
	// kept until a third of that is left.
	ruleRoom, ruleRoomLeft = 0.05, 1. / 3
	// To lower a limit costs a part of it, and a part of a kill, because it may be one: what a canary costs. It keeps a
	// limit from following each change of use.
	ruleLowerLimit, ruleLowerKill = 0.05, 0.004
	ruleMost                      = 4 // times the limit of a kill is the most that the kill is answered with
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
	hour := &r.hours[r.hour%int64(len(r.hours))]
	hour.peak = max(hour.peak, use)
	if r.low == 0 || use < r.low {
		r.low = use
	}
	d := r.day(r.hour / 24)
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
	d := r.day(r.hour / 24)
	d.killed = max(d.killed, limit)
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
	r.hours[hour%int64(len(r.hours))] = cell{at: hour}
}

// learn takes from the hour that is over whether it had a record, and how far that was from any level known.
func (r *rule) learn() {
	today := r.hour / 24
	if d := r.day(today); r.low > 0 && (d.low == 0 || r.low < d.low) {
		d.low = r.low
	}
	peak := r.hours[r.hour%int64(len(r.hours))].peak
	top, hours := r.top(r.hour)
	switch {
	case hours == 0 || peak == 0:
	case peak <= top:
		r.seen += 1 / float64(hours+1)
	default:
		excess := float64(peak - top)
		for age := int64(1); age < ruleDays; age++ {
			if level := r.level(today - age); level > 0 {
				excess = min(excess, math.Abs(float64(peak)-level))
			}
		}
		r.seen++
		r.excess += excess
	}
	left := math.Exp2(-1. / 24 / ruleHalfLife)
	r.seen, r.excess = r.seen*left, r.excess*left
}

// top is the highest use of the hours before an hour, and how many of them there are.
func (r *rule) top(before int64) (top, hours int64) {
	for _, h := range r.hours {
		if h.peak > 0 && h.at < before && before-h.at <= ruleHours {
			top = max(top, h.peak)
			hours++
		}
	}
	return top, min(hours, 24)
}

func (r *rule) day(day int64) *cell {
	d := &r.days[day%ruleDays]
	if d.at != day {
		*d = cell{at: day}
	}
	return d
}

// level is the peak of a day, kills included; 0: not known.
func (r *rule) level(day int64) float64 {
	if day < 0 {
		return 0 // of a trace whose time begins at 0
	}
	if d := r.days[day%ruleDays]; d.at == day {
		return max(float64(d.peak), ruleBeyond*float64(d.killed))
	}
	return 0
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
	best := o.cheapest(float64(limit))
	if o.killed != nil {
		best = max(float64(limit), min(best, ruleMost*o.killLimit))
	}
	return int64(math.Ceil(best))
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
	if at.Unix()-r.killedAt < 86400 {
		o.top = max(o.top, ruleBeyond*float64(r.killLimit))
	}
	o.days = append(o.days, outlookDay{o.top, 1})
	today, total := r.hour/24, 1.
	for age := int64(1); age < ruleDays; age++ {
		d := outlookDay{r.level(today - age), math.Exp2(-float64(age) / ruleHalfLife)}
		if d.peak == 0 || float64(r.days[(today-age)%ruleDays].low) > o.top {
			continue // a day that never came down to the highest of now was another load
		}
		d.weight *= ruleUnlike + (1-ruleUnlike)*alike(r.level(today-age-1), o.top)
		o.days = append(o.days, d)
		total += d.weight
	}
	for i := range o.days {
		o.days[i].weight /= total
	}
	if r.killLimit > 0 && at.Unix()-r.killedAt < 3600 {
		o.killLimit = float64(r.killLimit)
		o.killed = &lomax{1, ruleExcess + max(o.killLimit-float64(top), 0)}
	}
	return o
}

// alike is how much a day before tells of today: 1 up to today's peak, less the higher it was, 0 when it is not known.
func alike(before, today float64) float64 {
	if before == 0 {
		return 0
	}
	far := max(math.Log((before+ruleLikeLeast)/(today+ruleLikeLeast))/ruleLike, 0)
	return math.Exp(-far * far / 2)
}

// cheapest is the limit of the least cost; changes that are too small to be made are left out.
func (o outlook) cheapest(have float64) float64 {
	floor := o.top * (1 + ruleRoom)
	best := have
	if have < o.top*(1+ruleRoom*ruleRoomLeft) {
		best = max(floor, have*raised)
	}
	least := o.cost(best)
	for _, candidate := range o.candidates(have) {
		candidate = max(candidate, floor)
		if math.Abs(candidate-have) < have*leastChange/100 {
			continue
		}
		cost := o.cost(candidate)
		if candidate < have {
			cost += ruleLowerLimit*have + ruleLowerKill*o.price
		}
		if cost < least {
			best, least = candidate, cost
		}
	}
	return best
}

// raised is the smallest raise that is made.
const raised = (100. + leastChange + 1) / 100

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
	all := []float64{o.top + o.records.headroom(o.price*o.rate), have * raised}
	if o.killed != nil {
		all = append(all, o.killLimit+o.killed.headroom(o.price*24))
	}
	for _, d := range o.days {
		all = append(all, d.peak)
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
