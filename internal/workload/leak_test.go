// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/shape"
)

// busyNode is a node with too little CPU: what runs there starts late, and every life is slower by another factor.
type busyNode struct {
	*rand.Rand

	late float64 // seconds, at most
	slow float64 // the share of its speed that a process loses, at most
	// gusts: that share is another one every minute of a life.
	gusts bool
	// every is how many seconds lie between two measurements, takes how many a raise takes to be effective, at most.
	every, takes float64
	// follows: the limit follows use in place, too, as in the mode InPlace. A kill within memory.RaiseLag of a raise
	// is told with the limit before it, as the ledger does.
	follows bool
	// from is the limit at first; 0 is 64Mi.
	from memory.Bytes
	// told, if set, is called with what its kills tell each time that they are asked, and the time since its first start.
	told func(shape.Ramps, time.Duration)
}

// run is twenty minutes of a container of 64Mi on that node whose memory, in MiB, follows from the seconds that it
// worked, and that gets what is recommended at each kill. died are the limits that it died at, limit is the one at the
// end, which is the highest, and leaks how the leak was told at the end, if it was.
func (n busyNode) run(
	use func(seconds float64) float64,
) (died map[memory.Bytes]bool, limit memory.Bytes, leaks string) {
	const tick = 0.25
	app := memory.ContainerRef{Namespace: "shop", Pod: "web-0", UID: "u1", Container: "app"}
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	began, end := now, now.Add(20*time.Minute)
	h, kills := history.New(), []memory.OOMKill{}
	died, limit = map[memory.Bytes]bool{}, cmp.Or(n.from, 64*memory.MiB)
	every := max(n.every, 15)
	asked, inForce := limit, now // of a raise: how much, and from when on
	var leak shape.Ramps
	asks := func(running shape.RunningInstance) {
		leak = shape.FindRamps(kills, running, now)
		if n.told != nil {
			n.told(leak, now.Sub(began))
		}
		if more := recommended(h, kills, leak, asked, now); more > asked {
			asked, inForce = more, now.Add(n.resize())
		}
	}
	for now.Before(end) {
		started, late, measured := now, n.Float64()*n.late, n.Float64()*every
		speed, worked := 1-n.Float64()*n.slow, 0.0
		var peak memory.Bytes
		var raised time.Time
		var readings readings
		var running shape.RunningInstance
		before, rss := limit, memory.Bytes(0)
		for age := 0.0; rss < limit && now.Before(end); age += tick {
			now = started.Add(time.Duration(age * float64(time.Second)))
			if asked > limit && !now.Before(inForce) {
				before, limit, raised = limit, asked, now
			}
			if n.gusts && age > 0 && math.Mod(age, 60) == 0 {
				speed = 1 - n.Float64()*n.slow
			}
			if age >= late {
				worked += tick * speed
			}
			rss = memory.Bytes((4 + use(worked)) * float64(memory.MiB))
			if age < measured || rss >= limit {
				continue
			}
			measured += every
			peak = max(peak, rss)
			h.Add(memory.Sample{
				Container: app, Started: started, Time: now, RSS: rss, HasRSS: true, Exact: true, WorkingSet: rss, Usage: rss,
			}, limit)
			if !n.follows {
				continue
			}
			readings.add(&memory.Sample{Time: now, RSS: rss, HasRSS: true, Exact: true})
			running = shape.RunningInstance{}
			if readings.rises() {
				running = shape.RunningInstance{Age: now.Sub(started), Use: rss}
			}
			asks(running)
		}
		if rss < limit {
			break // it lives
		}
		kill := memory.OOMKill{
			Container: app, Kind: memory.OOMMainProcess, Time: now.Truncate(time.Second), Limit: limit, Proven: true,
			Peak: peak, Uptime: now.Truncate(time.Second).Sub(started.Truncate(time.Second)), Confidence: memory.High,
		}
		switch {
		case now.Before(raised.Add(memory.RaiseLag)):
			kill.Limit, kill.Requested, kill.Proven = before, limit, false
		case asked > limit:
			kill.Requested = asked
		}
		kills = append(kills, kill)
		died[kill.Limit] = true
		asks(shape.RunningInstance{})
		now = now.Add(time.Duration(min(2*len(kills), 10)) * time.Second) // the kubelet backs off
	}
	return died, asked, leak.String()
}

// resize is how long a raise takes to be effective.
func (n busyNode) resize() time.Duration {
	return time.Duration(n.Float64() * n.takes * float64(time.Second))
}

// defaults is how an empty profile sizes.
var defaults = sync.OnceValue(func() recommend.Policy {
	app := (&profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}}).Container("app", nil)
	return app.SizePolicy()
})

// recommended is the limit that a container with this one should have.
func recommended(
	h *history.Container, kills []memory.OOMKill, leak shape.Ramps, limit memory.Bytes, now time.Time,
) memory.Bytes {
	return recommend.Evaluate(recommend.Input{
		Policy:  defaults(),
		History: h, Kills: kills, Current: memory.Size{Limit: limit}, Now: now, LargestNode: 16 * memory.GiB,
		Leak: leak.String(), Doubt: leak.Doubt,
	}).Size.Limit
}

// TestAFastLeakIsBoundedOnABusyNode: what a leak is given must not depend on how steadily its node lets it leak. Where
// rates differed more than twofold, it was fed until the node was half full.
func TestAFastLeakIsBoundedOnABusyNode(t *testing.T) {
	t.Parallel()
	const most = 600 * memory.MiB // as in test/adverse
	for _, perSecond := range []float64{1, 3, 6} {
		for _, n := range []busyNode{
			{late: 0, slow: 0}, {late: 5, slow: 0.3}, {late: 5, slow: 0.5}, {late: 5, slow: 0.5, follows: true},
		} {
			t.Run(
				fmt.Sprintf("%g MiB a second, up to %gs late and %g %% slower, followed: %t",
					perSecond, n.late, 100*n.slow, n.follows),
				func(t *testing.T) {
					for seed := range uint64(50) {
						n.Rand = rand.New(rand.NewPCG(seed, 1)) // the same dice in every run
						died, given, leaks := n.run(func(seconds float64) float64 { return seconds * perSecond })
						if given > most || leaks == "" && len(died) > 2 { // two lives may be too unlike to tell
							t.Errorf("seed %d: given %s, at most %s may be; told as %q", seed, given, most, leaks)
						}
					}
				})
		}
	}
}

// TestAFastLeakIsBoundedOnANodeThatIsShortOfCPU: there a process gets now all it asks for, now a quarter, readings are
// 30 s apart and a raise takes up to 20 s. Two lives whose rates lie that far apart can be too unlike to tell, so not
// each leak stays below the bound of test/adverse; but four of five do, and none is fed on. Where a living instance
// counted from four times the last limit that killed, and two lives at rates up to twofold apart, up to a third of them
// was given more, up to 4.7Gi.
func TestAFastLeakIsBoundedOnANodeThatIsShortOfCPU(t *testing.T) {
	t.Parallel()
	const leaks, most = 100, 600 * memory.MiB
	const ever = 2 * most // one answer more, which at most doubles a limit
	for _, n := range []busyNode{
		{late: 5, slow: 0.75, follows: true},
		{late: 5, slow: 0.75, follows: true, gusts: true},
		{late: 15, slow: 0.75, follows: true, gusts: true, every: 30, takes: 20},
		{late: 15, slow: 0.75, follows: true, every: 30, takes: 20},
	} {
		for _, perSecond := range []float64{2, 6} {
			above := 0
			for seed := range uint64(leaks) {
				n.Rand = rand.New(rand.NewPCG(seed, 1)) // the same dice in every run
				_, given, told := n.run(func(seconds float64) float64 { return seconds * perSecond })
				if given > ever {
					t.Errorf("%+v, %g MiB a second, seed %d: given %s, told as %q", n, perSecond, seed, given, told)
				}
				if given > most {
					above++
				}
			}
			t.Logf("%g MiB a second, up to %gs late, other speeds in each life: %t, measured each %gs: %d of %d above %s",
				perSecond, n.late, n.gusts, max(n.every, 15), above, leaks, most)
			if above > leaks/5 {
				t.Errorf("%d of %d are given more than %s, at most %d may be", above, leaks, most, leaks/5)
			}
		}
	}
}

// TestANeedAtStartIsFoundOnABusyNode: what takes 300Mi within seconds of its start gets it there, too, and is not a
// leak.
func TestANeedAtStartIsFoundOnABusyNode(t *testing.T) {
	for seed := range uint64(50) {
		n := busyNode{Rand: rand.New(rand.NewPCG(seed, 2)), late: 5, slow: 0.5} // the same dice in every run
		_, given, leaks := n.run(func(seconds float64) float64 { return min(300, 100*seconds) })
		if given < 310*memory.MiB || given > 930*memory.MiB || leaks != "" {
			t.Errorf("seed %d: given %s, told as %q", seed, given, leaks)
		}
	}
}

// TestWhatFillsIsNotToldAsALeakMeanwhile: a program that takes its 300Mi at one steady rate, and whose limit follows
// it, grows like a leak until it has them. All of them were told as one for that time, and none is now: while that is
// in doubt, nothing is told. A leak at that rate is told anyway, up to two minutes later on average, and its limit
// does not grow meanwhile.
func TestWhatFillsIsNotToldAsALeakMeanwhile(t *testing.T) {
	for _, perSecond := range []float64{1, 2, 4} {
		var later time.Duration
		const seeds = 50
		for seed := range uint64(seeds) {
			var inDoubt, told time.Duration // when it began to be so
			n := busyNode{late: 5, slow: 0.3, follows: true, told: func(r shape.Ramps, at time.Duration) {
				if r.Instances > 0 && inDoubt == 0 {
					inDoubt = at
				}
				if r.Instances > 0 && r.Doubt == "" && told == 0 {
					told = at
				}
			}}
			n.Rand = rand.New(rand.NewPCG(seed, 3)) // the same dice in every run
			n.run(func(seconds float64) float64 { return min(300, perSecond*seconds) })
			if inDoubt == 0 || told != 0 {
				t.Errorf("%g MiB a second, seed %d: in doubt after %s, told after %s", perSecond, seed, inDoubt, told)
			}
			inDoubt, told = 0, 0
			n.Rand = rand.New(rand.NewPCG(seed, 3))
			n.run(func(seconds float64) float64 { return perSecond * seconds })
			if told == 0 {
				t.Errorf("%g MiB a second, seed %d: a leak is not told", perSecond, seed)
			}
			later += (told - inDoubt) / seeds
		}
		if later > 3*time.Minute {
			t.Errorf("%g MiB a second: a leak is told %s later than it was in doubt", perSecond, later)
		}
		t.Logf("%g MiB a second: a leak is told %s after it was in doubt", perSecond, later)
	}
}

// TestASlowStartIsFollowedOnABusyNode: what takes minutes to load its 300Mi, at one rate or ever more slowly, gets
// that there, and is not a leak in the end.
func TestASlowStartIsFollowedOnABusyNode(t *testing.T) {
	for name, use := range map[string]func(seconds float64) float64{
		"at one rate":           func(seconds float64) float64 { return min(300, 2*seconds) },
		"ever more slowly":      func(seconds float64) float64 { return 300 * (1 - math.Exp(-seconds/60)) },
		"slowly, half at start": func(seconds float64) float64 { return min(150, 30*seconds) + min(150, seconds) },
	} {
		for _, n := range []busyNode{
			{late: 5, slow: 0.3, follows: true}, {late: 5, slow: 0.75, follows: true, gusts: true},
		} {
			for seed := range uint64(50) {
				n.Rand = rand.New(rand.NewPCG(seed, 3)) // the same dice in every run
				_, given, leaks := n.run(use)
				if given < 310*memory.MiB || given > 930*memory.MiB || leaks != "" {
					t.Errorf("%s, seed %d, %+v: given %s, told as %q", name, seed, n, given, leaks)
				}
			}
		}
	}
}
