// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// answered runs replicas under a limit that is too small until all have a higher one, and returns that.
func answered(t *testing.T, limit, need memory.Bytes, replicas int) (d *day, answer memory.Bytes) {
	t.Helper()
	d = newDay(t, v1alpha1.SizingInPlace, sizeMi(16, limit), need*memory.MiB, replicas)
	d.run(10*time.Minute, 10*time.Second)
	answer = slices.Min(d.limits())
	if answer < need*memory.MiB || slices.Max(d.limits()) != answer {
		d.fail("limits of %v for a need of %dMi", d.limits(), need)
	}
	return d, answer
}

// TestASmallNeedIsAnsweredWithLessThanThreeTimesAsMuch at any time of a day, with one kill of each replica.
func TestASmallNeedIsAnsweredWithLessThanThreeTimesAsMuch(t *testing.T) {
	const need = 60
	for _, replicas := range []int{1, 6} {
		d, _ := answered(t, 32, need, replicas)
		for range 26 {
			d.run(time.Hour, 5*time.Minute)
			if most := slices.Max(d.limits()); most >= 3*need*memory.MiB {
				d.fail("%s for a need of %dMi", most, need)
			}
		}
		if d.kills != replicas {
			d.fail("%d kills of %d replicas", d.kills, replicas)
		}
	}
}

// TestAnAnswerToAKillIsCorrectedOnceWithinTheDay: what a kill was answered with was a guess. After an hour under it one
// pod gets what was seen to be enough, and the others follow. Nothing more is lowered until there is a day of evidence,
// and nothing below what the owner asks for.
func TestAnAnswerToAKillIsCorrectedOnceWithinTheDay(t *testing.T) {
	const owner, need, replicas = 64, 70, 3
	d, answer := answered(t, owner, need, replicas)
	d.run(45*time.Minute, 30*time.Second)
	if least := slices.Min(d.limits()); least < answer {
		d.fail("lowered to %s within the hour", least)
	}
	for slices.Min(d.limits()) >= answer {
		if d.run(time.Minute, 30*time.Second); d.now.After(began.Add(90 * time.Minute)) {
			d.fail("not corrected: %v", d.limits())
		}
	}
	corrected := slices.Min(d.limits())
	if corrected >= 3*need*memory.MiB || corrected < need*memory.MiB*115/100 {
		d.fail("corrected from %s to %s for a need of %dMi", answer, corrected, need)
	}
	d.run(5*time.Minute, 30*time.Second)
	if all := d.limits(); slices.Max(all) != answer || len(slices.DeleteFunc(all, func(l memory.Bytes) bool {
		return l == answer
	})) != 1 {
		d.fail("while one pod is watched: %v", d.limits())
	}
	d.run(35*time.Minute, 30*time.Second)
	if got := slices.Max(d.limits()); got != corrected {
		d.fail("the others do not follow: %v", d.limits())
	}
	for d.now.Before(began.Add(22 * time.Hour)) {
		if d.run(time.Hour, 5*time.Minute); slices.Min(d.limits()) != corrected {
			d.fail("corrected to %s, and then %v", corrected, d.limits())
		}
	}
	if d.kills != replicas {
		d.fail("%d kills", d.kills)
	}
}

// TestAKillAtACorrectedLimitRestoresTheAnswer for all pods, and it is not corrected again.
func TestAKillAtACorrectedLimitRestoresTheAnswer(t *testing.T) {
	d, answer := answered(t, 64, 70, 3)
	for slices.Min(d.limits()) >= answer && d.now.Before(began.Add(90*time.Minute)) {
		d.run(time.Minute, 30*time.Second)
	}
	corrected := slices.Min(d.limits())
	d.burst = corrected - 70*memory.MiB + 4*memory.MiB
	d.run(time.Minute, 10*time.Second)
	d.burst = 0
	d.run(20*time.Minute, 10*time.Second)
	for range 20 {
		if d.run(time.Hour, 5*time.Minute); slices.Min(d.limits()) < answer {
			d.fail("the kill at %s did not restore %s: %v", corrected, answer, d.limits())
		}
	}
}

// TestAnAnswerIsCorrectedInNewPods: with OnCreate, a pod that is created an hour after the kills is the first with
// less, and the next ones follow when it was watched. A kill at the corrected limit restores the answer for new pods.
func TestAnAnswerIsCorrectedInNewPods(t *testing.T) {
	t.Parallel()
	const owner, need = 64, 70
	for _, replicas := range []int{1, 3} {
		d := newDay(t, v1alpha1.SizingOnCreate, sizeMi(16, owner), need*memory.MiB, replicas)
		d.run(3*time.Minute, 10*time.Second)
		d.deploy("with the answer")
		answer, kills := slices.Min(d.limits()), d.kills
		d.run(30*time.Minute, 30*time.Second)
		d.deploy("within the hour")
		if answer < need*memory.MiB || slices.Min(d.limits()) < answer {
			d.fail("an answer of %s, and then %v", answer, d.limits())
		}
		d.run(40*time.Minute, 30*time.Second)
		d.deploy("after an hour")
		corrected := slices.Min(d.limits())
		if lower := slices.DeleteFunc(d.limits(), func(l memory.Bytes) bool { return l >= answer }); len(lower) != 1 {
			d.fail("%v, want one below %s", d.limits(), answer)
		}
		d.run(15*time.Minute, 30*time.Second)
		d.deploy("after the watch")
		if slices.Max(d.limits()) != corrected || corrected < need*memory.MiB {
			d.fail("%v, want %s", d.limits(), corrected)
		}
		for range 8 { // the first day is not over
			d.run(time.Hour, 2*time.Minute)
			if d.deploy("later"); slices.Min(d.limits()) < corrected {
				d.fail("corrected to %s, and then %v", corrected, d.limits())
			}
		}
		if d.kills > kills {
			d.fail("%d kills after the answer", d.kills-kills)
		}
		d.burst = corrected - need*memory.MiB + 4*memory.MiB
		d.run(10*time.Second, 10*time.Second)
		d.burst = 0
		d.run(time.Minute, 10*time.Second)
		if d.deploy("after a kill"); slices.Min(d.limits()) < answer {
			d.fail("the kill at %s did not restore %s: %v", corrected, answer, d.limits())
		}
	}
}

// TestAnAnswerIsNotCorrectedBelowWhatTheOwnerAsksFor: what is too small for a moment at the start, and then far too
// large, waits for its day.
func TestAnAnswerIsNotCorrectedBelowWhatTheOwnerAsksFor(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 256), 40*memory.MiB, 2)
	d.run(3*time.Hour, time.Minute)
	d.burst = 230 * memory.MiB
	d.run(time.Minute, 10*time.Second)
	d.burst = 0
	for range 18 {
		if d.run(time.Hour, 2*time.Minute); slices.Min(d.limits()) < 256*memory.MiB {
			d.fail("lowered below what the owner asks for: %v", d.limits())
		}
	}
}
