// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"testing"

	"github.com/memfit/memfit/internal/recommend"
)

// tenDays is a use of 400 MiB with an hour of 3000 MiB on each of the last days given.
func tenDays(high ...int) Series {
	s := Series{Name: "s"}
	for i := range int64(10 * 144) {
		use := 400 * mib
		for _, day := range high {
			if i/144 == int64(day) && i%144 >= 60 && i%144 < 66 {
				use = 3000 * mib
			}
		}
		s.Points = append(s.Points, Point{someDay.Unix() + i*600, use})
	}
	return s
}

// TestTheRuleWeighsAPeakByItsPrice: a high hour of two days ago is held where a kill is dear and given back where it is
// cheap; after two steady days more is held where it is dear.
func TestTheRuleWeighsAPeakByItsPrice(t *testing.T) {
	last := func(price float64, s Series) int64 {
		r := Simulate(s, newRule(price, recommend.Balanced), true)
		return r.Limits[len(r.Limits)-1] / mib
	}
	for _, c := range []struct {
		price    float64
		high     []int
		from, to int64
	}{
		{1, []int{7}, 400, 800}, {50, []int{7}, 3000, 4500}, {7, []int{4, 5, 6, 7}, 3000, 4000}, {1, nil, 400, 500},
	} {
		if got := last(c.price, tenDays(c.high...)); got < c.from || got > c.to {
			t.Errorf("price %v, high on %v: %d MiB, want %d to %d", c.price, c.high, got, c.from, c.to)
		}
	}
	if cheap, dear := last(1, tenDays()), last(50, tenDays()); cheap > dear {
		t.Errorf("%d MiB at a price of 1, %d at 50", cheap, dear)
	}
}

// TestDaysThatFollowedADayLikeTodayCountMost: five high days, and the last day is low. Where low days were followed by
// high ones a high one is expected, where they were followed by low ones it is not.
func TestDaysThatFollowedADayLikeTodayCountMost(t *testing.T) {
	for _, c := range []struct {
		high     []int
		from, to int64
	}{{[]int{0, 2, 4, 6, 8}, 3000, 4500}, {[]int{0, 1, 2, 3, 4}, 400, 1500}} {
		r := Simulate(tenDays(c.high...), newRule(6, recommend.Balanced), true)
		if got := r.Limits[len(r.Limits)-1] / mib; got < c.from || got > c.to {
			t.Errorf("high on %v: %d MiB, want %d to %d", c.high, got, c.from, c.to)
		}
	}
	if alike(500, 1000) != 1 || alike(0, 1000) != 0 || alike(float64(2000*mib), float64(1000*mib)) > 0.05 {
		t.Error("a day before that was lower may lead to today's; one that was twice as high, or is not known, does not")
	}
}

// TestTheRuleTakesATraceOfTheFirstDays: days before the first one are not known.
func TestTheRuleTakesATraceOfTheFirstDays(t *testing.T) {
	s := tenDays(1, 3, 5, 7)
	want := Simulate(s, newRule(6, recommend.Balanced), true).Limits
	for i := range s.Points {
		s.Points[i].Unix -= someDay.Unix() - 86400
	}
	if got := Simulate(s, newRule(6, recommend.Balanced), true).Limits; !slices.Equal(got, want) {
		t.Errorf("limits %v, want %v", got, want)
	}
}

// TestTheRuleIsMemfitInTheFirstTwoDays: or it would have no evidence.
func TestTheRuleIsMemfitInTheFirstTwoDays(t *testing.T) {
	s := tenDays(0, 1)
	s.Points = s.Points[:2*144-1]
	want := Simulate(s, newMemfit(recommend.Balanced), false)
	if got := Simulate(s, newRule(7, recommend.Balanced), false); got.Slack != want.Slack || got.Kills != want.Kills {
		t.Errorf("%d kills and a slack of %v, want %d and %v", got.Kills, got.Slack, want.Kills, want.Slack)
	}
}

// TestAKillInARowMakesTheStepLarger: what it wanted beyond its limit is of the order of what it went beyond already.
func TestAKillInARowMakesTheStepLarger(t *testing.T) {
	r, limit := newRule(7, recommend.Balanced), 500*mib
	s := tenDays()
	for _, p := range s.Points {
		r.Observe(unixTime(p.Unix), p.Bytes, limit)
	}
	at, step := s.Points[len(s.Points)-1].Unix, int64(0)
	for i := range int64(4) {
		now := unixTime(at + 60*i)
		r.Killed(now, limit)
		next := r.Limit(now, limit)
		if next-limit <= step {
			t.Fatalf("kill %d at %d MiB: %d MiB more, after %d", i, limit/mib, (next-limit)/mib, step/mib)
		}
		limit, step = next, next-limit
	}
}

// TestHeadroomIsWhereTheCostIsLeast: the closed form against a search.
func TestHeadroomIsWhereTheCostIsLeast(t *testing.T) {
	l := lomax{2.5, 40}
	cost := func(x float64) float64 { return x + 5000*l.beyond(x) }
	best := 0.
	for x := 0.; x < 1000; x += 0.1 {
		if cost(x) < cost(best) {
			best = x
		}
	}
	if got := l.headroom(5000); math.Abs(got-best) > 0.2 {
		t.Errorf("headroom %v, a search finds %v", got, best)
	}
	if l.headroom(1) != 0 {
		t.Error("headroom although it costs more than it saves")
	}
}
