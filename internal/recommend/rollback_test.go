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

// unrelieved is a stall that a raise from 256Mi to 512Mi did not end.
func unrelieved() memory.Stall {
	return memory.Stall{
		Limit: 256 * mib, RaisedTo: 512 * mib, Since: start, Confirmed: start.Add(time.Minute),
		Ended: start.Add(8 * time.Minute),
		Anon:  235 * mib, Faults: 150, FaultsAfter: 140, NotRelieved: true,
	}
}

func TestARaiseThatDidNotEndItsStallIsRolledBack(t *testing.T) {
	now := start.Add(10 * time.Minute)
	young := func(use memory.Bytes) *history.Container {
		h := history.New()
		for i := range 5 {
			h.Add(sample("pod-0", start.Add(time.Duration(2*i)*time.Minute), use), 512*mib)
		}
		return h
	}
	for name, tc := range map[string]struct {
		in   Input
		want Decision
		size memory.Size
		says string
	}{
		"at once, on minutes of use": {
			Input{Policy: defaults, History: young(235 * mib), Current: sizeOf(250*mib, 512*mib), Unrelieved: unrelieved()},
			Decrease, sizeOf(250*mib, 256*mib), "the raise to 512Mi did not end the stall of 00:00:00Z and is rolled back",
		},
		"and then it stays": {
			Input{Policy: defaults, History: young(235 * mib), Current: sizeOf(250*mib, 256*mib), Unrelieved: unrelieved()},
			Keep, sizeOf(250*mib, 256*mib), "Keep limit 256Mi",
		},
		"not onto what is in use": {
			Input{Policy: defaults, History: young(260 * mib), Current: sizeOf(300*mib, 512*mib), Unrelieved: unrelieved()},
			Hold, memory.Size{}, "it is not rolled back to 256Mi: use has reached 260Mi",
		},
		"not when a kill has asked for more since": {
			Input{
				Policy: defaults, History: young(235 * mib), Current: sizeOf(250*mib, 512*mib), Unrelieved: unrelieved(),
				Kills: []memory.OOMKill{kill(now.Add(-time.Minute), 512*mib)},
			}, Increase, memory.Size{}, "OOM-killed at limit 512Mi",
		},
		"not when somebody has raised it further": {
			Input{
				Policy: defaults, History: young(235 * mib), Current: sizeOf(250*mib, 1024*mib), Unrelieved: unrelieved(),
			}, Hold, memory.Size{},
			"5 samples over",
		},
		"not where limits are never lowered": {
			Input{
				History: young(235 * mib), Current: sizeOf(250*mib, 512*mib), Unrelieved: unrelieved(),
				Policy: decreaseNever,
			},
			Keep, sizeOf(250*mib, 512*mib), "decrease is Never",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Now = now
			got := Evaluate(tc.in)
			if got.Decision != tc.want || tc.size != (memory.Size{}) && got.Size != tc.size {
				t.Errorf("%s %v, want %s %v: %s", got.Decision, got.Size, tc.want, tc.size, got.Summary)
			}
			if all := got.Summary + "\n" + strings.Join(got.Reasons, "\n"); !strings.Contains(all, tc.says) {
				t.Errorf("nothing says %q:\n%s", tc.says, all)
			}
		})
	}
}

// TestNothingIsRolledBackOnOldSamples: what is in use now may be more than the last sample showed.
func TestNothingIsRolledBackOnOldSamples(t *testing.T) {
	h := history.New()
	last := feed(h, 30*time.Minute, 512*mib, flat(235*mib))
	in := Input{Policy: defaults, History: h, Current: sizeOf(250*mib, 512*mib), Unrelieved: unrelieved()}
	for after, want := range map[time.Duration]Decision{time.Minute: Decrease, 2 * time.Hour: Hold} {
		in.Now = last.Add(after)
		if got := Evaluate(in); got.Decision != want {
			t.Errorf("%s after the last sample: %s, want %s", after, got.Summary, want)
		}
	}
}

// TestTheAnswerToKillsIsAGuess for an hour after the last one, and until there is a day of evidence.
func TestTheAnswerToKillsIsAGuess(t *testing.T) {
	h := history.New()
	now := feed(h, 3*time.Hour, 352*mib, flat(70*mib))
	killed := func(ago time.Duration, limit memory.Bytes) memory.OOMKill { return kill(now.Add(-ago), limit) }
	long := history.New()
	feed(long, 27*time.Hour, 352*mib, flat(70*mib))
	estimated := history.New()
	feed(estimated, 3*time.Hour, 352*mib, flat(70*mib))
	working := sample("pod-0", now.Add(time.Minute), 70*mib)
	working.HasRSS, working.Exact = false, false
	estimated.Add(working, 352*mib)
	for name, tc := range map[string]struct {
		kills   []memory.OOMKill
		history *history.Container
		now     time.Time
		want    memory.Bytes
	}{
		"an hour after the last": {[]memory.OOMKill{killed(70*time.Minute, 64*mib), killed(61*time.Minute, 96*mib)}, h, now,
			96 * mib},
		"within the hour":     {[]memory.OOMKill{killed(70*time.Minute, 64*mib), killed(59*time.Minute, 96*mib)}, h, now, 0},
		"no kill":             {nil, h, now, 0},
		"a day of evidence":   {[]memory.OOMKill{killed(-23*time.Hour, 64*mib)}, long, start.Add(27 * time.Hour), 0},
		"demand is estimated": {[]memory.OOMKill{killed(70*time.Minute, 64*mib)}, estimated, now.Add(time.Minute), 0},
	} {
		got := Evaluate(Input{
			History: tc.history, Kills: tc.kills, Policy: defaults, Current: sizeOf(64*mib, 352*mib), Now: tc.now,
		})
		var from memory.Bytes
		if got.Guess != nil {
			from = got.Guess.From
		}
		if from != tc.want {
			t.Errorf("%s: a guess from %s, want %s: %s", name, from, tc.want, got.Summary)
		}
	}
}
