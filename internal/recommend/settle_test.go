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
// are one observation: the answer is that to one. After two hours less than three times the need is recommended.
func TestASmallNeedSettlesWithoutADay(t *testing.T) {
	const need = 60 * mib
	settle := func(replicas int) (answer, settled memory.Bytes) {
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
				History: h, Kills: kills, Current: sizeOf(32*mib, limit), InUse: need, InUseSeen: now, Now: now,
			})
			if got.Decision == Increase || got.Decision == Decrease {
				limit = got.Size.Limit
			}
			if answer == 0 {
				answer = limit
			}
			if limit < need.Percent(115) {
				t.Fatalf("%s after the kill: %s", since, got.Summary)
			}
		}
		return answer, limit
	}
	one, settled := settle(1)
	if together, then := settle(20); together != one || then != settled {
		t.Errorf("20 kills together: %s, then %s; one kill: %s, then %s", together, then, one, settled)
	}
	if settled >= 3*need {
		t.Errorf("after two hours %s for a need of %s, want less than 3 times as much", settled, need)
	}
}
