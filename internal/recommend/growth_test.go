// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
)

// crashLoop plays a container that takes need at its start and dies until it has it, while only its kills are ever
// seen. effective is the limit that the kernel holds it to when its status shows asked. It returns the limits
// recommended, and the last recommendation.
func crashLoop(first, need memory.Bytes, rounds int, edit func(*memory.OOMKill),
	effective func(asked memory.Bytes) memory.Bytes,
) (limits []memory.Bytes, last Recommendation) {
	h, now, asked := history.New(), start, first
	var kills []memory.OOMKill
	for range rounds {
		if effective(asked) >= need {
			return limits, last
		}
		k := kill(now, asked)
		k.Kind, k.Peak = memory.OOMAtStart, 0
		edit(&k)
		kills = append(kills, k)
		last = Evaluate(
			Input{
				Policy: defaults, History: h, Kills: oom.Thinned(kills), Current: sizeOf(asked, asked), LargestNode: 64 * gib,
				Now: now.Add(time.Second),
			},
		)
		if last.Size.Limit > 0 {
			asked = last.Size.Limit
		}
		limits = append(limits, asked)
		now = now.Add(90 * time.Second)
	}
	return limits, last
}

func asIs(*memory.OOMKill)                  {}
func works(asked memory.Bytes) memory.Bytes { return asked }
func stuckAt(l memory.Bytes) func(memory.Bytes) memory.Bytes {
	return func(memory.Bytes) memory.Bytes { return l }
}

// TestAResizeThatNeverArrivesDoesNotRunAway: a limit of 32Mi stays effective while status shows each new one; seen on a
// 1.36 kubelet, where it went to 26650Mi for a process of 305 MiB.
func TestAResizeThatNeverArrivesDoesNotRunAway(t *testing.T) {
	const need = 300 * mib
	for name, tc := range map[string]struct {
		edit func(*memory.OOMKill)
		most memory.Bytes
		says string
	}{
		"nobody knows": {asIs, 3 * need, "growth stops at 384Mi"},
		"samples below the limit": {
			func(k *memory.OOMKill) { k.Peak = 31 * mib }, 3 * need, "use above 32Mi was never seen: growth stops at 384Mi",
		},
		"the one before is known": {
			func(k *memory.OOMKill) { k.Requested, k.Limit = k.Limit, 32*mib }, 3 * need, "was not effective yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			edit := tc.edit
			if strings.HasPrefix(name, "the one") {
				first := true
				edit = func(k *memory.OOMKill) {
					if !first {
						tc.edit(k)
					}
					first = false
				}
			}
			limits, last := crashLoop(32*mib, need, 60, edit, stuckAt(32*mib))
			if got := limits[len(limits)-1]; got > tc.most {
				t.Errorf("after %d kills the limit is %s, want at most %s: %s", len(limits), got, tc.most, last.Summary)
			}
			if !strings.Contains(last.Summary, tc.says) {
				t.Errorf("summary %q, want %q in it", last.Summary, tc.says)
			}
		})
	}
}

// TestAKillBesideALimitNotEffectiveIsNoNewStep: what was only asked for is neither doubled nor kept quiet about.
func TestAKillBesideALimitNotEffectiveIsNoNewStep(t *testing.T) {
	first := kill(start, 32*mib)
	before := Evaluate(
		Input{
			Policy: defaults, Kills: []memory.OOMKill{first}, Current: sizeOf(32*mib, 32*mib), Now: start.Add(time.Second),
		},
	)
	again := kill(start.Add(time.Minute), 32*mib)
	again.Requested = before.Size.Limit
	got := Evaluate(
		Input{
			Policy: defaults,
			Kills:  []memory.OOMKill{first, again}, Current: sizeOf(32*mib, before.Size.Limit),
			Now: start.Add(61 * time.Second),
		},
	)
	if got.Size.Limit != before.Size.Limit || got.Decision != Keep {
		t.Errorf("got %s, want the %s of before", got.Summary, before.Size.Limit)
	}
	want := "OOM-killed at 32Mi at 00:01:00Z, when the requested 128Mi was not effective yet"
	if !strings.Contains(got.Summary, want) {
		t.Errorf("summary %q, want %q in it", got.Summary, want)
	}
}

// TestANeedAtStartIsFound: the limit is effective and nothing is ever measured, because it dies within seconds of its
// start.
func TestANeedAtStartIsFound(t *testing.T) {
	limits, last := crashLoop(32*mib, 300*mib, 10, asIs, works)
	if got := limits[len(limits)-1]; len(limits) > 2 || got > 900*mib || last.Alarm != "" {
		t.Errorf("32Mi to 300Mi: %v, %s", limits, last.Summary)
	}
	// A pod that was created with its limit, as in mode OnCreate, proves it.
	created := func(k *memory.OOMKill) { k.Proven = true }
	for need, want := range map[memory.Bytes]int{300 * mib: 2, gib: 4, 4 * gib: 5, 8 * gib: 6} {
		limits, last := crashLoop(32*mib, need, 20, created, works)
		if got := limits[len(limits)-1]; got < need || got > 3*need || len(limits) > want {
			t.Errorf("32Mi to %s: %v, %s; want at most %d kills", need, limits, last.Summary, want)
		}
	}
}

// TestSamplesAboveTheLimitBeforeProveARaise: kills of a process that was seen beyond what the limit before allows go on
// being answered.
func TestSamplesAboveTheLimitBeforeProveARaise(t *testing.T) {
	seen := func(k *memory.OOMKill) { k.Peak = k.Limit.Percent(60) }
	limits, last := crashLoop(64*mib, 4*gib, 20, seen, works)
	if got := limits[len(limits)-1]; got < 4*gib || len(limits) > 7 {
		t.Errorf("64Mi to 4Gi: %v, %s", limits, last.Summary)
	}
}

// TestGrowthHasACeilingWithoutLimitMax: whatever the kills, half of the largest node is left to others.
func TestGrowthHasACeilingWithoutLimitMax(t *testing.T) {
	for name, tc := range map[string]struct {
		node, have memory.Bytes
		want       memory.Bytes
		says       string
	}{
		"a node of 8Gi": {
			8 * gib, 3 * gib, 4 * gib, "without limit.max a limit grows to at most 50 % of the largest node's 8Gi",
		},
		"no node is known":      {0, 7 * gib, 8 * gib, "50 % of a node of 16Gi, because no node is known"},
		"it has more already":   {8 * gib, 6 * gib, 6 * gib, "50 % of the largest node's 8Gi"},
		"far below the ceiling": {64 * gib, 3 * gib, 5991 * mib, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Evaluate(
				Input{
					Policy: defaults,
					Kills:  []memory.OOMKill{kill(start, tc.have)}, Current: sizeOf(tc.have, tc.have), LargestNode: tc.node,
					Now: start.Add(time.Second),
				},
			)
			if got.Size.Limit != tc.want || !says(got, tc.says) {
				t.Errorf("got %s, want %s and %q in:\n%s", got.Size.Limit, tc.want, tc.says, strings.Join(got.Reasons, "\n"))
			}
		})
	}
	// Killed at the ceiling: nothing more, and an alarm.
	got := Evaluate(
		Input{
			Policy: defaults,
			Kills:  []memory.OOMKill{kill(start, 4*gib)}, Current: sizeOf(4*gib, 4*gib), LargestNode: 8 * gib,
			Now: start.Add(time.Second),
		},
	)
	if got.Decision != Keep || !strings.Contains(got.Alarm, "set sizing.limit.max") {
		t.Errorf("got %s, alarm %q", got.Summary, got.Alarm)
	}
	// Where the owner gives a maximum, that is the only one.
	got = Evaluate(
		Input{
			Kills: []memory.OOMKill{kill(start, 4*gib)}, Policy: limitMax(6 * gib), Current: sizeOf(4*gib, 4*gib),
			LargestNode: 8 * gib, Now: start.Add(time.Second),
		},
	)
	if got.Size.Limit != 6*gib {
		t.Errorf("got %s, want limit.max 6Gi", got.Summary)
	}
}

// TestALeakIsNotFed: the content of Leak is reported, and the limit is unchanged, also when use or time would ask for
// more.
func TestALeakIsNotFed(t *testing.T) {
	noon := start.Add(12 * time.Hour)
	kills := []memory.OOMKill{
		kill(noon, 64*mib), kill(noon.Add(time.Minute), 256*mib), kill(noon.Add(2*time.Minute), 256*mib),
	}
	for _, since := range []time.Duration{time.Second, 50 * time.Minute, 2 * time.Hour} {
		h := history.New()
		now := kills[2].Time.Add(since)
		for i := range 15 {
			h.Add(sample("pod-0", now.Add(time.Duration(i-15)*5*time.Minute), memory.Bytes(200+3*i)*mib), 256*mib)
		}
		got := Evaluate(
			Input{
				Policy: defaults, History: h, Kills: kills, Leak: "each of the last 3 instances climbed 360Mi a minute",
				Current: sizeOf(200*mib, 256*mib), Now: now,
			},
		)
		if got.Size.Limit > 256*mib || since < time.Hour &&
			(got.Size.Limit != 256*mib || !strings.Contains(
				got.Alarm, "leak: each of the last 3 instances climbed 360Mi a minute",
			)) {
			t.Errorf("%s after the last kill: %s, alarm %q", since, got.Summary, got.Alarm)
		}
	}
}

// TestALeakInDoubtIsNotFedEither: what may be a start that still fills is reported as that, and the limit is unchanged
// meanwhile.
func TestALeakInDoubtIsNotFedEither(t *testing.T) {
	kills := []memory.OOMKill{kill(start, 64*mib), kill(start.Add(time.Minute), 256*mib)}
	got := Evaluate(Input{
		Policy: defaults, Kills: kills, Leak: "2 instances climbed 360Mi a minute", Doubt: "the last one is young",
		Current: sizeOf(200*mib, 256*mib), Now: kills[1].Time.Add(time.Second),
	})
	const want = "2 instances climbed 360Mi a minute: a leak, or still loading after its start, because the last one is " +
		"young. Until that is known, the limit stays at 256Mi"
	if got.Size.Limit != 256*mib || got.Alarm != "" || !strings.Contains(strings.Join(got.Reasons, "\n"), want) {
		t.Errorf("limit %s, alarm %q, reasons %q", got.Size.Limit, got.Alarm, got.Reasons)
	}
}

// TestAKillIsRememberedAfterItWasActedOn: memfit has raised the limit to more than twice what it died at, and still
// reports why.
func TestAKillIsRememberedAfterItWasActedOn(t *testing.T) {
	got := Evaluate(Input{
		Policy: defaults,
		Kills:  []memory.OOMKill{kill(start, 64*mib)}, Current: sizeOf(64*mib, 256*mib), Now: start.Add(time.Minute),
	})
	if want := "Keep limit 256Mi, request 64Mi: OOM-killed at 64Mi at 00:00:00Z"; got.Decision != Keep ||
		got.Summary != want {
		t.Errorf("got %s %q, want %q", got.Decision, got.Summary, want)
	}
	// A larger size than the kill asks for is not taken away because of the kill.
	got = Evaluate(
		Input{
			Policy: defaults, Kills: []memory.OOMKill{kill(start, 64*mib)}, Current: sizeOf(64*mib, 2*gib),
			Now: start.Add(time.Minute),
		},
	)
	if got.Decision != Keep || got.Size.Limit != 2*gib {
		t.Errorf("got %s", got.Summary)
	}
}

// TestAStallIsNotCalledAKill, though it is answered like one.
func TestAStallIsNotCalledAKill(t *testing.T) {
	stall := kill(start, 256*mib)
	stall.Kind = memory.OOMStall
	got := Evaluate(
		Input{
			Policy: defaults, Kills: []memory.OOMKill{stall}, Current: sizeOf(128*mib, 256*mib), Now: start.Add(time.Second),
		},
	)
	if got.Decision != Increase || got.Size.Limit != 512*mib ||
		!strings.HasSuffix(got.Summary, ": stalled at 256Mi at 00:00:00Z") {
		t.Errorf("got %s", got.Summary)
	}
}

// TestAHeapCapThatFollowsTheLimitGrowsWithIt: a share of the limit is read again at each start.
func TestAHeapCapThatFollowsTheLimitGrowsWithIt(t *testing.T) {
	abort := func(at time.Time, limit memory.Bytes) memory.OOMKill {
		k := kill(at, limit)
		k.Kind, k.Peak, k.Container.UID = memory.OOMHeapAbort, limit.Percent(40), "u1"
		return k
	}
	share := Traits{Name: "Java", FollowsLimit: true, HeapPercent: 25, CapFollowsLimit: true}
	in := Input{
		Policy: defaults, Kills: []memory.OOMKill{abort(start, 256*mib)}, Traits: share, Current: sizeOf(256*mib, 256*mib),
		Now: start.Add(time.Second),
	}
	if got := Evaluate(in); got.Decision != Increase || got.Size.Limit != 512*mib ||
		!says(got, "heap cap follows from the limit") {
		t.Errorf("got %s\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
	// A number that the pod was created with does not grow with a resize: the same pod's later aborts ask for nothing new.
	share.CapFrozen = true
	in.Traits, in.Kills, in.Current = share, []memory.OOMKill{
		abort(start, 256*mib), abort(start.Add(time.Minute), 512*mib),
	}, sizeOf(256*mib, 512*mib)
	if got := Evaluate(in); got.Decision != Keep || got.Size.Limit != 512*mib ||
		!says(got, "keeps the cap it was created with") {
		t.Errorf("got %s\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
	// And a cap that the owner wrote down does not depend on the limit; the abort is reported anyway.
	in.Traits = Traits{Name: "Java"}
	if got := Evaluate(in); got.Decision != Hold ||
		!strings.Contains(
			got.Summary, "the runtime gave up at its own heap cap at 00:01:00Z, where a higher limit does not help",
		) {
		t.Errorf("got %s", got.Summary)
	}
}

// TestADeathWithinARaiseIsNoSecondStep: a raise meets a container that runs, and one that takes its memory at its
// start may have died before it.
func TestADeathWithinARaiseIsNoSecondStep(t *testing.T) {
	at := func(after time.Duration, limit memory.Bytes, uptime time.Duration) memory.OOMKill {
		k := kill(start.Add(after), limit)
		k.Kind, k.Peak, k.Uptime, k.Proven = memory.OOMAtStart, 0, uptime, true
		return k
	}
	evaluate := func(kills ...memory.OOMKill) Recommendation {
		return Evaluate(Input{
			Policy:  defaults,
			History: history.New(), Kills: kills, Current: memory.Size{Request: 256 * mib, Limit: 256 * mib},
			LargestNode: 64 * gib, Now: start.Add(time.Minute),
		})
	}
	first := at(0, 64*mib, time.Second)
	within := evaluate(first, at(time.Second, 256*mib, 0))
	if within.Size.Limit != 256*mib ||
		!strings.Contains(strings.Join(within.Reasons, "\n"), "the requested 256Mi was not effective yet") {
		t.Errorf("got %s\n%s\nwant 256Mi kept, and why", within.Summary, strings.Join(within.Reasons, "\n"))
	}
	for name, kills := range map[string][]memory.OOMKill{
		"the next one at the same limit": {first, at(time.Second, 256*mib, 0), at(12*time.Second, 256*mib, time.Second)},
		"one that lived for a while":     {first, at(8*time.Second, 256*mib, 5*time.Second)},
	} {
		if got := evaluate(kills...); got.Size.Limit <= 256*mib || got.Decision != Increase {
			t.Errorf("%s: got %s, want a raise above 256Mi", name, got.Summary)
		}
	}
	abort := func(k memory.OOMKill) memory.OOMKill {
		k.Kind, k.Uptime = memory.OOMHeapAbort, 20*time.Second
		return k
	}
	got := Evaluate(Input{
		Policy:  defaults,
		History: history.New(), Kills: []memory.OOMKill{abort(first), abort(at(20*time.Second, 256*mib, 0))},
		LargestNode: 64 * gib,
		Traits:      Traits{Name: "Java", FollowsLimit: true, CapFollowsLimit: true},
		Current:     memory.Size{Request: 256 * mib, Limit: 256 * mib}, Now: start.Add(time.Minute),
	})
	if got.Size.Limit > 256*mib {
		t.Errorf(
			"a heap cap is read at the start: got %s, want no raise for an abort of a process from before the raise",
			got.Summary,
		)
	}
}
