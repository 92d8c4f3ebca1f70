// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// TestCounters tells how container_oom_events_total, which only lives as long as the container and the kubelet, becomes
// kills.
func TestCounters(t *testing.T) {
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
	read := func(minute float64, instance int32, count int64) func(*Ledger) []memory.OOMKill {
		r := memory.KillCounter{Container: ref, ContainerID: id(instance), Count: count, Time: at(minute)}
		return func(l *Ledger) []memory.OOMKill {
			return l.UpdateCounters([]memory.KillCounter{r}, nil, nil, at(minute))
		}
	}
	anonymous := func(minute float64, count int64) func(*Ledger) []memory.OOMKill {
		r := memory.KillCounter{Container: ref, Count: count, Time: at(minute)}
		return func(l *Ledger) []memory.OOMKill {
			return l.UpdateCounters([]memory.KillCounter{r}, nil, nil, at(minute))
		}
	}
	see := func(minute float64, cs corev1.ContainerStatus) func(*Ledger) []memory.OOMKill {
		obs := Observe(makePod("web-1", "u1").container("app", "256Mi", cs).pod)
		return func(l *Ledger) []memory.OOMKill { return l.Update(obs, nil, at(minute)) }
	}
	type counts map[memory.OOMKind]int64

	for name, tc := range map[string]struct {
		steps []func(*Ledger) []memory.OOMKill
		want  counts
	}{
		"children die while the container lives": {
			steps: []func(*Ledger) []memory.OOMKill{see(0, running(0, 0)), read(1, 0, 0), read(2, 0, 2), read(3, 0, 2),
				read(4, 0, 3)},
			want: counts{memory.OOMChildProcess: 3},
		},
		"first reading is not 0: those kills happened in this instance": {
			steps: []func(*Ledger) []memory.OOMKill{see(0, running(0, 0)), read(2, 0, 2)},
			want:  counts{memory.OOMChildProcess: 2},
		},
		"a kubelet restart resets the counter": {
			steps: []func(*Ledger) []memory.OOMKill{see(0, running(0, 0)), read(1, 0, 5), read(2, 0, 0), read(3, 0, 1)},
			want:  counts{memory.OOMChildProcess: 6},
		},
		"a kubelet restart and new kills before the next reading": {
			steps: []func(*Ledger) []memory.OOMKill{see(0, running(0, 0)), read(1, 0, 5), read(3, 0, 2)},
			want:  counts{memory.OOMChildProcess: 7},
		},
		"a node that lies: no number wraps into one that counts": {
			steps: []func(*Ledger) []memory.OOMKill{see(0, running(0, 0)), read(1, 0, 1), read(2, 0, 5-1<<32)},
			want:  counts{memory.OOMChildProcess: 1},
		},
		"readings out of order": {
			steps: []func(*Ledger) []memory.OOMKill{see(0, running(0, 0)), read(3, 0, 2), read(2, 0, 1), read(4, 0, 2)},
			want:  counts{memory.OOMChildProcess: 2},
		},
		"a new instance starts at 0": {
			steps: []func(*Ledger) []memory.OOMKill{
				see(0, running(0, 0)), read(1, 0, 2), see(10, after(running(1, 9), end(0, "Error", 1, 0, 8))), read(11, 1, 2)},
			want: counts{memory.OOMChildProcess: 4},
		},
		"a child's kill, then a normal stop labeled OOMKilled: one kill, not two": {
			steps: []func(*Ledger) []memory.OOMKill{
				see(0, running(0, 0)), read(1, 0, 1), see(10, ended(0, end(0, "OOMKilled", 143, 0, 8)))},
			want: counts{memory.OOMChildProcess: 1},
		},
		"a child's kill, then the main process's": {
			steps: []func(*Ledger) []memory.OOMKill{
				see(0, running(0, 0)), read(1, 0, 1), see(10, ended(0, oom(0, 0, 8)))},
			want: counts{memory.OOMChildProcess: 1, memory.OOMMainProcess: 1},
		},
		"the counter shows the main process's kill before status does: one kill, and it gets its right name": {
			steps: []func(*Ledger) []memory.OOMKill{
				see(0, running(0, 0)), read(8, 0, 1), see(10, ended(0, oom(0, 0, 8)))},
			want: counts{memory.OOMMainProcess: 1},
		},
		"status first, then the dying series: one kill": {
			steps: []func(*Ledger) []memory.OOMKill{
				see(0, running(0, 0)), see(10, ended(0, oom(0, 0, 8))), read(8.5, 0, 1), read(9, 0, 1)},
			want: counts{memory.OOMMainProcess: 1},
		},
		"a source without container IDs": {
			steps: []func(*Ledger) []memory.OOMKill{
				see(0, running(0, 0)), anonymous(1, 1), see(
					10, after(running(1, 9), oom(0, 0, 8)),
				), anonymous(10, 0), anonymous(12, 2)},
			want: counts{memory.OOMChildProcess: 3, memory.OOMMainProcess: 1},
		},
		"a SIGKILL after counted kills is explained": {
			steps: []func(*Ledger) []memory.OOMKill{see(0, running(0, 0)), read(1, 0, 1),
				see(10, ended(0, end(0, "Error", 137, 0, 8)))},
			want: counts{memory.OOMChildProcess: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, crash := range []bool{false, true} {
				l, told := &Ledger{}, 0
				for _, step := range tc.steps {
					told += len(step(l))
					if crash {
						l = reborn(t, l)
					}
					if again := step(l); len(again) > 0 {
						t.Errorf("the same reading twice counted again: %+v", again)
					}
				}
				got := counts{}
				maps.Copy(got, l.byName("app").Dropped)
				for _, k := range l.Kills("app") {
					got[k.Kind]++
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("crash=%v (-want +got):\n%s", crash, diff)
				}
				if int64(told) != l.Total("app") {
					t.Errorf("crash=%v: told %d kills, counted %d", crash, told, l.Total("app"))
				}
			}
		})
	}
}

// TestNoNewsChangesNothing: a reading that is said to be no news could as well not have come.
func TestNoNewsChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	var quiet, loud int
	for range 300 {
		var l Ledger
		at := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		for range 40 {
			at = at.Add(time.Minute)
			reading := memory.KillCounter{
				Container: memory.ContainerRef{
					Namespace: "shop", Pod: "web-1", UID: types.UID(strconv.Itoa(r.IntN(2))), Container: "app",
				},
				ContainerID: []string{"", "containerd://a", "containerd://b"}[r.IntN(3)], Count: int64(r.IntN(3)), Time: at,
			}
			if l.Relevant(reading) {
				loud++
				l.UpdateCounters([]memory.KillCounter{reading}, nil, nil, at)
				continue
			}
			quiet++
			with := l.Clone()
			if kills := with.UpdateCounters([]memory.KillCounter{reading}, nil, nil, at); len(kills) > 0 {
				t.Fatalf("%+v is no news, and %d kills were counted for it", reading, len(kills))
			}
			l.begin(at) // the passing of time is none of the reading's
			if !reflect.DeepEqual(&with, &l) {
				t.Fatalf("%+v is no news, and the ledger changed from\n%+v to\n%+v", reading, &l, &with)
			}
		}
	}
	if quiet < 1000 || loud < 1000 {
		t.Errorf("%d readings were no news and %d were: the test tries too little", quiet, loud)
	}
}

// TestAKillReadAfterARaise: what the first reading after a raise tells may have happened before it.
func TestAKillReadAfterARaise(t *testing.T) {
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
	type step = func(*Ledger) []memory.OOMKill
	read := func(second float64, count int64) step {
		now := at(second / 60)
		r := memory.KillCounter{Container: ref, ContainerID: id(0), Count: count, Time: now}
		return func(l *Ledger) []memory.OOMKill {
			if !l.Relevant(r) {
				return nil
			}
			return l.UpdateCounters([]memory.KillCounter{r}, nil, nil, now)
		}
	}
	see := func(second float64, limit string) step {
		m := resizedTo(limit, running(0, 0))
		if limit == "128Mi" {
			m = makePod("web-1", "u1").container("app", limit, effective(running(0, 0), limit))
		}
		return func(l *Ledger) []memory.OOMKill { return l.Update(Observe(m.pod), nil, at(second/60)) }
	}
	for name, tc := range map[string]struct {
		steps        []step
		limit, asked string // of the last kill
	}{
		"a minute after the last reading": {
			steps: []step{see(0, "128Mi"), read(60, 7), see(75, "320Mi"), read(122, 9)}, limit: "128Mi", asked: "320Mi",
		},
		"raised twice in between": {
			steps: []step{see(0, "128Mi"), read(60, 7), see(75, "320Mi"), see(90, "352Mi"), read(122, 9)},
			limit: "128Mi", asked: "352Mi",
		},
		"a container of which nothing was known": {
			steps: []step{see(0, "128Mi"), see(75, "320Mi"), read(122, 1)}, limit: "128Mi", asked: "320Mi",
		},
		"a reading in between, that nothing happened": {
			steps: []step{see(0, "128Mi"), read(60, 7), see(75, "320Mi"), read(122, 7), read(182, 9)}, limit: "320Mi",
		},
		"a reading in between, of a container of which nothing was known": {
			steps: []step{see(0, "128Mi"), see(75, "320Mi"), read(122, 0), read(182, 2)}, limit: "320Mi",
		},
		"a reading in between that may be older than the raise": {
			steps: []step{see(0, "128Mi"), read(60, 7), see(75, "320Mi"), read(80, 7), read(122, 9)},
			limit: "128Mi", asked: "320Mi",
		},
		"killed again, at the higher limit": {
			steps: []step{see(0, "128Mi"), read(60, 7), see(75, "320Mi"), read(122, 9), read(182, 10)}, limit: "320Mi",
		},
		"a clock that went back a day": {
			steps: []step{
				see(86400, "128Mi"), read(86460, 7), see(86475, "320Mi"), read(0, 7), see(30, "320Mi"), read(86482, 9)},
			limit: "320Mi",
		},
		"lowered since": {
			steps: []step{see(0, "128Mi"), read(60, 7), see(75, "320Mi"), see(90, "100Mi"), read(122, 9)}, limit: "100Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			for _, step := range tc.steps {
				step(&l)
			}
			kills := l.Kills("app")
			if len(kills) == 0 {
				t.Fatal("no kill was counted")
			}
			if last := kills[len(kills)-1]; last.Limit != size(tc.limit) || last.Requested != size(tc.asked) {
				t.Errorf("the last kill counts with %s, %s asked for; want %s, %s", last.Limit, last.Requested, tc.limit, tc.asked)
			}
		})
	}
}

// TestAKillAtAnImpossibleTimeIsStored: the time is its node's word. Where the kill is already on file as one of a
// child, its entry is replaced, and a time that JSON cannot hold would keep the whole workload from being stored.
func TestAKillAtAnImpossibleTimeIsStored(t *testing.T) {
	l := &Ledger{}
	l.Update(Observe(makePod("web-1", "u1").container("app", "256Mi", running(0, 0)).pod), nil, at(0))
	counted := l.UpdateCounters([]memory.KillCounter{
		{Container: memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}, ContainerID: id(0),
			Count: 1, Time: at(20)},
	}, nil, nil, at(20))
	died := oom(0, 0, 20)
	died.FinishedAt = metav1.Time{Time: time.Date(-3000, 1, 1, 0, 0, 0, 0, time.UTC)}
	l.Update(Observe(makePod("web-1", "u1").container("app", "256Mi", crashLoop(0, died)).pod), nil, at(21))
	if len(counted) != 1 || l.Total("app") != 1 || l.Count("app", memory.OOMMainProcess) != 1 {
		t.Errorf("counted %+v, then %+v", counted, l.Kills("app"))
	}
	if got := reborn(t, l).Total("app"); got != 1 {
		t.Errorf("%d kills are stored, want 1", got)
	}
}
