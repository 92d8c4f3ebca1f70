// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/kubelet"
)

// world is a kubelet that knows the truth, beside a ledger that only sees what its pods show at the moments of looks.
type world struct {
	*kubelet.Kubelet
	// within calls look, which shows the ledger so many containers and lets it find so many kills, and may hold it to a
	// budget.
	within func(containers, kills int, look func())
}

// limitOfAll is the limit of every container.
const limitOfAll = 256 * memory.MiB

// create starts a pod under one of three names, so that pods come back under the names of deleted ones.
func (w *world) create() *kubelet.Pod {
	return w.Create(fmt.Sprintf("web-%d", w.Choose(3)), limitOfAll)
}

// shown is what the API server shows of a pod.
func (w *world) shown(p *kubelet.Pod) []Observation {
	obs := Observe(w.Shown(p))
	for i := range obs {
		obs[i].Runtime = "NodeJS"
	}
	return obs
}

// run plays one history and compares the ledger with the truth.
func (w *world) run(t *testing.T, steps int) {
	l := &Ledger{}
	l.Update(nil, nil, w.Now)
	var looks [][]Observation
	told := map[memory.OOMKind]int64{}
	quick := func(memory.ContainerRef) memory.Bytes { return 100 * memory.MiB }
	see := func(obs []Observation) {
		looks = append(looks, obs)
		if w.Choose(4) == 0 { // killed after the update and before the write: all it did is lost
			before, c := stored(t, l), l.Clone()
			c.Update(obs, quick, w.Now)
			c.Forget(nil, w.Now.Add(48*time.Hour))
			if after := stored(t, l); !bytes.Equal(before, after) {
				t.Fatalf("what was done to a copy changed the ledger")
			}
		}
		var kills []memory.OOMKill
		ahead := l.Clone()
		w.within(len(obs), len(ahead.Update(obs, quick, w.Now)), func() { kills = l.Update(obs, quick, w.Now) })
		for _, k := range kills {
			told[k.Kind]++
		}
		if w.Choose(3) == 0 {
			l = reborn(t, l)
		}
		if n := len(l.Update(looks[w.Choose(len(looks))], quick, w.Now)); n > 0 {
			t.Fatalf("an old look told again gave %d new kills", n)
		}
	}
	for range steps {
		alive := w.Existing()
		switch choice := w.Choose(10); {
		case len(alive) == 0 || choice == 0 && len(alive) < 4:
			w.Pass()
			p := w.create()
			if w.Choose(2) == 0 {
				see(w.shown(p))
			}
		case choice == 1: // deleted; the watch shows the last state
			p := alive[w.Choose(len(alive))]
			p.Deleted = true
			see(w.shown(p))
		case choice < 5: // a list, in any order
			var obs []Observation
			for _, p := range alive {
				obs = append(obs, w.shown(p)...)
				w.Seen(p, p.Ends)
			}
			for i := range obs {
				j := w.Choose(len(obs))
				obs[i], obs[j] = obs[j], obs[i]
			}
			see(obs)
		default:
			w.Continue(alive[w.Choose(len(alive))])
		}
	}
	for _, p := range w.Pods {
		if !p.Deleted {
			see(w.shown(p))
		}
	}
	for kind, want := range w.Kills {
		if got := l.Count("app", kind); got != want {
			t.Errorf("%s: counted %d, %d happened", kind, got, want)
		}
	}
	if !maps.Equal(told, w.Kills) {
		t.Errorf("told %v, happened %v", told, w.Kills)
	}
	for i, obs := range looks {
		if n := len(l.Update(obs, quick, w.Now)); n > 0 {
			t.Errorf("telling everything again: look %d gave %d new kills", i, n)
		}
	}
}

func newWorld(next func(int) int) *world {
	return &world{Kubelet: kubelet.New(t0, next), within: func(_, _ int, look func()) { look() }}
}

// TestLedgerKnowsTheTruth plays random histories: kills of every kind, looks missed, operator kills at any point,
// relists in any order, pods that are deleted and come back by name. The ledger must count what happened, no more and
// no less.
func TestLedgerKnowsTheTruth(t *testing.T) {
	var kills int64
	for seed := range uint64(400) {
		w := newWorld(rand.New(rand.NewPCG(seed, 4)).IntN)
		w.run(t, 120)
		for _, n := range w.Kills {
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
	l.Update(nil, nil, w.Now)
	for range 3000 {
		w.create()
	}
	quick := func(memory.ContainerRef) memory.Bytes { return 100 * memory.MiB }
	for round := range 12 {
		for range 4000 {
			w.Continue(w.Pods[w.Choose(len(w.Pods))])
			w.Now = w.Now.Add(-time.Duration(w.Choose(500)) * time.Second) // many things happen in a minute
		}
		w.Now = w.Now.Add(10 * time.Minute)
		var obs []Observation
		existing := map[types.UID]bool{}
		for _, p := range w.Pods {
			obs = append(obs, w.shown(p)...)
			existing[p.UID] = true
			w.Seen(p, p.Ends)
		}
		for i := range obs {
			j := w.Choose(len(obs))
			obs[i], obs[j] = obs[j], obs[i]
		}
		if round%3 == 0 {
			reborn(t, l).Update(obs, quick, w.Now)
		}
		l.Update(obs, quick, w.Now)
		l.Forget(existing, w.Now)
		l = reborn(t, l)
		w.Pods = slices.DeleteFunc(w.Pods, func(*kubelet.Pod) bool { return w.Choose(20) == 0 })
		for len(w.Pods) < 3000 {
			w.create()
		}
	}
	for kind, want := range w.Kills {
		if got := l.Count("app", kind); got != want {
			t.Errorf("%s: counted %d, %d happened", kind, got, want)
		}
	}
	if l.NotFollowed() != 0 {
		t.Errorf("%d pods are not followed", l.NotFollowed())
	}
	t.Logf("%v in %d bytes", w.Kills, len(stored(t, l)))
}

// lookBudget is what a look of the ledger may take, per container that is shown and per kill that it finds: a container
// that restarted 100 times since the last look leaves 100 records.
var lookBudget = budget.Budget{Bytes: 64 << 10, PerByte: 4 << 10, CPU: time.Second}

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
		w.within = func(containers, kills int, look func()) { budget.Check(t, lookBudget, containers+kills, look) }
		w.run(t, steps)
	})
}

// FuzzStoredLedger: whatever is stored, neither reading it nor what comes after panics; it takes no more than a few
// times its size, and gives a ledger that can be written.
func FuzzStoredLedger(f *testing.F) {
	l := &Ledger{}
	l.Update(
		Observe(makePod("web-1", "u1").container("app", "256Mi", after(running(1, 19), oom(0, 10, 18))).pod), nil, at(20),
	)
	data, _ := l.MarshalBinary()
	f.Add(data)
	f.Add([]byte("\x02{}"))
	head := `{"names":{"a":null,"app":{"kills":[{"c":{"p":"web-1","u":"u1","n":"app"},"k":"ChildProcess","ao":true}],` +
		`"dropped":{"ChildProcess":-7},"droppedStalls":-7}}}`
	f.Add(append(binary.AppendUvarint(nil, uint64(len(head))), head...))
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
		if kills, stalls := l.Totals(); kills < 0 || stalls < 0 {
			t.Errorf("%d kills and %d stalls are read", kills, stalls)
		}
		goOnAfter(l)
		reborn(t, l)
		if got, want := l.bytes, l.storedSize(); got != want {
			t.Errorf("the cursors are charged %d bytes, want %d", got, want)
		}
	})
}

// goOnAfter tells a ledger that was read of everything once: an end, a counter, what agents saw, a stall, and pods that
// are gone.
func goOnAfter(l *Ledger) {
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
	exists := map[types.UID]bool{"u1": true}
	l.UpdateCounters(
		[]memory.KillCounter{{Container: ref, ContainerID: id(1), Count: 1, Time: at(20.5)}}, nil, nil, at(20.5),
	)
	kill := AgentKill{Container: ref, Time: at(20.5), Child: true, Limit: 64 * memory.MiB, Account: "grew"}
	l.UpdateAgents([]AgentKill{kill}, nil, nil, at(20.5))
	l.Update(Observe(makePod("web-1", "u1").container("app", "256Mi", crashLoop(1, oom(1, 20, 21))).pod), nil, at(21))
	stall := memory.Stall{Container: ref, Limit: 256 * memory.MiB, Since: at(22), Confirmed: at(23)}
	l.UpdateStalls([]memory.Stall{stall}, exists, at(23))
	l.ExplainStalls([]AgentStall{{Container: ref, Started: at(22), Account: "grew"}}, at(23))
	l.KillsAndStalls(at(24))
	l.UpdateStalls(nil, nil, at(24))
	l.Forget(nil, at(24))
	l.Forget(nil, at(24).Add(2*goneFor))
}
