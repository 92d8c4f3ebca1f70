// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// sizedAfter feeds a history for a while and returns the result of Evaluate at its end, for a container that has a
// limit of its own.
func sizedAfter(
	span time.Duration, have memory.Bytes, policy Policy, use func(time.Duration) memory.Bytes,
) Recommendation {
	h := history.New()
	now := feed(h, span, have, use)
	return Evaluate(Input{History: h, Policy: policy, Current: sizeOf(have, have), Now: now})
}

func TestYoungContainersGetRoomForBursts(t *testing.T) {
	burst := func(since time.Duration) memory.Bytes {
		if since > time.Hour && since < 70*time.Minute {
			return 100 * mib
		}
		return 30 * mib
	}
	for name, c := range map[string]struct {
		span    time.Duration
		policy  Policy
		use     func(time.Duration) memory.Bytes
		atLeast memory.Bytes
		atMost  memory.Bytes
	}{
		"an hour":               {time.Hour, defaults, flat(30 * mib), 155 * mib, 165 * mib},
		"two hours":             {2 * time.Hour, defaults, flat(30 * mib), 130 * mib, 140 * mib},
		"two hours, frugal":     {2 * time.Hour, posed(Frugal), flat(30 * mib), 75 * mib, 80 * mib},
		"nine hours, frugal":    {9 * time.Hour, posed(Frugal), flat(30 * mib), 38 * mib, 39 * mib},
		"steady for half a day": {12 * time.Hour, defaults, flat(30 * mib), 70 * mib, 80 * mib},
		"steady for two days":   {48 * time.Hour, defaults, flat(30 * mib), 40 * mib, 44 * mib},
		"steady for five weeks": {35 * day, defaults, flat(30 * mib), 32 * mib, 36 * mib},
		"burst, half a day":     {12 * time.Hour, defaults, burst, 115 * mib, 130 * mib},
		"burst, five days":      {5 * day, defaults, burst, 105 * mib, 106 * mib},
		"large, two hours":      {2 * time.Hour, defaults, flat(400 * mib), 460 * mib, 465 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			got := sizedAfter(c.span, gib, c.policy, c.use)
			if got.Size.Limit < c.atLeast || got.Size.Limit > c.atMost {
				t.Errorf("limit %s, want %s to %s:\n%s", got.Size.Limit, c.atLeast, c.atMost, strings.Join(got.Reasons, "\n"))
			}
		})
	}
}

// TestTheHazardCurveFalls: the headroom for bursts not seen yet is 128Mi at first, falls with every hour, and is larger
// and longer there for a posture to which a kill is dearer.
func TestTheHazardCurveFalls(t *testing.T) {
	room := func(posture memory.Bytes, age time.Duration, use memory.Bytes) memory.Bytes {
		h := history.New()
		feed(h, age, gib, flat(use))
		e := newEvaluation(Input{History: h, Policy: posed(posture), Now: start.Add(age)})
		room, _ := e.burstSpace(use)
		return room
	}
	if got := room(Balanced, time.Hour, 30*mib); got != 128*mib {
		t.Errorf("in the first hour: %s, want 128Mi", got)
	}
	for _, use := range []memory.Bytes{10 * mib, 100 * mib, 390 * mib, 500 * mib} {
		before := memory.Bytes(math.MaxInt64)
		for age := time.Hour; age <= 50*time.Hour; age += 7 * time.Hour {
			frugal, got, cautious := room(Frugal, age, use), room(Balanced, age, use), room(Cautious, age, use)
			if got > before || frugal > got || got > cautious {
				t.Errorf("%s after %s: %s before, then %s, %s and %s by posture", use, age, before, frugal, got, cautious)
			}
			if age < 48*time.Hour && (got == before || got == 0) || age > 48*time.Hour && cautious > 0 {
				t.Errorf("%s after %s: %s before, %s now, %s with Cautious", use, age, before, got, cautious)
			}
			before = got
		}
	}
}

// TestTheLimitOfAYoungContainerFallsInFewSteps: its space for bursts falls with every hour, and each step costs a
// canary.
func TestTheLimitOfAYoungContainerFallsInFewSteps(t *testing.T) {
	h, limit, steps, kept := history.New(), gib, 0, 0
	for since := time.Duration(0); since < 2*day; since += 5 * time.Minute {
		h.Add(sample("pod-0", start.Add(since), 30*mib), limit)
		if since == 0 || since%time.Hour != 0 {
			continue
		}
		got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(limit, limit), Now: start.Add(since)})
		if says(got, "a young container's limit is lowered by at least 28Mi") {
			kept++
		}
		if now := got.Size.Limit; now < limit {
			if now > limit-28*mib {
				t.Errorf("after %s: %s", since, got.Summary)
			}
			limit, steps = now, steps+1
		}
	}
	if steps > 6 || kept == 0 || limit > 66*mib {
		t.Errorf("%d steps down to %s, kept %d times", steps, limit, kept)
	}
}

// hourly lets memfit size a container once an hour, from a first limit of 1.2 times what it used in its first hour, and
// returns the times at which use went above the limit.
func hourly(span time.Duration, use func(time.Duration) memory.Bytes) (above []time.Duration, limit memory.Bytes) {
	h := history.New()
	limit = max(64*mib, use(time.Hour).Percent(120))
	for since := time.Duration(0); since <= span; since += 5 * time.Minute {
		b := use(since)
		if b > limit {
			above = append(above, since)
			b = limit
		}
		h.Add(sample("pod-0", start.Add(since), b), limit)
		if since%time.Hour == 0 && since > 0 {
			got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(limit, limit), Now: start.Add(since)})
			if got.Decision == Increase || got.Decision == Decrease {
				limit = got.Size.Limit
			}
		}
	}
	return above, limit
}

// TestThePriceOfAKillMovesALargeYoungContainer: in its first two days, as later. Balanced has its headroom.
func TestThePriceOfAKillMovesALargeYoungContainer(t *testing.T) {
	for _, use := range []memory.Bytes{450 * mib, 4 * gib} {
		h := history.New()
		now := feed(h, 7*time.Hour, 8*gib, flat(use))
		limit := func(posture memory.Bytes) memory.Bytes {
			return Evaluate(Input{Policy: posed(posture), History: h, Now: now}).Size.Limit
		}
		held := use.Percent(115)
		if got := limit(Balanced); got < held || got > held+8*mib || limit(Frugal) != got {
			t.Errorf("%s: Frugal %s, Balanced %s, want %s", use, limit(Frugal), got, held)
		}
		if got := limit(Cautious); got < use.Percent(122) || got > use.Percent(133) {
			t.Errorf("%s: Cautious %s, want about a quarter more", use, got)
		}
	}
}

func TestAContainerStillGrowingIsAheadOfItsUse(t *testing.T) {
	growing := func(from, anHour memory.Bytes) func(time.Duration) memory.Bytes {
		return func(since time.Duration) memory.Bytes { return from + memory.Bytes(since.Hours()*float64(anHour)) }
	}
	for name, use := range map[string]func(time.Duration) memory.Bytes{
		"a small leak":         growing(40*mib, 8*mib),
		"a fast one":           growing(70*mib, 45*mib),
		"a large and slow one": growing(600*mib, 25*mib),
		"a cache that fills": func(since time.Duration) memory.Bytes {
			return 300*mib - memory.Bytes(210*math.Exp(-since.Hours()/3))*mib
		},
		"steps every 3 hours": func(since time.Duration) memory.Bytes {
			return 40*mib + memory.Bytes(since/(3*time.Hour))*18*mib
		},
	} {
		t.Run(name, func(t *testing.T) {
			if above, limit := hourly(14*time.Hour, use); len(above) > 0 {
				t.Errorf("use went above the limit %d times, first after %s; last limit %s", len(above), above[0], limit)
			}
		})
	}
}

func TestRoomForTheNextStepIsGivenBack(t *testing.T) {
	oneStep := func(since time.Duration) memory.Bytes {
		if since < 7*time.Hour {
			return 60 * mib
		}
		return 130 * mib
	}
	got := sizedAfter(8*time.Hour, 140*mib, defaults, oneStep)
	if got.Size.Limit < 195*mib || !says(got, "record 130Mi", "for the next step") {
		t.Errorf("an hour after a step of 70Mi: %s; want room for another:\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
	if got := sizedAfter(30*time.Hour, 300*mib, defaults, oneStep); got.Size.Limit > 153*mib {
		t.Errorf("a day later: %s; want hardly more than the headroom:\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
}

// TestALargeContainerIsNotRaisedForItsRecord: its headroom holds the next step. A raise for the record alone, made
// large enough for minChangePercent, would stay for months.
func TestALargeContainerIsNotRaisedForItsRecord(t *testing.T) {
	settled := func(since time.Duration) memory.Bytes {
		if since < 10*time.Hour {
			return 2000 * mib
		}
		return 1900 * mib
	}
	if got := sizedAfter(40*time.Hour, 2200*mib, defaults, settled); got.Decision != Keep || got.Size.Limit != 2200*mib {
		t.Errorf("a limit 10 %% above yesterday's record: %s\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
}

// A change below minChangePercent is not worth a disruption, until it is all that is left.
func TestARaiseIsNotHeldBackUntilNothingIsLeft(t *testing.T) {
	if got := sizedAfter(30*time.Hour, 430*mib, defaults, flat(400*mib)); got.Decision != Keep {
		t.Errorf("30Mi of 60Mi headroom left: %s", got.Summary)
	}
	if got := sizedAfter(30*time.Hour, 430*mib, defaults, flat(412*mib)); got.Decision != Increase ||
		got.Size.Limit < 473*mib || !says(got, "only 18Mi of the limit left") {
		t.Errorf("18Mi of 62Mi headroom left: %s; want a raise that minChangePercent lets through", got.Summary)
	}
	grewBy24 := func(since time.Duration) memory.Bytes {
		if since < 29*time.Hour {
			return 400 * mib
		}
		return 424 * mib
	}
	if got := sizedAfter(30*time.Hour, 446*mib, defaults, grewBy24); got.Decision != Increase {
		t.Errorf("22Mi of 63Mi headroom left, and 24Mi more in the last hour: %s", got.Summary)
	}
	if got := sizedAfter(30*time.Hour, 450*mib, defaults, grewBy24); got.Decision != Keep {
		t.Errorf("26Mi of 63Mi headroom left, and 24Mi more in the last hour: %s", got.Summary)
	}
}

func TestAStepDownIsBelievedAfterDays(t *testing.T) {
	stepDown := func(since time.Duration) memory.Bytes {
		if since < 20*day {
			return 2 * gib
		}
		return 500 * mib
	}
	if got := sizedAfter(20*day+6*time.Hour, 3*gib, defaults, stepDown); got.Size.Limit < 2*gib {
		t.Errorf("hours after the step: %s; too soon", got.Summary)
	}
	if got := sizedAfter(26*day, 3*gib, defaults, stepDown); got.Size.Limit > 600*mib {
		t.Errorf("six days after the step: %s; want it to be believed", got.Summary)
	}
}

// After a weekend, what weekdays need is kept.
func TestAWeekendDoesNotLowerTheWeek(t *testing.T) {
	office := func(since time.Duration) memory.Bytes {
		if weekday := int(since/day) % 7; weekday < 5 && since%day > 8*time.Hour && since%day < 18*time.Hour {
			return 800 * mib
		}
		return 300 * mib
	}
	if got := sizedAfter(4*7*day-time.Hour, gib, defaults, office); got.Size.Limit < 840*mib { // Sunday night
		t.Errorf("on Sunday night: %s, want Monday's 800Mi held:\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
}

// TestAHigherPriceNeverGivesALowerLimit: at any age and use, of steady and of bursting containers, with and without a
// kill; so that an owner's own price lies between the postures.
func TestAHigherPriceNeverGivesALowerLimit(t *testing.T) {
	prices := []memory.Bytes{gib, Frugal, 5 * gib, Balanced, 20 * gib, 50 * gib, Cautious, 1024 * gib}
	between := 0
	for use := 20 * mib; use <= 8*gib; use *= 5 {
		for every, times := range map[time.Duration]memory.Bytes{time.Hour: 1, 7 * time.Hour: 2, 31 * time.Hour: 3} {
			bursting := func(since time.Duration) memory.Bytes {
				if since > time.Hour && since%every < 10*time.Minute {
					return use * times
				}
				return use
			}
			for _, age := range []time.Duration{time.Hour, 5 * time.Hour, 40 * time.Hour, 3 * day, 20 * day} {
				h := history.New()
				now := feed(h, age, 64*gib, bursting)
				for _, kills := range [][]memory.OOMKill{nil, {kill(now.Add(-20*time.Minute), use*times)}} {
					var before memory.Bytes
					for i, price := range prices {
						got := Evaluate(Input{History: h, Kills: kills, Policy: posed(price), LargestNode: 256 * gib, Now: now})
						if got.Size.Limit < before || before == 0 && i > 0 {
							t.Errorf("%s used, %d-fold every %s, at %s, %d kills: %s at a price of %s, %s at the one below", use, times,
								every, age, len(kills), got.Summary, price, before)
						}
						if price == 20*gib && got.Size.Limit > before {
							between++
						}
						before = got.Size.Limit
					}
				}
			}
		}
	}
	if between < 20 {
		t.Errorf("20Gi gives more than Balanced %d times only", between)
	}
}

func TestPosturesAreOrdered(t *testing.T) {
	rare := func(since time.Duration) memory.Bytes {
		if since > 20*day && since < 20*day+time.Hour {
			return 6 * gib
		}
		return gib
	}
	var limits []memory.Bytes
	for _, posture := range []memory.Bytes{Frugal, Balanced, Cautious} {
		limits = append(limits, sizedAfter(30*day, 8*gib, posed(posture), rare).Size.Limit)
	}
	if limits[0] > limits[1] || limits[1] >= limits[2] || limits[2] < 6*gib {
		t.Errorf("a rare burst to 6Gi ten days ago: limits %v; want Cautious to hold it and Balanced not", limits)
	}
}
