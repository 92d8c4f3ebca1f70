// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// crowd is many pods of one workload, each with containers that were killed once.
func crowd(pods, containers int) ([]Observation, map[types.UID]bool) {
	existing := make(map[types.UID]bool, pods)
	var obs []Observation
	for i := range pods {
		uid := types.UID(fmt.Sprintf("%08x-1111-2222-3333-444444444444", i))
		existing[uid] = true
		m := makePod(fmt.Sprintf("web-%05d", i), uid).created(1)
		for c := range containers {
			m = m.container(fmt.Sprintf("app-%02d", c), "256Mi", after(running(1, 19), oom(0, 10, 18)))
		}
		obs = append(obs, Observe(m.pod)...)
	}
	return obs, existing
}

func killsOf(l *Ledger) int64 {
	kills, _ := l.Totals()
	return kills
}

// storedAtMost is what a ledger may take: its cursors and its head.
const storedAtMost = cursorBytes + 112<<10

// TestManyRestartedPodsAreCountedOnce looks five times at workloads whose pods were all killed, as relists and restarts
// of memfit do.
func TestManyRestartedPodsAreCountedOnce(t *testing.T) {
	for name, tc := range map[string]struct{ pods, containers int }{
		"1,500 pods": {1500, 1}, "10,000 pods": {10_000, 1}, "20 containers in 1,000 pods": {1000, 20},
	} {
		t.Run(name, func(t *testing.T) {
			obs, existing := crowd(tc.pods, tc.containers)
			l := &Ledger{}
			l.Update(nil, nil, at(0))
			for i := range 5 {
				now := at(20 + float64(i))
				l.Update(obs, nil, now)
				l.Forget(existing, now)
				l = reborn(t, l)
			}
			if got, want := killsOf(l), int64(tc.pods*tc.containers); got != want {
				t.Errorf("counted %d kills, %d happened", got, want)
			}
			if l.NotFollowed() != 0 {
				t.Errorf("%d pods are not followed", l.NotFollowed())
			}
			size := len(stored(t, l))
			if size > storedAtMost {
				t.Errorf("%d bytes, want at most %d", size, storedAtMost)
			}
			t.Logf("%d bytes, %.1f for each restarted container", size, float64(size)/float64(tc.pods*tc.containers))
		})
	}
}

// TestAFullLedgerSaysSo: what does not fit is not counted, which is said; nothing is counted twice, and room is used
// when pods go.
func TestAFullLedgerSaysSo(t *testing.T) {
	const pods = 30_000
	obs, existing := crowd(pods, 1)
	l := &Ledger{}
	l.Update(nil, nil, at(0))
	for i := range 3 {
		l.Update(obs, nil, at(20+float64(i)))
		l.Forget(existing, at(20+float64(i)))
		l = rebornFull(t, l)
	}
	if got, want := killsOf(l)+int64(l.NotFollowed()), int64(pods); got != want || l.NotFollowed() == 0 {
		t.Errorf("counted %d and did not follow %d, want %d together, and some of each", killsOf(l), l.NotFollowed(), want)
	}
	if size := len(stored(t, l)); size > storedAtMost {
		t.Errorf("%d bytes, want at most %d", size, storedAtMost)
	}
	const left = pods / 3 // most of the pods go
	for _, o := range obs[left:] {
		delete(existing, o.Container.UID)
	}
	l.Forget(existing, at(30))
	for i := range 3 {
		l.Update(obs[:left], nil, at(31+float64(i)))
		l.Forget(existing, at(31+float64(i)))
	}
	if l.NotFollowed() != 0 {
		t.Errorf("%d of %d living pods are not followed, although most pods went", l.NotFollowed(), len(existing))
	}
	if got := killsOf(l); got > pods {
		t.Errorf("counted %d kills, %d happened", got, pods)
	}
}

// rebornFull keeps who is not followed, as a ledger that is rolled back does.
func rebornFull(t *testing.T, l *Ledger) *Ledger {
	t.Helper()
	if err := l.UnmarshalBinary(stored(t, l)); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestNoMixtureBreaksTheBound: whatever limits, restart counts, counters and names containers have, a ledger takes no
// more than it may.
func TestNoMixtureBreaksTheBound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := &Ledger{}
	l.Update(nil, nil, at(0))
	existing := map[types.UID]bool{}
	for i := range 25_000 {
		uid := types.UID(fmt.Sprint("pod-", i))
		existing[uid] = true
		ref := memory.ContainerRef{
			Namespace: "shop", Pod: fmt.Sprintf("%0253d", i), UID: uid, Container: fmt.Sprintf("%060d", i%1000),
		}
		restarts := int32(random.Uint32() >> 1)
		o := Observation{
			Container: ref, Class: App, PodCreated: at(1), Restarts: restarts, ContainerID: "containerd://abc",
			Running: at(float64(i)),
			Limit:   memory.Bytes(random.Int64N(1<<50) | 1),
		}
		o.Ended = []Termination{{
			Index: restarts - 1, ContainerID: fmt.Sprint("containerd://", i), Reason: "Error", ExitCode: 1,
			Finished: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		}}
		l.Update([]Observation{o}, nil, at(float64(i)))
		o.Restarts, o.Ended = math.MaxInt32, nil
		l.Update([]Observation{o}, nil, at(float64(i)))
		l.UpdateCounters(
			[]memory.KillCounter{{Container: ref, ContainerID: "c", Count: 1, Time: at(1e9)}}, nil, nil, at(float64(i)),
		)
	}
	l.Forget(existing, at(25_000))
	for round := range 30 { // kills with long names everywhere
		for name := range l.names {
			l.record([]memory.OOMKill{{
				Container: memory.ContainerRef{Pod: fmt.Sprintf("%0253d", round), Container: name}, Kind: memory.OOMMainProcess,
				Time: at(float64(round)), Why: fmt.Sprintf("%0200d", round),
			}}, at(float64(round)))
		}
	}
	if size := len(stored(t, l)); size > storedAtMost {
		t.Errorf("%d bytes, want at most %d", size, storedAtMost)
	}
	if l.bytes != l.storedSize() {
		t.Errorf("charged %d bytes, the cursors cost %d", l.bytes, l.storedSize())
	}
	if l.NotFollowed() == 0 {
		t.Error("all of it fitted: the test does not reach the bound")
	}
	reborn(t, l)
}
