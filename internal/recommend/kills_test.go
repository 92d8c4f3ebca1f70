// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// climb plays a container that needs a fixed size at its start, and dies until it gets it. It returns the kills it
// took, 50 at most.
func climb(
	first, need memory.Bytes, between time.Duration, policy Policy,
) (kills []memory.OOMKill, last Recommendation) {
	h, now, limit := history.New(), start, first
	for limit < need && len(kills) < 50 {
		kills = append(kills, kill(now, limit))
		ledger := kills[max(0, len(kills)-20):]
		last = Evaluate(Input{History: h, Kills: ledger, Policy: policy, Current: sizeOf(limit, limit), Now: now})
		if last.Decision != Increase {
			return kills, last
		}
		limit = last.Size.Limit
		now = now.Add(between)
	}
	return kills, last
}

func TestTheNeedIsFoundInFewKills(t *testing.T) {
	for _, c := range []struct {
		first, need memory.Bytes
		want        int
	}{
		{64 * mib, 4 * gib, 7}, {256 * mib, 4 * gib, 5}, {64 * mib, 8 * gib, 8}, {20 * mib, 100 * mib, 2}, {gib, 2 * gib, 2},
	} {
		for _, between := range []time.Duration{10 * time.Second, 5 * time.Minute, 50 * time.Minute} {
			kills, last := climb(c.first, c.need, between, defaults)
			if len(kills) > c.want || last.Decision != Increase {
				t.Errorf(
					"%s to %s, a kill every %s: %d kills, then %s; want at most %d", c.first, c.need, between, len(kills),
					last.Summary, c.want,
				)
			}
		}
	}
}

func TestAKillIsAnsweredAtOnce(t *testing.T) {
	got := Evaluate(
		Input{
			Policy: defaults,
			Kills:  []memory.OOMKill{kill(start, 256*mib)}, Current: sizeOf(128*mib, 256*mib), Now: start.Add(time.Second),
		},
	)
	// 256Mi x 150 % = 384Mi, and 128Mi for what a young container has not shown yet.
	if want := 512 * mib; got.Decision != Increase || got.Size.Limit != want {
		t.Errorf("got %s %v, want Raise to %s", got.Decision, got.Size, want)
	}
	if !says(got, "OOM-killed at limit 256Mi at 00:00:00Z", "MainProcess") || got.RequeueAfter > 10*time.Minute {
		t.Errorf("next look %s, reasons:\n%s", got.RequeueAfter, strings.Join(got.Reasons, "\n"))
	}
}

func TestOneReplicaAmongAHundredMovesTheNumber(t *testing.T) {
	h := history.New()
	var now time.Time
	for since := time.Duration(0); since <= 7*day; since += 30 * time.Minute {
		now = start.Add(since)
		for pod := range 100 {
			h.Add(sample("pod-"+string(rune('a'+pod/26))+string(rune('a'+pod%26)), now, 200*mib), 256*mib)
		}
	}
	before := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(256*mib, 256*mib), Now: now})
	after := Evaluate(
		Input{
			Policy: defaults, History: h, Kills: []memory.OOMKill{kill(now, 256*mib)},
			Current: sizeOf(256*mib, 256*mib), Now: now,
		},
	)
	if after.Decision != Increase || after.Size.Limit < 384*mib || before.Decision == Increase {
		t.Errorf("before %s, after one kill among 100: %s; want a raise to at least 384Mi", before.Summary, after.Summary)
	}
	// It still counts when the first hour is over: more than the limit it died at stays.
	later := Evaluate(
		Input{
			Policy:  defaults,
			History: h, Kills: []memory.OOMKill{kill(now.Add(-20*time.Hour), 256*mib)}, Current: sizeOf(512*mib, 512*mib),
			Now: now,
		},
	)
	if later.Size.Limit <= 256*mib {
		t.Errorf("20 hours after the kill at 256Mi: %s", later.Summary)
	}
}

// TestALoanThatIsUsedUpIsNoSizeForAll: nine replicas of a leak got 2Gi instead of 512Mi, because it had a loan of 1Gi.
// The next kill goes on from there, as if there had been no loan.
func TestALoanThatIsUsedUpIsNoSizeForAll(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, 256*mib, flat(100*mib))
	limit := func(kills ...memory.OOMKill) memory.Bytes {
		return Evaluate(Input{
			Policy: defaults, History: h, Kills: kills, Current: sizeOf(128*mib, 256*mib), Now: now.Add(6 * time.Minute),
		}).Size.Limit
	}
	first, lent := kill(now, 256*mib), kill(now, gib)
	lent.LimitWithoutLoan = first.Limit
	want := limit(first)
	if got := limit(lent); got != want {
		t.Errorf("all get %s, and %s without the loan", got, want)
	}
	second, again := kill(now.Add(5*time.Minute), want), kill(now.Add(5*time.Minute), gib)
	again.LimitWithoutLoan = want
	if got, want := limit(lent, again), limit(first, second); got != want || got < 2*second.Limit {
		t.Errorf("after the second all get %s, and %s without the loan", got, want)
	}
}

// TestAHeapAbortNamesWhatSetsItsCap: the advice names the text of the pod, and the limit is not raised.
func TestAHeapAbortNamesWhatSetsItsCap(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, 4*gib, flat(gib))
	k := kill(now, 4*gib)
	k.Kind = memory.OOMHeapAbort
	got := Evaluate(Input{
		History: h, Kills: []memory.OOMKill{k}, Current: sizeOf(4*gib, 4*gib), Now: now.Add(time.Minute),
		Policy: decreaseNever,
		Traits: Traits{Name: "Java", CapSetBy: "KAFKA_HEAP_OPTS has -Xmx2g: raise the heap cap there"},
	})
	want := "1 heap abort: KAFKA_HEAP_OPTS has -Xmx2g: raise the heap cap there; a higher limit alone does not help"
	if got.Size.Limit != 4*gib || !slices.Contains(got.Advice, want) {
		t.Errorf("got %s, advice %q, want the limit kept and %q", got.Summary, got.Advice, want)
	}
}

func TestKillsThatALimitDoesNotHelp(t *testing.T) {
	for name, c := range map[string]struct {
		kind     memory.OOMKind
		peak     memory.Bytes
		want     Decision
		wantSays string
		advice   string
	}{
		"heap abort": {
			memory.OOMHeapAbort, 500 * mib, Keep, "1 heap abort not counted", "raise the runtime's heap cap",
		},
		"pod limit": {
			memory.OOMPodLimit, 200 * mib, Keep, "the pod's own limit was hit", "raise the pod's memory limit",
		},
		"suspected, far below":      {memory.OOMSuspected, 200 * mib, Keep, "peak demand 400Mi", ""},
		"suspected, at the top":     {memory.OOMSuspected, 480 * mib, Increase, "OOM-killed at limit 512Mi", ""},
		"child process, at the top": {memory.OOMChildProcess, 480 * mib, Increase, "ChildProcess", ""},
		"child process of a debug session": {
			memory.OOMChildProcess, 28 * mib, Keep, "1 kill of a child process not counted", "",
		},
		"at start, nothing seen": {memory.OOMAtStart, 0, Increase, "AtStart", ""},
		"a stall":                {memory.OOMStall, 470 * mib, Increase, "stalled at limit 512Mi at ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.New()
			now := feed(h, 9*day, 512*mib, flat(400*mib))
			k := kill(now, 512*mib)
			k.Kind, k.Peak = c.kind, c.peak
			got := Evaluate(
				Input{
					Policy: defaults, History: h, Kills: []memory.OOMKill{k}, Current: sizeOf(430*mib, 512*mib),
					Now: now.Add(time.Minute),
				},
			)
			if raised := got.Decision == Increase; raised != (c.want == Increase) {
				t.Errorf("got %s, want %s", got.Summary, c.want)
			}
			if !says(got, c.wantSays) {
				t.Errorf("no reason says %q:\n%s", c.wantSays, strings.Join(got.Reasons, "\n"))
			}
			if advice := strings.Join(got.Advice, "\n"); !strings.Contains(advice, c.advice) || c.advice == "" && advice != "" {
				t.Errorf("advice %q, want %q", advice, c.advice)
			}
		})
	}
}

// TestAKillDuringADebugSessionNamesIt: the pod may have no limit of its own to raise.
func TestAKillDuringADebugSessionNamesIt(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, 512*mib, flat(200*mib))
	k := kill(now, 512*mib)
	k.Kind, k.Peak, k.Debugged = memory.OOMPodLimit, 200*mib, true
	got := Evaluate(Input{
		Policy: defaults, History: h, Kills: []memory.OOMKill{k}, Current: sizeOf(430*mib, 512*mib),
		Now: now.Add(time.Minute),
	})
	advice := strings.Join(got.Advice, "\n")
	if !says(got, "a debug session ran in its pod") || !strings.Contains(advice, "kubectl debug --copy-to") ||
		strings.Contains(advice, "spec.resources") || got.Decision == Increase {
		t.Errorf("%s: reasons %q, advice %q", got.Decision, got.Reasons, advice)
	}
}

func TestALeakStopsWithAnAlarm(t *testing.T) {
	t.Run("at limit.max", func(t *testing.T) {
		kills, last := climb(64*mib, 1000*gib, 5*time.Minute, limitMax(gib))
		if last.Size.Limit != gib || last.Decision != Keep || last.Alarm == "" || !says(last, "ALARM", "limit.max 1Gi") {
			t.Errorf("after %d kills: %s\n%s", len(kills), last.Summary, strings.Join(last.Reasons, "\n"))
		}
	})
	t.Run("by its shape, without a bound", func(t *testing.T) {
		h, limit := history.New(), 512*mib
		var kills []memory.OOMKill
		var last Recommendation
		now := start
		for round := range 20 {
			for i := range 12 { // an hour's climb to the limit
				h.Add(sample("pod-0", now, limit.Percent(int32(40+5*i))), limit)
				now = now.Add(5 * time.Minute)
			}
			kills = append(kills, kill(now, limit))
			last = Evaluate(Input{
				Policy: defaults, History: h, Kills: kills, Current: sizeOf(limit, limit), Climbing: true, Now: now,
			})
			if last.Decision == Increase {
				limit = last.Size.Limit
			}
			if round > 0 && (last.Alarm == "" || !strings.Contains(last.Summary, "grows steadily")) {
				t.Fatalf("round %d: no alarm in %q", round, last.Summary)
			}
		}
		if limit > gib {
			t.Errorf("20 kills of a leak from 512Mi ended at %s, want one step", limit)
		}
	})
}

// TestAClimbGetsItsStepWhateverWasKilledBefore: kills of another week are not steps of this climb.
func TestAClimbGetsItsStepWhateverWasKilledBefore(t *testing.T) {
	h := history.New()
	now := feed(h, 12*day, 512*mib, flat(400*mib))
	in := Input{Policy: defaults, History: h, Current: sizeOf(512*mib, 512*mib), Climbing: true, Now: now}
	for ago, want := range map[time.Duration]Decision{10 * day: Increase, day: Keep} {
		in.Kills = []memory.OOMKill{
			kill(now.Add(-ago), 128*mib), kill(now.Add(-ago+time.Minute), 256*mib), kill(now, 512*mib),
		}
		if got := Evaluate(in); got.Decision != want {
			t.Errorf("with kills of %s ago: %s, want %s", ago, got.Summary, want)
		}
	}
}

// TestARareJobIsHeldWhereAKillIsDear: a job of 2Gi that ran once, two weeks ago, beside a use of 200Mi.
func TestARareJobIsHeldWhereAKillIsDear(t *testing.T) {
	h := history.New()
	now := feed(h, 25*day, 4*gib, func(since time.Duration) memory.Bytes {
		if since >= 10*day && since < 10*day+3*time.Hour {
			return 2 * gib
		}
		return 200 * mib
	})
	for posture, held := range map[memory.Bytes]bool{Frugal: false, Balanced: false, Cautious: true} {
		got := Evaluate(Input{History: h, Policy: posed(posture), Current: sizeOf(3*gib, 3*gib), Now: now})
		if got.Size.Limit >= 2*gib != held || got.Size.Limit >= gib != held ||
			says(got, "the peak of 2Gi is not covered") == held {
			t.Errorf("%s: %s, held: want %t\n%s", posture, got.Summary, held, strings.Join(got.Reasons, "\n"))
		}
	}
}

func TestSizesNeverCollapseWhenDataStops(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, gib, flat(700*mib))
	for gap := time.Duration(0); gap < 60*day; gap += 7 * time.Hour {
		got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(800*mib, 805*mib), Now: now.Add(gap)})
		if got.Decision == Decrease || got.Size.Limit != 0 && got.Size.Limit < 700*mib {
			t.Fatalf("%s without data: %s", gap, got.Summary)
		}
	}
	// Data comes back after a month: after an hour of idling, what was needed before is kept.
	back := now.Add(30 * time.Hour)
	for i := range 30 {
		h.Add(sample("pod-1", back.Add(time.Duration(i)*2*time.Minute), 50*mib), gib)
	}
	got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(800*mib, 805*mib), Now: back.Add(time.Hour)})
	if got.Size.Limit < 700*mib {
		t.Errorf("an hour after data came back: %s\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
}

// TestWhatAKillAsksForStaysUrgent for the replicas that do not have it yet, when the one that was read does.
func TestWhatAKillAsksForStaysUrgent(t *testing.T) {
	kills := []memory.OOMKill{kill(start, 256*mib)}
	first := Evaluate(Input{Policy: defaults, Kills: kills, Current: sizeOf(64*mib, 256*mib), Now: start.Add(time.Minute)})
	got := Evaluate(Input{Policy: defaults, Kills: kills, Current: first.Size, Now: start.Add(2 * time.Minute)})
	if got.Decision != Keep || !got.Urgent {
		t.Errorf("%s, urgent %t; want Keep, and urgent", got.Summary, got.Urgent)
	}
	later := Evaluate(Input{
		Policy: defaults, Kills: kills, Current: first.Size, Now: start.Add(killHold.Duration() + time.Minute),
	})
	if later.Urgent {
		t.Errorf("still urgent after %s: %s", killHold.Duration(), later.Summary)
	}
}

// TestAChildThatIsKilledAgainRaisesTheLimit: one kill of a child may be that of kubectl exec; two are the workload's.
func TestAChildThatIsKilledAgainRaisesTheLimit(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, 64*mib, flat(28*mib))
	child := func(pod string, at time.Time) memory.OOMKill {
		k := kill(at, 64*mib)
		k.Kind, k.Peak, k.Container.Pod = memory.OOMChildProcess, 28*mib, pod
		return k
	}
	for name, test := range map[string]struct {
		kills []memory.OOMKill
		want  memory.Bytes
	}{
		"once":                {[]memory.OOMKill{child("web-0", now)}, 64 * mib},
		"twice in one pod":    {[]memory.OOMKill{child("web-0", now), child("web-0", now.Add(time.Minute))}, 0},
		"once in each of two": {[]memory.OOMKill{child("web-0", now), child("web-1", now.Add(time.Second))}, 0},
	} {
		got := Evaluate(Input{
			Policy: defaults, History: h, Kills: test.kills, Current: sizeOf(32*mib, 64*mib), Now: now.Add(2 * time.Minute),
		})
		if raised := got.Size.Limit > 64*mib; raised == (test.want > 0) {
			t.Errorf("%s: %s", name, got.Summary)
		}
	}
}
