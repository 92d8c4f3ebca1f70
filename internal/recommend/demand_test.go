// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// sizedAfter feeds a history for a while and returns what Evaluate says at its end, for a container that has a limit of its own.
func sizedAfter(span time.Duration, have memory.Bytes, policy Policy, use func(time.Duration) memory.Bytes) Recommendation {
	h := history.New()
	now := feed(h, span, have, use)
	return Evaluate(Input{History: h, Policy: policy, Current: Size{have, have}, Now: now})
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
		"two hours":             {2 * time.Hour, Policy{}, flat(30 * mib), 155 * mib, 165 * mib},
		"two hours, frugal":     {2 * time.Hour, Policy{Posture: Frugal}, flat(30 * mib), 38 * mib, 39 * mib},
		"steady for half a day": {12 * time.Hour, Policy{}, flat(30 * mib), 38 * mib, 39 * mib},
		"burst, half a day":     {12 * time.Hour, Policy{}, burst, 155 * mib, 165 * mib},
		"burst, five days":      {5 * day, Policy{}, burst, 110 * mib, 116 * mib},
		"large, two hours":      {2 * time.Hour, Policy{}, flat(400 * mib), 460 * mib, 460 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			got := sizedAfter(c.span, gib, c.policy, c.use)
			if got.Size.Limit < c.atLeast || got.Size.Limit > c.atMost {
				t.Errorf("limit %s, want %s to %s:\n%s", got.Size.Limit, c.atLeast, c.atMost, strings.Join(got.Reasons, "\n"))
			}
		})
	}
}

func TestAContainerStillGrowingOnItsFirstDayGetsRoom(t *testing.T) {
	growing := func(since time.Duration) memory.Bytes { return 300*mib + memory.Bytes(since.Hours()*30)*mib }
	got := sizedAfter(8*time.Hour, 620*mib, Policy{}, growing) // at 540Mi, 30Mi an hour more
	if got.Decision != Raise || got.Size.Limit < 690*mib || !says(got, "still growing") {
		t.Errorf("got %s, want a raise before it is too late:\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
	got = sizedAfter(8*time.Hour, 620*mib, Policy{}, flat(540*mib))
	if got.Decision == Raise || says(got, "still growing") {
		t.Errorf("got %s for steady use", got.Summary)
	}
}

func TestAStepDownIsBelievedAfterDays(t *testing.T) {
	stepDown := func(since time.Duration) memory.Bytes {
		if since < 20*day {
			return 2 * gib
		}
		return 500 * mib
	}
	if got := sizedAfter(20*day+6*time.Hour, 3*gib, Policy{}, stepDown); got.Size.Limit < 2*gib {
		t.Errorf("hours after the step: %s; too soon", got.Summary)
	}
	if got := sizedAfter(26*day, 3*gib, Policy{}, stepDown); got.Size.Limit > 600*mib {
		t.Errorf("six days after the step: %s; want it to be believed", got.Summary)
	}
}

// A weekend is no reason to give up what weekdays need.
func TestAWeekendDoesNotLowerTheWeek(t *testing.T) {
	office := func(since time.Duration) memory.Bytes {
		if weekday := int(since/day) % 7; weekday < 5 && since%day > 8*time.Hour && since%day < 18*time.Hour {
			return 800 * mib
		}
		return 300 * mib
	}
	if got := sizedAfter(4*7*day-time.Hour, gib, Policy{}, office); got.Size.Limit < 900*mib { // Sunday night
		t.Errorf("on Sunday night: %s, want Monday's 800Mi held:\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
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
	for _, posture := range []Posture{Frugal, Balanced, Cautious} {
		limits = append(limits, sizedAfter(30*day, 8*gib, Policy{Posture: posture}, rare).Size.Limit)
	}
	if limits[0] > limits[1] || limits[1] >= limits[2] || limits[2] < 6*gib {
		t.Errorf("a rare burst to 6Gi ten days ago: limits %v; want Cautious to hold it and Balanced not", limits)
	}
}
