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

// TestNoGuessIsMoreThanThreeTimesTheLimitInForce: whatever is added to what was asked for and seen.
func TestNoGuessIsMoreThanThreeTimesTheLimitInForce(t *testing.T) {
	p := defaults
	for _, posture := range []Posture{Frugal, Balanced} {
		for limit := 16 * mib; limit <= 4*gib; limit = limit.Percent(137) {
			got := Evaluate(Input{
				Kills: []memory.OOMKill{kill(start, limit)}, Current: sizeOf(limit, limit), Policy: posed(posture),
				Now: start.Add(time.Second),
			})
			asked := max(limit.Percent(p.OOMFactorPercent), limit.Plus(p.OOMMinIncrease))
			room := 2 * max(asked.Percent(p.HeadroomPercent), 8*mib)
			if most := max(4*limit, asked.Plus(room)) + mib; got.Size.Limit > most || got.Size.Limit < asked {
				t.Errorf("%s, killed at %s: %s, want %s to %s", posture, limit, got.Summary, asked, most)
			}
		}
	}
}
