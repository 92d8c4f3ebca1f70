// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// TestASmallNeedSettlesWithoutADay: replicas need 60Mi and are OOM-killed in the same second under 32Mi. Twenty of them
// are one observation: the answer is that to one. It is at most four times the limit, nothing from then on is three
// times the need, and nothing has to be lowered for that, which would wait for a day.
func TestASmallNeedSettlesWithoutADay(t *testing.T) {
	const need = 60 * mib
	settle := func(replicas int) (answer, most memory.Bytes) {
		h, limit := history.New(), 32*mib
		var kills []memory.OOMKill
		for range replicas {
			kills = append(kills, kill(start, limit))
		}
		for since := time.Duration(0); since <= 2*time.Hour; since += 15 * time.Second {
			now := start.Add(since)
			if since > 0 {
				h.Add(sample("a", now, need), limit)
			}
			got := Evaluate(Input{
				Policy:  defaults,
				History: h, Kills: kills, Current: sizeOf(32*mib, limit), InUse: need, InUseSeen: now, Now: now,
			})
			if got.Decision == Increase {
				limit = got.Size.Limit
			}
			if answer == 0 {
				answer = limit
			}
			if most = max(most, limit); limit < need.Percent(115) {
				t.Fatalf("%s after the kill: %s", since, got.Summary)
			}
		}
		return answer, most
	}
	one, most := settle(1)
	if together, then := settle(20); together != one || then != most {
		t.Errorf("20 kills together: %s, then %s; one kill: %s, then %s", together, then, one, most)
	}
	if one > 4*32*mib || most >= 3*need {
		t.Errorf("the answer is %s, later %s for a need of %s; want at most 128Mi and then less than 180Mi", one, most, need)
	}
}

// TestAKillIsAnsweredWithAtMostFourTimesTheLimitInForce: with every posture, at any age and limit, however many die and
// whatever the owner asks for; or with what a container gets without a kill.
func TestAKillIsAnsweredWithAtMostFourTimesTheLimitInForce(t *testing.T) {
	quarter := func(limit memory.Bytes) func(time.Duration) memory.Bytes { return flat(limit / 4) }
	for _, posture := range []memory.Bytes{Frugal, Balanced, Cautious} {
		for _, age := range []time.Duration{0, 20 * time.Minute, 90 * time.Minute, 9 * day} {
			for limit := 4 * mib; limit <= 4*gib; limit = limit.Percent(137) {
				for _, least := range []memory.Bytes{mib, 64 * mib, gib} {
					h, now := history.New(), start
					if age > 0 {
						now = feed(h, age, limit, quarter(limit))
					}
					p := posed(posture)
					p.OOMMinIncrease = least
					in := Input{History: h, Policy: p, Current: sizeOf(limit/2, limit), Now: now.Add(time.Second)}
					most := max(4*limit, Evaluate(in).Size.Limit)
					in.Kills = []memory.OOMKill{kill(now, limit), kill(now, limit)}
					got := Evaluate(in)
					asked := min(max(limit.Percent(p.OOMFactorPercent), limit.Plus(least)), 4*limit)
					if got.Size.Limit > most+mib || got.Size.Limit < asked {
						t.Errorf("%s, killed at %s after %s: %s, want %s to %s", posture, limit, age, got.Summary, asked, most)
					}
				}
			}
		}
	}
}

// TestUseIsNoGuess: a limit that is below what was used a day before is answered with what holds that.
func TestUseIsNoGuess(t *testing.T) {
	for posture, most := range map[memory.Bytes]memory.Bytes{Frugal: 925 * mib, Balanced: 925 * mib, Cautious: 990 * mib} {
		h := history.New()
		now := feed(h, 30*time.Hour, gib, flat(800*mib))
		got := Evaluate(Input{
			History: h, Kills: []memory.OOMKill{kill(now, 64*mib)}, Policy: posed(posture), Current: sizeOf(64*mib, 64*mib),
			Now: now.Add(time.Second),
		})
		if got.Size.Limit < 800*mib || got.Size.Limit > most {
			t.Errorf("%s: %s, want 800Mi to %s", posture, got.Summary, most)
		}
	}
}
