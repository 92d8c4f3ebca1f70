// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/kubelet"
)

// model is a workload whose containers end in every way, beside memfits that see of it what the API server shows now
// and then, and that are killed at any point.
type model struct {
	cluster
	leader, deposed *watcher
	deposedAt       time.Time
	deleted         map[types.UID]time.Time
	// relists are what was shown at some time, to be shown once more.
	relists []list
	counted map[memory.OOMKind]int64
}

// watcher is a memfit with what its inbox knows of pods.
type watcher struct {
	*process
	pending []list
}

// list is what some pods showed at one time.
type list struct {
	at           time.Time
	observations []oom.Observation
	// ends are how often the container of each pod had ended by then.
	ends map[types.UID]int64
}

// forgets: a pod that has been gone for an hour is forgotten, and what comes later of it would be counted again. No
// informer is as late.
const forgets = 50 * time.Minute

func newModel(t *testing.T, choose func(int) int, measured bool) *model {
	m := &model{
		cluster: cluster{
			Kubelet: kubelet.New(began, choose), t: t, unmeasured: !measured, seen: map[string]bool{},
			passed: map[types.UID]int32{}, told: map[string]map[string]bool{},
		},
		deleted: map[types.UID]time.Time{}, counted: map[memory.OOMKind]int64{},
	}
	p := build.Profile("shop", "web", v1alpha1.RuntimeNodeJS, build.Sizing(v1alpha1.SizingRecommend))
	m.named = governing(p)
	m.create()
	m.start()
	for m.version == 0 { // what happened before memfit ever wrote, nobody can know
		m.step(m.leader, points)
	}
	return m
}

func (m *model) create() *kubelet.Pod {
	return m.Create(fmt.Sprintf("web-%d", m.Choose(3)), 256*memory.MiB)
}

// start begins a memfit: it reads its checkpoint, and its informer lists every pod.
func (m *model) start() {
	p := &process{state: NewState()}
	m.restore(p)
	m.leader = &watcher{process: p}
	m.see(m.leader, m.list(m.Existing()...))
}

// list is what pods show now, in any order.
func (m *model) list(pods ...*kubelet.Pod) list {
	l := list{at: m.Now, ends: map[types.UID]int64{}}
	for _, p := range pods {
		l.observations = append(l.observations, oom.Observe(m.Shown(p))...)
		l.ends[p.UID] = p.Ends
	}
	for i := range l.observations {
		j := m.Choose(len(l.observations))
		l.observations[i], l.observations[j] = l.observations[j], l.observations[i]
	}
	m.relists = append(m.relists, l)
	return l
}

// see puts a list into a memfit's inbox, and samples of the containers that run.
func (m *model) see(w *watcher, l list) {
	for i := range l.observations {
		o := &l.observations[i]
		w.inbox.AddObservation(o)
		if m.unmeasured || o.Running.IsZero() {
			continue
		}
		w.inbox.AddSamples(memory.Sample{
			Container: o.Container, Time: l.at, Started: o.Running, RSS: 100 * memory.MiB, HasRSS: true, Exact: true,
		})
	}
	w.pending = append(w.pending, l)
}

// step is one reconcile of a memfit. It reports whether the memfit was killed.
func (m *model) step(w *watcher, killedAt int) (killed bool) {
	pending, version := w.pending, m.version
	if w.state.SteppedAt().IsZero() { // the first one takes what the pods show by then
		pending = append(slices.Clone(pending), m.list(m.Existing()...))
	}
	killed = m.reconcile(w.process, killedAt)
	if m.version > version { // it was written, so it must not be forgotten
		for _, p := range m.Pods {
			for _, l := range pending {
				if ends, shown := l.ends[p.UID]; shown {
					m.Seen(p, ends)
				}
			}
		}
		for _, k := range m.kills {
			m.counted[k.Kind]++
		}
	}
	if w.inbox.Empty() {
		w.pending = nil
	}
	return killed
}

// again is a list of some time ago, without pods that memfit has forgotten by now.
func (m *model) again(l list) list {
	forgotten := func(uid types.UID) bool {
		at, gone := m.deleted[uid]
		return gone && m.Now.Sub(at) > forgets
	}
	l.observations = slices.DeleteFunc(
		slices.Clone(l.observations), func(o oom.Observation) bool { return forgotten(o.Container.UID) },
	)
	l.ends = maps.Clone(l.ends)
	maps.DeleteFunc(l.ends, func(uid types.UID, _ int64) bool { return forgotten(uid) })
	return l
}

// delete ends a pod. The watch shows what it showed last, unless the memfit that sees it is killed.
func (m *model) delete(p *kubelet.Pod) {
	p.Deleted, m.deleted[p.UID] = true, m.Now
	m.see(m.leader, m.list(p))
}

// play lets one thing happen.
func (m *model) play() {
	alive := m.Existing()
	switch choice := m.Choose(16); {
	case len(alive) == 0 || choice == 0 && len(alive) < 4:
		m.Pass()
		if p := m.create(); m.Choose(2) == 0 {
			m.see(m.leader, m.list(p))
		}
	case choice == 1:
		m.delete(alive[m.Choose(len(alive))])
	case choice == 2: // a late event, or a list from a cache that trails
		m.see(m.leader, m.again(m.relists[m.Choose(len(m.relists))]))
	case choice == 3: // another memfit takes over, while the first one still runs
		m.deposed, m.deposedAt = m.leader, m.Now
		m.start()
	case choice == 4:
		m.stepDeposed()
	case choice == 5: // killed somewhere
		m.see(m.leader, m.list(alive...))
		if m.step(m.leader, m.Choose(points)) {
			m.start()
		}
	case choice < 9:
		m.see(m.leader, m.list(alive...))
		m.step(m.leader, points)
	default:
		m.Continue(alive[m.Choose(len(alive))])
	}
}

// stepDeposed lets the memfit that lost its lease go on, as long as it may not have noticed.
func (m *model) stepDeposed() {
	if m.deposed == nil || m.Now.Sub(m.deposedAt) > forgets/2 || slices.ContainsFunc(
		m.deposed.pending, func(l list) bool { return m.Now.Sub(l.at) > forgets },
	) {
		m.deposed = nil
		return
	}
	m.see(m.deposed, m.list(m.Existing()...))
	m.step(m.deposed, points)
}

// settle lets the leader see everything, undisturbed, until nothing is left that it must write.
func (m *model) settle() {
	m.see(m.leader, m.list(m.Existing()...))
	for len(m.leader.pending) > 0 {
		m.step(m.leader, points)
	}
}

// compare holds what the checkpoint counts, and what was told as new, to what happened.
func (m *model) compare() {
	for _, p := range m.Pods {
		if p.Deleted {
			m.Unseen(p)
		}
	}
	for _, kind := range []memory.OOMKind{memory.OOMMainProcess, memory.OOMHeapAbort, memory.OOMChildProcess} {
		want := m.Kills[kind]
		stored, told := m.leader.state.ledger.Count(kubelet.Container, kind), m.counted[kind]
		if kind == memory.OOMMainProcess { // one that nobody measured before is called by another name
			stored += m.leader.state.ledger.Count(kubelet.Container, memory.OOMAtStart)
			told += m.counted[memory.OOMAtStart]
		}
		if stored != want || told != want {
			m.t.Errorf("%s: %d happened, %d are on file, and %d were told", kind, want, stored, told)
		}
	}
	if n := m.leader.state.ledger.Count(kubelet.Container, memory.OOMAtStart); n > 0 && m.unmeasured {
		m.t.Errorf("%d kills are said to be at start, and nobody measures", n)
	}
	if n := m.leader.state.ledger.Count(kubelet.Container, memory.OOMSuspected); n > 0 {
		m.t.Errorf("%d kills are suspected, and nothing looked like one", n)
	}
	for event, identities := range m.told {
		if n := len(identities); n > 1 {
			m.t.Errorf("%d events say %q", n, event)
		}
	}
}

// repeat shows everything once more, which changes nothing.
func (m *model) repeat() {
	for _, l := range slices.Clone(m.relists) {
		m.see(m.leader, m.again(l))
		if m.Choose(4) == 0 {
			m.settle()
		}
	}
	m.settle()
}

// TestStepKnowsTheTruth plays random histories of ends of every kind, of which memfit sees some only as a restart
// count, late, twice, or in another order, while it is killed at any point between reading its checkpoint and acting,
// loses answers, and overlaps with its successor. What the checkpoint counts is what happened, no more and no less.
func TestStepKnowsTheTruth(t *testing.T) {
	t.Parallel()
	kills := map[memory.OOMKind]int64{}
	for seed := range uint64(120) {
		m := newModel(t, rand.New(rand.NewPCG(seed, 21)).IntN, seed%2 == 0)
		for range 120 {
			m.play()
		}
		m.settle()
		m.repeat()
		m.compare()
		for kind, n := range m.Kills {
			kills[kind] += n
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%v, each counted once", kills)
	if len(kills) < 3 {
		t.Error("too little happened")
	}
}
