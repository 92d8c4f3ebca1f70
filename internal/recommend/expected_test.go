// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// TestAnOperatorCanCheckALimit: the sentence about a limit has figures that follow from what is expected.
func TestAnOperatorCanCheckALimit(t *testing.T) {
	o := outlook{
		kill: float64(8 * gib), hours: history.HoursKept, top: float64(400 * mib), rate: 0.5,
		records: lomax{1, float64(100 * mib)},
		days:    []repeat{{float64(400 * mib), 0.5}, {float64(480 * mib), 0.25}, {float64(600 * mib), 0.25}},
	}
	// A record above 500Mi comes with 0.5 x 1 / (1 + 100 / 100), one above 450Mi with 0.5 x 1 / (1 + 50 / 100).
	const want = "500Mi is 100Mi above the last day's peak of 400Mi: 50 kills are expected in 100 days like the last 3; " +
		"10 % less would save 50Mi and cost 33 more, worth 2.7Gi (posture: a kill is worth 8Gi held for a day)"
	if got := o.words(500*mib, "the last day's peak"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h := history.New()
	now := feed(h, day, gib, flat(412*mib))
	got := Evaluate(Input{History: h, Policy: defaults, Current: sizeOf(gib, gib), Now: now})
	if says(got, "are expected") {
		t.Errorf("one day: %q", got.Reasons)
	}
}

// TestNoCheaperLimitIsLeftOut: of all limits that may be chosen, none costs less than the one that is. None is within
// the smallest margin of a day that may repeat.
func TestNoCheaperLimitIsLeftOut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 35))
	e := newEvaluation(Input{Policy: defaults})
	for seed := range 200 {
		o := outlook{
			kill: float64(gib) * (0.5 + 20*r.Float64()), top: float64(mib) * (20 + 2000*r.Float64()), rate: 0.96,
			records: lomax{3 + 20*r.Float64(), float64(mib) * (50 + 500*r.Float64())},
		}
		for range 20 {
			o.days = append(o.days, repeat{o.top * (0.3 + 2*r.Float64()), 0.05})
		}
		have := o.top * (0.5 + 3*r.Float64())
		total := func(limit float64) float64 {
			if limit < have {
				return o.cost(limit) + e.lowering(&o, have, limit)
			}
			return o.cost(limit)
		}
		best, _ := e.choose(&o, have)
		for limit := o.top * 1.05; limit < 6*o.top; limit += float64(mib) {
			beside := slices.ContainsFunc(o.days, func(d repeat) bool { return limit > 0.99*d.peak && limit < 1.05*d.peak })
			if math.Abs(limit-have) > have*0.11 && !beside && total(limit) < total(best)*0.9999 {
				t.Fatalf("seed %d: %v costs more than %v, at a limit of %v", seed, best, limit, have)
			}
		}
	}
}

// TestRoomIsWhereTheCostIsLeast: the closed form against a search.
func TestRoomIsWhereTheCostIsLeast(t *testing.T) {
	l := lomax{2.5, 40}
	cost := func(x float64) float64 { return x + 5000*l.exceedance(x) }
	best := 0.
	for x := 0.; x < 1000; x += 0.1 {
		if cost(x) < cost(best) {
			best = x
		}
	}
	if got := l.space(5000); math.Abs(got-best) > 0.2 {
		t.Errorf("room %v, a search finds %v", got, best)
	}
	if l.space(1) != 0 {
		t.Error("room although it costs more than it saves")
	}
}

// tenDays is a use of 400Mi with an hour of 3000Mi on each of the days given.
func tenDays(high ...int) func(time.Duration) memory.Bytes {
	return func(since time.Duration) memory.Bytes {
		if slices.Contains(high, int(since/day)) && since%day >= 10*time.Hour && since%day < 11*time.Hour {
			return 3000 * mib
		}
		return 400 * mib
	}
}

// afterTenDays is the limit that a price of a kill gives.
func afterTenDays(price float64, use func(time.Duration) memory.Bytes) memory.Bytes {
	h := history.New()
	now := feed(h, 10*day-5*time.Minute, 4*gib, use)
	policy := posed(memory.Bytes(price * float64(gib)))
	return Evaluate(Input{Policy: policy, History: h, Current: sizeOf(gib, 4*gib), Now: now}).Size.Limit
}

// TestAPeakIsWeighedByThePriceOfAKill: a high hour of two days ago is held where a kill is dear and given back where it
// is cheap; after steady days more is held where it is dear.
func TestAPeakIsWeighedByThePriceOfAKill(t *testing.T) {
	for _, c := range []struct {
		price    float64
		high     []int
		from, to memory.Bytes
	}{
		{1, []int{7}, 400 * mib, 800 * mib}, {50, []int{7}, 3000 * mib, 4500 * mib},
		{7, []int{4, 5, 6, 7}, 3000 * mib, 4100 * mib}, {1, nil, 400 * mib, 500 * mib},
	} {
		if got := afterTenDays(c.price, tenDays(c.high...)); got < c.from || got > c.to {
			t.Errorf("price %v, high on %v: %s, want %s to %s", c.price, c.high, got, c.from, c.to)
		}
	}
	if cheap, dear := afterTenDays(1, tenDays()), afterTenDays(50, tenDays()); cheap > dear {
		t.Errorf("%s at a price of 1, %s at 50", cheap, dear)
	}
}

// TestDaysThatFollowedADayLikeTheLastCountMost: five high days, and the last day is low. Where low days were followed
// by high ones a high one is expected, where they were followed by low ones it is not.
func TestDaysThatFollowedADayLikeTheLastCountMost(t *testing.T) {
	for _, c := range []struct {
		high     []int
		from, to memory.Bytes
	}{{[]int{0, 2, 4, 6, 8}, 3000 * mib, 4500 * mib}, {[]int{0, 1, 2, 3, 4}, 400 * mib, 1500 * mib}} {
		if got := afterTenDays(6, tenDays(c.high...)); got < c.from || got > c.to {
			t.Errorf("high on %v: %s, want %s to %s", c.high, got, c.from, c.to)
		}
	}
	m := DefaultModel()
	if m.similarity(500, 1000) != 1 || m.similarity(0, 1000) != 0 ||
		m.similarity(float64(2000*mib), float64(1000*mib)) > 0.05 {
		t.Error("a day that was lower may lead to the next; one that was twice as high, or is not known, does not")
	}
}

// TestAKillIsAnsweredWithWhatTheOwnerAsksFor: the first one of a container of ten days with factorPercent and the
// headroom of a guess, one at a higher limit with twice the limit.
func TestAKillIsAnsweredWithWhatTheOwnerAsksFor(t *testing.T) {
	for _, factor := range []int32{120, 150, 300} {
		for _, posture := range []memory.Bytes{Frugal, Balanced, Cautious} {
			p := with(func(p *Policy) { p.OOMFactorPercent, p.KillPrice = factor, posture })
			h, limit := history.New(), 2*gib
			now := feed(h, 10*day, limit, flat(1900*mib))
			var kills []memory.OOMKill
			for i := range 3 {
				now = now.Add(time.Minute)
				k := kill(now, limit)
				k.Proven = true
				kills = append(kills, k, k) // replicas that die together are one
				got := Evaluate(Input{
					Policy: p, History: h, Kills: kills, Current: sizeOf(limit, limit), LargestNode: 4096 * gib, Now: now,
				})
				asked := limit.Percent(factor)
				if i > 0 {
					asked = limit.Percent(max(factor, 200))
				}
				if got.Size.Limit != asked.Plus(2*asked.Percent(15)).CeilTo(mib) {
					t.Fatalf("%s, factorPercent %d, kill %d at %s: %s\n%s", posture, factor, i, limit, got.Summary,
						strings.Join(got.Reasons, "\n"))
				}
				limit = got.Size.Limit
			}
		}
	}
}

// TestUseBeyondTheLimitOfAKillIsLearnedOnce: the record of its hour has all of it.
func TestUseBeyondTheLimitOfAKillIsLearnedOnce(t *testing.T) {
	for used, want := range map[memory.Bytes]memory.Bytes{200 * mib: 100 * mib, 260 * mib: 40 * mib, 400 * mib: 0} {
		h := history.New()
		now := feed(h, 3*day, 300*mib, flat(200*mib)).Add(time.Hour)
		h.Add(sample("pod-0", now, used), 600*mib)
		e := newEvaluation(Input{Policy: defaults, History: h, Kills: []memory.OOMKill{kill(now, 300*mib)}, Now: now})
		e.judgeKills()
		days := e.knownDays()
		if got := e.killExcess(&days); math.Abs(got-float64(want)) > float64(mib) {
			t.Errorf("killed at 300Mi, %s used that day: %v beyond, want %s", used, got, want)
		}
	}
}

// TestALowerLimitIsTakenAfterDays: what a kill adds to the cost of lowering a limit is spread over the days for which
// the lower one has been enough.
func TestALowerLimitIsTakenAfterDays(t *testing.T) {
	for days, want := range map[time.Duration]Decision{3: Keep, 30: Decrease} {
		h := history.New()
		now := feed(h, days*day, 200*mib, flat(60*mib))
		got := Evaluate(Input{Policy: posed(Cautious), History: h, Current: sizeOf(63*mib, 200*mib), Now: now})
		if got.Decision != want {
			t.Errorf("200Mi after %d days of 60Mi: %s\n%s", days, got.Summary, strings.Join(got.Reasons, "\n"))
		}
	}
	var o outlook
	for age, peak := range []memory.Bytes{0, 100, 0, 100, 300} { // nothing is known of the day before yesterday
		o.known[age].peak = peak * mib
	}
	for limit, want := range map[memory.Bytes]int{50: 1, 100: 3, 200: 3, 300: 4} {
		if got := o.sufficientDays(float64(limit * mib)); got != want {
			t.Errorf("%dMi has been enough for %d days, want %d", limit, got, want)
		}
	}
}

// TestASmallLimitIsLowered: also where what is given back is a small part of a kill.
func TestASmallLimitIsLowered(t *testing.T) {
	for _, c := range []struct {
		posture       memory.Bytes
		use, have, to memory.Bytes
	}{
		{Frugal, 20 * mib, 64 * mib, 32 * mib}, {Balanced, 20 * mib, 64 * mib, 40 * mib},
		{Balanced, 30 * mib, 64 * mib, 50 * mib}, {Cautious, 60 * mib, 600 * mib, 200 * mib},
	} {
		h := history.New()
		now := feed(h, 10*day, c.have, flat(c.use))
		in := Input{Policy: posed(c.posture), History: h, Current: sizeOf(c.use, c.have), Now: now}
		if got := Evaluate(in); got.Decision != Decrease || got.Size.Limit > c.to {
			t.Errorf("%s, a use of %s: %s, want %s at most\n%s", c.posture, c.use, got.Summary, c.to,
				strings.Join(got.Reasons, "\n"))
		}
	}
}

// TestASteadyContainerHardlyGrowsOnTheThirdDay: the first guess raises a limit by a step at most.
func TestASteadyContainerHardlyGrowsOnTheThirdDay(t *testing.T) {
	for _, use := range []memory.Bytes{40 * mib, 100 * mib, 200 * mib, 480 * mib, 2 * gib} {
		h, limit := history.New(), use.Plus(max(use.Percent(15), 8*mib))
		now := feed(h, 50*time.Hour, limit, flat(use))
		got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(use, limit), Now: now})
		if got.Size.Limit > limit.Percent(115) {
			t.Errorf("a steady %s: %s", use, got.Summary)
		}
	}
}

// TestALimitThatItCostsTooMuchToLowerSaysSo: there is a reason with what would cost less.
func TestALimitThatItCostsTooMuchToLowerSaysSo(t *testing.T) {
	h := history.New()
	now := feed(h, 10*day, 540*mib, flat(412*mib))
	kept := 0
	for limit := 480 * mib; limit <= 600*mib; limit += 10 * mib {
		got := Evaluate(Input{Policy: posed(Cautious), History: h, Current: sizeOf(437*mib, limit), Now: now})
		if says(got, "was enough for 11 days, but saves less", "lowering a limit") {
			kept++
			if got.Size.Limit != limit {
				t.Errorf("kept at %s: %s", limit, got.Summary)
			}
		}
	}
	if kept == 0 {
		t.Error("no limit is kept by what it costs to lower it")
	}
}

// TestHeadroomOfTheOwnerIsHeld: it is what a limit is above the last day's peak at least, but for changes that are too
// small to be made.
func TestHeadroomOfTheOwnerIsHeld(t *testing.T) {
	h := history.New()
	now := feed(h, 10*day, 240*mib, flat(200*mib))
	for limit, want := range map[memory.Bytes]memory.Bytes{
		210 * mib: 300 * mib, 240 * mib: 300 * mib, 290 * mib: 290 * mib,
	} {
		p := with(func(p *Policy) { p.HeadroomPercent, p.MinMarginPercent = 50, 50 })
		if got := Evaluate(Input{Policy: p, History: h, Current: sizeOf(limit, limit), Now: now}); got.Size.Limit != want {
			t.Errorf("headroomPercent 50, a peak of 200Mi at %s: %s, want %s", limit, got.Summary, want)
		}
	}
}

// TestAProgramThatSeldomRunsHasFewRecords: a day of 24 hours can bring more of them than one of an hour; hours that are
// missing within a day may have been used. The present hour is one beside the 24 before it.
func TestAProgramThatSeldomRunsHasFewRecords(t *testing.T) {
	for name, c := range map[string]struct {
		used func(since time.Duration) bool
		want float64
	}{
		"always":              {func(time.Duration) bool { return true }, 24. / 25},
		"an hour a day":       {func(since time.Duration) bool { return since%day >= 23*time.Hour }, 2. / 3},
		"no data for 12 h":    {func(since time.Duration) bool { return since < 9*day || since >= 228*time.Hour }, 23. / 14},
		"half of each day":    {func(since time.Duration) bool { return since%day >= 12*time.Hour }, 13. / 14},
		"once in five days":   {func(since time.Duration) bool { return since%(5*day) >= 119*time.Hour }, 1. / 2},
		"an hour of each two": {func(since time.Duration) bool { return since/time.Hour%2 == 1 }, 13. / 14},
	} {
		h, now := history.New(), start
		for since := time.Duration(0); since < 10*day; since += 5 * time.Minute {
			if c.used(since) {
				now = start.Add(since)
				h.Add(sample("pod-0", now, 200*mib), gib)
			}
		}
		e := newEvaluation(Input{Policy: defaults, History: h, Now: now})
		if o := e.outlook(float64(200*mib), nil); math.Abs(o.rate-c.want) > 1e-9 {
			t.Errorf("%s: %v records a day, want %v", name, o.rate, c.want)
		}
	}
}

// TestAPeakOfAnotherLoadIsCalledSo: its cost was not compared.
func TestAPeakOfAnotherLoadIsCalledSo(t *testing.T) {
	h := history.New()
	now := feed(h, 10*day, 4*gib, func(since time.Duration) memory.Bytes {
		if since < 5*day {
			return 2 * gib
		}
		return 200 * mib
	})
	got := Evaluate(Input{Policy: posed(Cautious), History: h, Current: sizeOf(3*gib, 3*gib), Now: now})
	if got.Size.Limit >= 2*gib || says(got, "cost more than") ||
		!says(got, "the peak of 2Gi is not covered", "another load") {
		t.Errorf("%s\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
}

// TestAYoungProcessSaysNothingAgainstAnOldOne: a service keeps what it took, day and night for four weeks, and idles
// over the weekend after its pods were replaced on Friday evening. A week shows another load; a process that came down
// itself shows it in a day.
func TestAYoungProcessSaysNothingAgainstAnOldOne(t *testing.T) {
	const restart = 32*day + 12*time.Hour // start is a Monday at 8:00
	for name, c := range map[string]struct {
		busy, idle memory.Bytes
		replaced   bool
		after      time.Duration
		held       bool
	}{
		"3Gi, a weekend":          {3 * gib, gib, true, 60 * time.Hour, true},
		"800Mi, a weekend":        {800 * mib, 300 * mib, true, 60 * time.Hour, true},
		"1500Mi, Easter":          {1500 * mib, 200 * mib, true, 5 * day, true},
		"nine days":               {3 * gib, gib, true, 9 * day, false},
		"the process came down":   {3 * gib, gib, false, 60 * time.Hour, false},
		"an hour, it came down":   {3 * gib, gib, false, time.Hour, true},
		"a weekend, less falling": {3 * gib, 2900 * mib, true, 60 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			h, limit := history.New(), c.busy.Percent(130).CeilTo(mib)
			for since := time.Duration(0); since <= restart+c.after; since += 5 * time.Minute {
				now := start.Add(since)
				s := sample("pod-0", now, c.busy)
				s.Started = start
				if since >= restart {
					s = sample("pod-0", now, c.idle)
					s.Started = start
					if c.replaced {
						s = sample("pod-1", now, c.idle)
						s.Started = start.Add(restart)
					}
				}
				h.Add(s, limit)
				if since < restart || since%time.Hour != 0 {
					continue
				}
				got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(limit, limit), Now: now})
				limit = got.Size.Limit
			}
			if held := limit >= c.busy; held != c.held {
				t.Errorf("limit %s after %s in which %s of %s were used", limit, c.after, c.idle, c.busy)
			}
		})
	}
}

// TestARunHoldsMemoryWhileItRuns: a Job runs for 20 minutes each night, and its last of the month needs twelve times as
// much. What it holds costs an hour of a day, and a kill as much as ever.
func TestARunHoldsMemoryWhileItRuns(t *testing.T) {
	for _, month := range []int{28, 30, 31} {
		h, limit := history.New(), 8*gib
		for night := range 20 + month {
			need := 500 * mib
			if night == 20 {
				need = 6 * gib
			}
			began := start.Add(time.Duration(night) * day)
			now := began
			for ; now.Before(began.Add(20 * time.Minute)); now = now.Add(15 * time.Second) {
				s := sample(began.Format("run-0102"), now, need)
				s.Started = began
				h.Add(s, limit)
			}
			got := Evaluate(Input{
				Policy: defaults, History: h, Current: sizeOf(limit, limit), Now: now, Runs: []memory.Bytes{need},
			})
			if limit = got.Size.Limit; night >= 20 && limit < 6*gib {
				t.Fatalf("night %d of a month of %d: limit %s:\n%s", night-20, month, limit, strings.Join(got.Reasons, "\n"))
			}
		}
	}
}

// TestNoAmountWrapsAround: what is too large for a number of bytes is the largest one.
func TestNoAmountWrapsAround(t *testing.T) {
	if bytesOf(1e300) != memory.Max || bytesOf(float64(memory.Max)) != memory.Max || bytesOf(1.5) != 2 {
		t.Error(bytesOf(1e300), bytesOf(float64(memory.Max)), bytesOf(1.5))
	}
}

// TestNoLimitIsBelowTheLastDay, whatever a container did before.
func TestNoLimitIsBelowTheLastDay(t *testing.T) {
	old := 0
	for seed := range uint64(300) {
		s := tell(rand.New(rand.NewPCG(seed, 35)))
		s.traits.FollowsLimit = false
		got := s.evaluate()
		if got.Size.Limit == 0 {
			continue
		}
		perDay := int(day / s.every.Duration())
		if len(s.use) > 2*perDay {
			old++
		}
		if most := slices.Max(s.use[max(len(s.use)-perDay, 0):]); got.Size.Limit < most {
			t.Errorf("seed %d: %s, and %s was used within the last day", seed, got.Summary, most)
		}
	}
	if old < 50 {
		t.Errorf("only %d containers were old", old)
	}
}

// TestAKillNeverLowersALimit: with one kill more, or one at a higher limit, a limit is at least what it was.
func TestAKillNeverLowersALimit(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 36))
		s := tell(r)
		s.traits.FollowsLimit, s.killed = false, 0
		before := s.evaluate().Size.Limit
		for _, percent := range []int32{50, 100, 150, 300} {
			h := s
			h.last = s.current.Limit.Percent(percent)
			got := h.evaluate()
			if got.Size.Limit < before {
				t.Errorf("seed %d, killed at %s: %s, after %s", seed, h.last, got.Summary, before)
			}
			before = got.Size.Limit
		}
	}
}
