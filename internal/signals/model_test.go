// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

// world is a kubelet that knows the truth: what each container died of. memfit only sees what its status shows at the
// moments it looks.
type world struct {
	next  func(n int) int // the next choice, below n
	clock time.Time
	pods  []*worldPod
	born  int
	truth map[memory.OOMKind]int64
	// within calls look, which lets the ledger see so many containers, and may hold it to a budget.
	within func(containers int, look func())
}

type worldPod struct {
	podMaker
	gone  bool
	cause cause // what everything since the last look died of: restartCount cannot tell more than one story
	deaths,
	instance int32
	state  string // running, dead, waiting
	since  time.Time
	newest *corev1.ContainerStateTerminated
	last   *corev1.ContainerStateTerminated
}

type cause int

const (
	byKernel cause = iota
	byHeap
	byProbe
	byItself
	childThenStop
	causes
)

var causeOf = map[cause]struct {
	reason string
	exit   int32
	kind   memory.OOMKind
}{
	byKernel:      {"OOMKilled", 137, memory.OOMMainProcess},
	byHeap:        {"Error", 134, memory.OOMHeapAbort},
	byProbe:       {"Error", 137, ""},
	byItself:      {"Error", 1, ""},
	childThenStop: {"OOMKilled", 143, memory.OOMChildProcess},
}

func (w *world) pass() { w.clock = w.clock.Add(time.Duration(2+w.next(600)) * time.Second) }

func (w *world) bear() *worldPod {
	w.born++
	p := &worldPod{
		podMaker: makePod(fmt.Sprintf("web-%d", w.next(3)), types.UID(fmt.Sprintf("uid-%d", w.born))), state: "running",
		since: w.clock,
	}
	p.pod.CreationTimestamp.Time = w.clock
	w.pods = append(w.pods, p)
	w.freshCause(p)
	return p
}

func (w *world) freshCause(p *worldPod) { p.cause, p.deaths = cause(w.next(int(causes))), 0 }

// step lets one container live on: die when it runs, wait when it is dead, run when it waits.
func (w *world) step(p *worldPod) {
	w.pass()
	switch p.state {
	case "running":
		if p.cause == childThenStop && p.deaths > 0 {
			return // a second one would be hidden behind the first, and nothing would tell
		}
		c := causeOf[p.cause]
		p.last = p.newest
		p.newest = end(p.instance, c.reason, c.exit, 0, 0)
		p.newest.ContainerID = fmt.Sprintf("containerd://%s-%d", p.pod.UID, p.instance)
		p.newest.StartedAt.Time, p.newest.FinishedAt.Time = p.since, w.clock
		p.state = "dead"
		p.deaths++
		if c.kind != "" {
			w.truth[c.kind]++
		}
	case "dead":
		p.state = "waiting"
	case "waiting":
		p.instance++
		p.state, p.since = "running", w.clock
	}
}

// shown is what the API server shows of it.
func (p *worldPod) shown() []Observation {
	cs := corev1.ContainerStatus{
		RestartCount: p.instance, ContainerID: fmt.Sprintf("containerd://%s-%d", p.pod.UID, p.instance),
	}
	switch p.state {
	case "running":
		cs.State.Running = &corev1.ContainerStateRunning{}
		cs.State.Running.StartedAt.Time = p.since
		cs = after(cs, p.newest)
	case "dead":
		cs.State.Terminated = p.newest
		cs = after(cs, p.last)
	case "waiting":
		cs = crashLoop(p.instance, p.newest)
	}
	obs := Observe(p.container("app", "256Mi", cs).pod)
	for i := range obs {
		obs[i].Runtime = "NodeJS"
	}
	return obs
}

// run plays one history and compares the ledger with the truth.
func (w *world) run(t *testing.T, steps int) {
	l := &Ledger{}
	l.Update(nil, nil, w.clock)
	var looks [][]Observation
	told := map[memory.OOMKind]int64{}
	quick := func(memory.ContainerRef) memory.Bytes { return 100 * memory.MiB }
	see := func(obs []Observation) {
		looks = append(looks, obs)
		if w.next(4) == 0 { // killed after the update and before the write: all it did is lost
			before, c := stored(t, l), l.Clone()
			c.Update(obs, quick, w.clock)
			c.Forget(nil, w.clock.Add(48*time.Hour))
			if after := stored(t, l); !bytes.Equal(before, after) {
				t.Fatalf("what was done to a copy changed the ledger")
			}
		}
		var kills []memory.OOMKill
		w.within(len(obs), func() { kills = l.Update(obs, quick, w.clock) })
		for _, k := range kills {
			told[k.Kind]++
		}
		if w.next(3) == 0 {
			l = reborn(t, l)
		}
		if n := len(l.Update(looks[w.next(len(looks))], quick, w.clock)); n > 0 {
			t.Fatalf("an old look told again gave %d new kills", n)
		}
	}
	for range steps {
		alive := slices.DeleteFunc(slices.Clone(w.pods), func(p *worldPod) bool { return p.gone })
		switch choice := w.next(10); {
		case len(alive) == 0 || choice == 0 && len(alive) < 4:
			w.pass()
			p := w.bear()
			if w.next(2) == 0 {
				see(p.shown())
			}
		case choice == 1: // deleted; the watch shows the last state
			p := alive[w.next(len(alive))]
			p.gone = true
			see(p.shown())
		case choice < 5: // a list, in any order
			var obs []Observation
			for _, p := range alive {
				obs = append(obs, p.shown()...)
				w.freshCause(p)
			}
			for i := range obs {
				j := w.next(len(obs))
				obs[i], obs[j] = obs[j], obs[i]
			}
			see(obs)
		default:
			w.step(alive[w.next(len(alive))])
		}
	}
	for _, p := range w.pods {
		if !p.gone {
			see(p.shown())
		}
	}
	for kind, want := range w.truth {
		if got := l.Count("app", kind); got != want {
			t.Errorf("%s: counted %d, %d happened", kind, got, want)
		}
	}
	if !maps.Equal(told, w.truth) {
		t.Errorf("told %v, happened %v", told, w.truth)
	}
	for i, obs := range looks {
		if n := len(l.Update(obs, quick, w.clock)); n > 0 {
			t.Errorf("telling everything again: look %d gave %d new kills", i, n)
		}
	}
}

func newWorld(next func(int) int) *world {
	return &world{next: next, clock: t0, truth: map[memory.OOMKind]int64{}, within: func(_ int, look func()) { look() }}
}

// TestLedgerKnowsTheTruth plays random histories: kills of every kind, looks missed, operator kills at any point,
// relists in any order, pods that are deleted and come back by name. The ledger must count what happened, no more and
// no less.
func TestLedgerKnowsTheTruth(t *testing.T) {
	var kills int64
	for seed := range uint64(400) {
		w := newWorld(rand.New(rand.NewPCG(seed, 4)).IntN)
		w.run(t, 120)
		for _, n := range w.truth {
			kills += n
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d kills, each counted once", kills)
}

// TestLedgerKnowsTheTruthOfThousands is one workload of 3,000 pods that crash, go and come, looked at as a whole: every
// look is a list in another order, some are lost with the process, and pods that are gone are forgotten in time.
func TestLedgerKnowsTheTruthOfThousands(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(7, 11)).IntN)
	l := &Ledger{}
	l.Update(nil, nil, w.clock)
	for range 3000 {
		w.bear()
	}
	quick := func(memory.ContainerRef) memory.Bytes { return 100 * memory.MiB }
	for round := range 12 {
		for range 4000 {
			w.step(w.pods[w.next(len(w.pods))])
			w.clock = w.clock.Add(-time.Duration(w.next(500)) * time.Second) // many things happen in a minute
		}
		w.clock = w.clock.Add(10 * time.Minute)
		var obs []Observation
		live := map[types.UID]bool{}
		for _, p := range w.pods {
			obs = append(obs, p.shown()...)
			live[p.pod.UID] = true
			w.freshCause(p)
		}
		for i := range obs {
			j := w.next(len(obs))
			obs[i], obs[j] = obs[j], obs[i]
		}
		if round%3 == 0 {
			reborn(t, l).Update(obs, quick, w.clock)
		}
		l.Update(obs, quick, w.clock)
		l.Forget(live, w.clock)
		l = reborn(t, l)
		w.pods = slices.DeleteFunc(w.pods, func(*worldPod) bool { return w.next(20) == 0 })
		for len(w.pods) < 3000 {
			w.bear()
		}
	}
	for kind, want := range w.truth {
		if got := l.Count("app", kind); got != want {
			t.Errorf("%s: counted %d, %d happened", kind, got, want)
		}
	}
	if l.NotFollowed() != 0 {
		t.Errorf("%d pods are not followed", l.NotFollowed())
	}
	t.Logf("%v in %d bytes", w.truth, len(stored(t, l)))
}

// lookBudget is what a look of the ledger may take, per container that is shown.
var lookBudget = budget.Budget{Bytes: 64 << 10, PerByte: 4 << 10, CPU: 100 * time.Millisecond}

// FuzzLedger lets the fuzzer write the history: every kill is counted once, and every look stays within its budget.
func FuzzLedger(f *testing.F) {
	f.Add([]byte{0, 1, 9, 9, 9, 3, 9, 9, 9, 1})
	f.Add([]byte{0, 0, 0, 5, 5, 5, 5, 5, 5, 5, 2, 2, 2, 1, 1, 7, 7, 7, 7, 7, 7, 7, 2})
	f.Fuzz(func(t *testing.T, choices []byte) {
		steps := min(len(choices), 200)
		w := newWorld(func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := int(choices[0])
			choices = choices[1:]
			return c % n
		})
		w.within = func(containers int, look func()) { budget.Check(t, lookBudget, containers, look) }
		w.run(t, steps)
	})
}

// FuzzStoredLedger: whatever is stored, reading it neither panics nor takes more than a few times its size, nor gives a
// ledger that cannot be written.
func FuzzStoredLedger(f *testing.F) {
	l := &Ledger{}
	l.Update(
		Observe(makePod("web-1", "u1").container("app", "256Mi", after(running(1, 19), oom(0, 10, 18))).pod), nil, at(20),
	)
	data, _ := l.MarshalBinary()
	f.Add(data)
	f.Add([]byte(`{"v":1}`))
	old, err := os.ReadFile("testdata/ledger-v1.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(old)
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &Ledger{}
		var err error
		budget.Check(
			t, budget.Budget{Bytes: 256 << 10, PerByte: 128, CPU: time.Second}, len(data),
			func() { err = l.UnmarshalBinary(data) },
		)
		if err != nil {
			return
		}
		l.Update(Observe(makePod("web-1", "u1").container("app", "256Mi", crashLoop(1, oom(1, 20, 21))).pod), nil, at(21))
		reborn(t, l)
		if got, want := l.bytes, l.charged(); got != want {
			t.Errorf("the cursors are charged %d bytes, want %d", got, want)
		}
	})
}
