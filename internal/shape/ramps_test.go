// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// grown plays a container whose use is given by its age in seconds, in MiB. It is killed when it meets its limit, and
// gets the next of the limits then. The last instance is watched for two hours.
func grown(use func(life int, age float64) float64, limits ...float64) (kills []memory.OOMKill, now time.Time) {
	now = t0
	for life, limit := range limits {
		started := now
		for age := 0.0; ; age += 0.25 {
			if age > 7200 {
				return kills, started.Add(2 * time.Hour)
			}
			if use(life, age) < limit {
				continue
			}
			now = started.Add(time.Duration(age * float64(time.Second)))
			kills = append(kills, memory.OOMKill{
				Kind: memory.OOMMainProcess, Time: now.Truncate(time.Second), Limit: memory.Bytes(limit) * memory.MiB,
				Uptime: time.Duration(age * float64(time.Second)).Truncate(time.Second), // as the kubelet's stamps tell it
			})
			now = now.Add(10 * time.Second)
			break
		}
	}
	return kills, now
}

func TestRampsOfALeak(t *testing.T) {
	leak := func(rate float64) func(int, float64) float64 {
		return func(_ int, age float64) float64 { return rate * age }
	}
	jitter := []float64{1.2, 0.85, 1.15, 0.8, 1}
	for name, tc := range map[string]struct {
		use    func(life int, age float64) float64
		limits []float64
		want   bool
	}{
		// Leaks. The first is the one that was fed from 64Mi to 1732Mi in 170 s: now it is known at the second kill.
		"6 MiB a second":                 {leak(6), []float64{64, 256}, true},
		"1 MiB a second":                 {leak(1), []float64{64, 256}, true},
		"40 MiB a minute, a large limit": {leak(40. / 60), []float64{512, 998}, true},
		"a third was in use at first":    {func(_ int, age float64) float64 { return 21 + 6*age }, []float64{64, 256}, true},
		"most was in use at first": {
			func(_ int, age float64) float64 { return 45 + 6*age }, []float64{64, 256, 666}, true,
		},
		"with jitter": {
			func(life int, age float64) float64 { return 6 * jitter[life%len(jitter)] * age }, []float64{64, 256, 256, 666},
			true,
		},
		// A node that is busy at times: the second life takes 2.5 times as long as it should.
		"one life on a busy node": {
			func(life int, age float64) float64 { return []float64{6, 2.4, 6}[life] * age }, []float64{64, 256, 512}, true,
		},
		// One that is short of processor time at first, and not any more.
		"twice as fast as the one before": {
			func(life int, age float64) float64 { return []float64{2.5, 6.4}[life] * age }, []float64{64, 384}, true,
		},
		"in steps of 4 MiB": {
			func(_ int, age float64) float64 { return 4 * math.Floor(6*age/4) }, []float64{64, 256}, true,
		},
		"a crash loop that began hours ago": {leak(6), []float64{64, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256}, true},
		// No leaks.
		"one kill":            {leak(6), []float64{64}, false},
		"always at one limit": {leak(6), []float64{256, 256, 256}, false},
		"a need at start, at once": {
			func(_ int, age float64) float64 { return min(300, 400*age) }, []float64{32, 224, 582}, false,
		},
		"a need at start, within seconds": {
			func(_ int, age float64) float64 { return min(900, 80*age) }, []float64{64, 256, 666, 1300}, false,
		},
		"a burst after five minutes": {
			func(_ int, age float64) float64 { return 40 + max(0, 100*(age-300)) }, []float64{64, 256, 666}, false,
		},
		"a burst at about one minute": {
			func(life int, age float64) float64 { return 40 + max(0, 100*(age-[]float64{40, 75, 55}[life])) },
			[]float64{64, 384, 666}, false,
		},
		"a burst when it is asked for one": {
			func(life int, age float64) float64 { return 40 + max(0, 50*(age-float64(200*(life+1)%500))) },
			[]float64{64, 256, 666}, false,
		},
		"a start that slows down": {
			func(_ int, age float64) float64 { return 700 * (1 - math.Exp(-age/60)) }, []float64{128, 640}, false,
		},
		"a cache that fills": {
			func(_ int, age float64) float64 { return 300 * (1 - math.Exp(-age/600)) }, []float64{64, 256, 666}, false,
		},
		"it needed more and has it": {
			func(_ int, age float64) float64 { return min(300, 2*age) }, []float64{64, 256, 666}, false,
		},
		"a sawtooth that meets its limit": {
			func(life int, age float64) float64 { return 40 + 30*math.Mod(age/40, 1+float64(life)) }, []float64{64, 90, 120},
			false,
		},
		"a leak of days, which samples show": {leak(0.005), []float64{64, 128}, false},
	} {
		t.Run(name, func(t *testing.T) {
			kills, now := grown(tc.use, tc.limits...)
			if got := FindRamps(kills, RunningInstance{}, now); (got.Instances > 0) != tc.want {
				t.Errorf("got %+v (%s), want a leak: %t; kills %+v", got, got, tc.want, kills)
			}
		})
	}
}

func TestRampsSayWhatWasSeen(t *testing.T) {
	kills, now := grown(func(_ int, age float64) float64 { return 6 * age }, 64, 256)
	got := FindRamps(kills, RunningInstance{}, now)
	if want := "2 instances in a row climbed about"; !strings.HasPrefix(got.String(), want) ||
		!strings.Contains(got.String(), "at 64Mi after 10s and at 256Mi after 42s") {
		t.Errorf("got %q", got)
	}
	if rate := got.PerMinute.MiB(); rate < 350 || rate > 390 {
		t.Errorf("rate is %d MiB a minute, want 360 to 384", rate)
	}
	// A kill while the limit is raised a little is one at either of two limits, which are alike.
	kills[1].Requested = 320 * memory.MiB
	if got := FindRamps(kills, RunningInstance{}, now); got.Instances != 2 {
		t.Errorf("killed at 256Mi, when 320Mi were asked for: %+v, want two instances", got)
	}
	// Kills at limits that were only requested are not a second ramp.
	kills[1].Requested = 512 * memory.MiB
	if got := FindRamps(kills, RunningInstance{}, now); got.Instances > 0 {
		t.Errorf("a limit that was not effective: %s", got)
	}
	if (Ramps{}).String() != "" {
		t.Error("no ramps have a text")
	}
}

// TestALeakThatIsFollowedAfterItsSecondKill: the second kill was at a limit that memfit had raised, and came so soon,
// while the first had been slow, that the two tell nothing. What the third may use must not go by that limit.
func TestALeakThatIsFollowedAfterItsSecondKill(t *testing.T) {
	kills := []memory.OOMKill{
		{Kind: memory.OOMMainProcess, Time: t0, Limit: 64 * memory.MiB, Uptime: 26 * time.Second},
		{Kind: memory.OOMMainProcess, Time: t0.Add(time.Minute), Limit: 256 * memory.MiB, Uptime: 40 * time.Second},
	}
	for name, tc := range map[string]struct {
		running RunningInstance
		want    bool
	}{
		"not more than the one before":     {RunningInstance{50 * time.Second, 250 * memory.MiB}, false},
		"more, in proportion to its age":   {RunningInstance{150 * time.Second, 300 * memory.MiB}, true},
		"more, and much later":             {RunningInstance{8 * time.Minute, 300 * memory.MiB}, false},
		"more, all of it within its start": {RunningInstance{20 * time.Second, 300 * memory.MiB}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := FindRamps(kills, tc.running, t0.Add(time.Minute+tc.running.Age))
			if got.Running != tc.want || (got.Instances > 0) != tc.want {
				t.Errorf("got %+v (%s), want a leak: %t", got, got, tc.want)
			}
		})
	}
}

// TestALeakThatIsFollowedIsKnownBeforeItsSecondKill: its limit is raised as it climbs, so that it is not killed again.
func TestALeakThatIsFollowedIsKnownBeforeItsSecondKill(t *testing.T) {
	kills, now := []memory.OOMKill{{
		Kind: memory.OOMMainProcess, Time: t0, Limit: 64 * memory.MiB, Uptime: 26 * time.Second,
	}}, t0.Add(2*time.Minute)
	for name, tc := range map[string]struct {
		running RunningInstance
		later   time.Duration
		want    bool
	}{
		"as fast as the one before":         {RunningInstance{110 * time.Second, 270 * memory.MiB}, 0, true},
		"half as fast":                      {RunningInstance{200 * time.Second, 270 * memory.MiB}, 90 * time.Second, true},
		"no doubling twice yet":             {RunningInstance{100 * time.Second, 250 * memory.MiB}, 0, false},
		"it took all of it at its start":    {RunningInstance{20 * time.Second, 270 * memory.MiB}, 0, false},
		"it has had that for minutes":       {RunningInstance{8 * time.Minute, 270 * memory.MiB}, 7 * time.Minute, false},
		"another load, hours after":         {RunningInstance{110 * time.Second, 270 * memory.MiB}, 2 * time.Hour, false},
		"it climbs for longer than samples": {RunningInstance{3 * time.Hour, 9 * memory.GiB}, 3 * time.Hour, false},
		"nothing runs that climbs":          {RunningInstance{}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := FindRamps(kills, tc.running, now.Add(tc.later))
			if got.Running != tc.want || (got.Instances > 0) != tc.want {
				t.Errorf("got %+v (%s), want a leak: %t", got, got, tc.want)
			}
			said := "at 64Mi the first was killed after 26s, and the last is at 270Mi after " + format.Duration(tc.running.Age)
			if tc.want && !strings.HasSuffix(got.String(), said) {
				t.Errorf("said %q", got)
			}
		})
	}
	if got := FindRamps(nil, RunningInstance{110 * time.Second, 270 * memory.MiB}, now); got.Instances > 0 {
		t.Errorf("nothing was killed, and yet: %s", got)
	}
}

// TestALeakIsInDoubtWhileItMayFill: what loads what it needs grows at one rate, too, until it has it. So an instance
// that runs is not proof within its start, but kills that show the same without it are.
func TestALeakIsInDoubtWhileItMayFill(t *testing.T) {
	kill := func(at time.Duration, limit memory.Bytes, age time.Duration) memory.OOMKill {
		return memory.OOMKill{
			Kind: memory.OOMMainProcess, Time: t0.Add(at), Limit: limit * memory.MiB, Uptime: age,
		}
	}
	runs := func(age time.Duration, mib memory.Bytes) RunningInstance {
		return RunningInstance{Age: age, Use: mib * memory.MiB}
	}
	one := []memory.OOMKill{kill(0, 64, 26*time.Second)}
	unlike := append(one, kill(time.Minute, 256, 40*time.Second))
	alike := append(one, kill(3*time.Minute, 256, 100*time.Second))
	for name, tc := range map[string]struct {
		kills       []memory.OOMKill
		running     RunningInstance
		leak, doubt bool
	}{
		"one kill, and one that runs":                  {one, runs(110*time.Second, 270), true, true},
		"the same, still climbing after its start":     {one, runs(10*time.Minute, 1480), true, false},
		"two kills that tell nothing without it":       {unlike, runs(150*time.Second, 300), true, true},
		"two kills that tell it":                       {alike, RunningInstance{}, true, false},
		"the same, and the next that runs is as they":  {alike, runs(150*time.Second, 380), true, false},
		"the same, and the next lived beyond its ramp": {alike, runs(9*time.Minute, 270), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := FindRamps(tc.kills, tc.running, tc.kills[len(tc.kills)-1].Time.Add(10*time.Second+tc.running.Age))
			if (got.Instances > 0) != tc.leak || (got.Doubt != "") != tc.doubt {
				t.Errorf("got %+v (%s), want a leak: %t, in doubt: %t", got, got, tc.leak, tc.doubt)
			}
		})
	}
}
