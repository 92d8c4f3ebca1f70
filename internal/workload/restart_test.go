// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/kubelet"
)

// leaking is a workload of two pods whose profile says drift.action: Restart, in a cluster where one pod may be
// disturbed in an hour. The first pod has climbed towards its limit, and a step has just decided to restart it.
type leaking struct {
	cluster
	*process
	use  memory.Bytes // of the first pod
	last Effects
}

func newLeaking(t *testing.T) *leaking {
	l := &leaking{cluster: cluster{Kubelet: kubelet.New(began, func(int) int { return 0 }), t: t}}
	p := build.Profile("shop", "web", v1alpha1.RuntimeNative, func(spec *v1alpha1.MemoryProfileSpec) {
		spec.Drift.Action = v1alpha1.DriftRestart
	})
	l.named = governing(p)
	for range 2 {
		l.create(512 * memory.MiB)
	}
	l.process = l.cluster.process()
	l.Now = l.Now.Add(time.Hour)
	for l.use < 400*memory.MiB {
		if l.climbs(); len(l.last.Actions) > 0 {
			return l
		}
	}
	t.Fatal("a leak led to no restart")
	return nil
}

// step is one with what the pods use 15 seconds later.
func (l *leaking) step(uses ...memory.Bytes) {
	l.Now = l.Now.Add(15 * time.Second)
	l.listed(l.process)
	for i, use := range uses {
		pod := l.Pods[i]
		l.inbox.AddSamples(memory.Sample{
			Container: memory.ContainerRef{Namespace: "shop", Pod: pod.Name, UID: pod.UID, Container: kubelet.Container},
			Time:      l.Now, Started: pod.Started, RSS: use, HasRSS: true, Exact: true,
		})
	}
	s := l.snapshot(l.process)
	s.Allowance = &rollout.Allowance{Budget: rollout.ChangeBudget{Pods: 1}}
	l.state, l.last = Step(l.state, s, l.Now)
	l.inbox = PendingEvents{}
}

// climbs is a step with the first pod closer to its limit.
func (l *leaking) climbs() {
	l.use += 8 * memory.MiB
	l.step(l.use, 40*memory.MiB)
}

// expect compares the restarts that the last step wants with what is wanted, and those that the state counts.
func (l *leaking) expect(when string, wanted, counted int) {
	l.t.Helper()
	if got := len(l.last.Actions); got != wanted {
		l.t.Errorf("%s: %d actions, want %d: %+v", when, got, wanted, l.last.Status.Conditions)
	}
	got := len(l.state.rollout.PastRestarts)
	if st := l.state.rollout.Restart; st != nil && st.Phase == rollout.Evicting {
		got++
	}
	if got != counted {
		l.t.Errorf("%s: %d restarts count, want %d", when, got, counted)
	}
	if _, got := rollout.SumOf(l.state.Rollout().Spent); int(got) != counted {
		l.t.Errorf("%s: %d pods are taken of the change budget, want %d", when, got, counted)
	}
}

// TestARestartThatWasNotSentIsDecidedAnew: while nobody can read why, or the API server refuses it, nothing happens to
// the pod, and that takes nothing of what the owner and the cluster allow.
func TestARestartThatWasNotSentIsDecidedAnew(t *testing.T) {
	l := newLeaking(t)
	l.expect("written down", 1, 1)
	for range 3 { // the recommendation cannot be written
		l.climbs()
		l.expect("not sent", 1, 1)
	}
	l.state.rollout.Note(l.last.Actions[0], rollout.Outcome{Kind: rollout.OutcomeBudget}, l.Now)
	l.climbs()
	l.expect("refused", 0, 0)
	for range 4 {
		l.climbs()
	}
	l.expect("asked for again a minute later", 1, 1)
	stored := l.packed(l.state)
	if _, err := l.state.Unpack(&v1alpha1.MemoryCheckpoint{Status: stored}); err != nil {
		t.Fatal(err)
	}
	l.climbs()
	l.expect("memfit was killed before it was sent", 1, 1)
	for range 5 {
		l.step(40*memory.MiB, 40*memory.MiB) // it was given back
	}
	l.expect("not due any more, for a minute", 0, 0)
}

// TestARestartThatMayHaveBeenSentCounts: when the answer was lost, and when memfit was killed before it noted what it
// had sent. Nothing else is restarted within the cool-down.
func TestARestartThatMayHaveBeenSentCounts(t *testing.T) {
	for name, meet := range map[string]func(*leaking){
		"the answer is lost": func(l *leaking) { l.state.rollout.Note(l.last.Actions[0], rollout.Outcome{}, l.Now) },
		"memfit is killed": func(l *leaking) {
			l.Pods[0].Deleted = true // it was sent
			stored := l.packed(l.state)
			if _, err := l.state.Unpack(&v1alpha1.MemoryCheckpoint{Status: stored}); err != nil {
				l.t.Fatal(err)
			}
		},
	} {
		l := newLeaking(t)
		meet(l)
		for range 20 {
			l.climbs()
			l.expect(name, 0, 1)
		}
	}
}
