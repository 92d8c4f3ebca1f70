// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// TestAgents tells how what agents saw and what the kubelet reports of the same kills become one record of each,
// in any order. Every story is repeated with memfit killed after every step, and every step is taken twice.
func TestAgents(t *testing.T) {
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
	type step func(*Ledger) (found, explained []memory.OOMKill)
	sees := func(minute float64, child bool, limit string, ago time.Duration) step {
		a := AgentKill{Container: ref, Time: at(minute).Add(-ago), Child: child, Limit: size(limit), Account: "node died"}
		return func(l *Ledger) (found, explained []memory.OOMKill) {
			return l.UpdateAgents([]AgentKill{a}, nil, uses(size("256Mi")), at(minute))
		}
	}
	whose := func(minute float64, child, atLimit, byNode bool) step {
		a := AgentKill{
			Container: ref, Time: at(minute), Child: child, Limit: size("256Mi"), AtLimit: atLimit, ByNode: byNode,
			Account: "node died",
		}
		return func(l *Ledger) (found, explained []memory.OOMKill) {
			return l.UpdateAgents([]AgentKill{a}, nil, uses(size("256Mi")), at(minute))
		}
	}
	// short is a status on a node with MemoryPressure, of a container that was last seen with so much in use.
	short := func(minute float64, m podMaker, peak string) step {
		obs := Observe(m.pod)
		for i := range obs {
			obs[i].NodePressureSince = at(1)
		}
		return func(l *Ledger) (found, explained []memory.OOMKill) {
			return l.Update(obs, uses(size(peak)), at(minute)), nil
		}
	}
	status := func(minute float64, m podMaker) step {
		return func(l *Ledger) (found, explained []memory.OOMKill) {
			return l.Update(Observe(m.pod), nil, at(minute)), nil
		}
	}
	pod := func(cs corev1.ContainerStatus) podMaker { return makePod("web-1", "u1").container("app", "256Mi", cs) }
	counter := func(minute float64, count int64) step {
		r := memory.KillCounter{Container: ref, ContainerID: id(0), Count: count, Time: at(minute)}
		return func(l *Ledger) (found, explained []memory.OOMKill) {
			return l.UpdateCounters([]memory.KillCounter{r}, nil, uses(size("256Mi")), at(minute)), nil
		}
	}
	begun := status(0, pod(running(0, 0)))
	type kill struct {
		Kind         memory.OOMKind
		Limit, Asked string
		Account      string
	}
	const no = 0
	for name, tc := range map[string]struct {
		steps            []step
		want             []kill
		found, explained int
	}{
		"the kubelet first, then the agent": {
			steps: []step{begun, status(8.1, pod(ended(0, oom(0, 0, 8)))), sees(8.2, false, "256Mi", 10*time.Second)},
			want:  []kill{{memory.OOMMainProcess, "256Mi", "0", "node died"}}, found: 1, explained: 1,
		},
		"the agent first: the end of a container shows in its status": {
			steps: []step{begun, sees(8.1, false, "256Mi", 5*time.Second)}, found: no,
		},
		"a child, before the kernel's counter is read": {
			steps: []step{begun, sees(8.1, true, "256Mi", 5*time.Second), counter(8.3, 1), counter(9, 1)},
			want:  []kill{{memory.OOMChildProcess, "256Mi", "0", "node died"}}, found: 1,
		},
		"a child that the counter told of first": {
			steps: []step{begun, counter(8.3, 1), sees(8.4, true, "256Mi", 10*time.Second)},
			want:  []kill{{memory.OOMChildProcess, "256Mi", "0", "node died"}}, found: 1, explained: 1,
		},
		"an ordinary end after a child that only the agent told of": {
			steps: []step{
				begun, sees(8.1, true, "256Mi", 5*time.Second), status(11.1, pod(ended(0, end(0, "OOMKilled", 3, 0, 11)))),
			},
			want: []kill{{memory.OOMChildProcess, "256Mi", "0", "node died"}}, found: 1,
		},
		"a kill after a child that only the agent told of": {
			steps: []step{begun, sees(8.1, true, "256Mi", 5*time.Second), status(11.1, pod(ended(0, oom(0, 0, 11))))},
			want: []kill{
				{memory.OOMChildProcess, "256Mi", "0", "node died"}, {memory.OOMMainProcess, "256Mi", "0", ""},
			},
			found: 2,
		},
		"an ordinary end of the next instance": {
			steps: []step{
				begun, sees(8.1, true, "256Mi", 5*time.Second), status(11.1, pod(ended(0, end(0, "Error", 3, 0, 11)))),
				status(12, pod(running(1, 11.5))), status(20, pod(ended(1, end(1, "OOMKilled", 3, 11.5, 19)))),
			},
			want: []kill{
				{memory.OOMChildProcess, "256Mi", "0", "node died"}, {memory.OOMChildProcess, "256Mi", "0", ""},
			},
			found: 2,
		},
		"two children, of which the agent tells the last": {
			steps: []step{begun, sees(8.1, true, "256Mi", 0), counter(8.3, 2)},
			want:  []kill{{memory.OOMChildProcess, "256Mi", "0", "node died"}, {memory.OOMChildProcess, "256Mi", "0", ""}},
			found: 2,
		},
		"two children one after the other, and a counter that nobody reads": {
			steps: []step{begun, sees(8, true, "256Mi", 0), sees(20, true, "256Mi", 0)},
			want: []kill{
				{memory.OOMChildProcess, "256Mi", "0", "node died"}, {memory.OOMChildProcess, "256Mi", "0", "node died"},
			},
			found: 2,
		},
		"taken for a child until the container ends": {
			steps: []step{begun, sees(8, true, "256Mi", 0), status(8.1, pod(ended(0, oom(0, 0, 8))))},
			want:  []kill{{memory.OOMMainProcess, "256Mi", "0", "node died"}}, found: 1,
		},
		"a child, and the main process a minute later": {
			steps: []step{begun, sees(7, true, "256Mi", 0), status(8.1, pod(ended(0, oom(0, 0, 8))))},
			want:  []kill{{memory.OOMChildProcess, "256Mi", "0", "node died"}, {memory.OOMMainProcess, "256Mi", "0", ""}},
			found: 2,
		},
		"of before memfit began to count": {
			steps: []step{begun, sees(8, true, "256Mi", time.Hour)}, found: no,
		},
		"a node whose clock is an hour ahead": {
			steps: []step{begun, sees(8, true, "256Mi", -time.Hour)}, found: no,
		},
		"a limit that was not effective after all": {
			steps: []step{
				begun, status(1, resizedTo("512Mi", running(0, 0))),
				status(8.1, resizedTo("512Mi", ended(0, oom(0, 0, 8)))), sees(8.2, false, "256Mi", 10*time.Second),
			},
			want: []kill{{memory.OOMMainProcess, "256Mi", "512Mi", "node died"}}, found: 1, explained: 1,
		},
		"a limit that was effective, though nobody could prove it": {
			steps: []step{
				begun, status(8.1, pod(ended(0, end(0, "Error", 1, 0, 8)))),
				status(8.2, resizedTo("512Mi", after(ended(0, end(0, "Error", 1, 0, 8)), nil))),
				status(9, resizedTo("512Mi", after(running(1, 8.5), end(0, "Error", 1, 0, 8)))),
				status(20, resizedTo("512Mi", ended(1, oom(1, 8.5, 20)))), sees(20.1, false, "512Mi", 5*time.Second),
			},
			want: []kill{{memory.OOMMainProcess, "512Mi", "0", "node died"}}, found: 1, explained: 1,
		},
		"a limit that was lowered after the agent had read it last": {
			steps: []step{
				begun, status(8, resizedTo("64Mi", running(0, 0))), status(8.1, resizedTo("64Mi", ended(0, oom(0, 0, 8)))),
				sees(8.2, false, "256Mi", 10*time.Second),
			},
			want: []kill{{memory.OOMMainProcess, "64Mi", "0", "node died"}}, found: 1, explained: 1,
		},
		"the same, taken for a child until the container ends": {
			steps: []step{
				begun, sees(8, true, "256Mi", 0), status(8.1, resizedTo("64Mi", ended(0, oom(0, 0, 8)))),
			},
			want: []kill{{memory.OOMMainProcess, "64Mi", "0", "node died"}}, found: 1,
		},
		"a page of the limit is no other limit": {
			steps: []step{begun, status(8.1, pod(ended(0, oom(0, 0, 8)))), sees(8.2, false, "268431360", 10*time.Second)},
			want:  []kill{{memory.OOMMainProcess, "256Mi", "0", "node died"}}, found: 1, explained: 1,
		},
		"far below the limit on a node that is short of memory, and an agent that does not say whose it was": {
			steps: []step{begun, short(8.1, pod(ended(0, oom(0, 0, 8))), "100Mi"), sees(8.2, false, "256Mi", 10*time.Second)},
			want:  []kill{{memory.OOMMainProcess, "0", "0", "node died"}}, found: 1, explained: 1,
		},
		"the same, and the kernel counted that the limit was reached": {
			steps: []step{begun, short(8.1, pod(ended(0, oom(0, 0, 8))), "100Mi"), whose(8.1, false, true, false)},
			want:  []kill{{memory.OOMMainProcess, "256Mi", "0", "node died"}}, found: 1, explained: 1,
		},
		"kills that only restartCount shows are like the last": {
			steps: []step{
				begun, short(8.1, pod(ended(2, oom(2, 7, 8))), "100Mi"), whose(8.1, false, true, false),
			},
			want: []kill{
				{memory.OOMMainProcess, "256Mi", "0", ""}, {memory.OOMMainProcess, "256Mi", "0", ""},
				{memory.OOMMainProcess, "256Mi", "0", "node died"},
			},
			found: 3, explained: 1,
		},
		"close to the limit, and the kernel counted no limit that was reached": {
			steps: []step{begun, short(8.1, pod(ended(0, oom(0, 0, 8))), "200Mi"), whose(8.1, false, false, true)},
			want:  []kill{{memory.OOMMainProcess, "0", "0", "node died"}}, found: 1, explained: 1,
		},
		"a child of a container close to its limit, by the node": {
			steps: []step{begun, whose(8.1, true, false, true), counter(8.3, 1)},
			want:  []kill{{memory.OOMChildProcess, "0", "0", "node died"}}, found: 1,
		},
		"what the agent knew last remains": {
			steps: []step{
				begun, short(8.1, pod(ended(0, oom(0, 0, 8))), "100Mi"), whose(8.1, false, false, false),
				whose(8.1, false, true, false), whose(8.1, false, false, false),
			},
			want: []kill{{memory.OOMMainProcess, "256Mi", "0", "node died"}}, found: 1, explained: 1,
		},
		"limits that cannot be told apart": {
			steps: []step{begun, status(8.1, pod(ended(0, oom(0, 0, 8)))), sees(8.2, false, "0", 10*time.Second)},
			want:  []kill{{memory.OOMMainProcess, "256Mi", "0", "node died"}}, found: 1, explained: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, crash := range []bool{false, true} {
				l, found, explained := &Ledger{}, 0, 0
				for _, step := range tc.steps {
					f, e := step(l)
					found, explained = found+len(f), explained+len(e)
					if crash {
						l = reborn(t, l)
					}
					if f, e := step(l); len(f)+len(e) > 0 {
						t.Errorf("crash=%v: the same once more was news: %+v %+v", crash, f, e)
					}
				}
				var got []kill
				for _, k := range l.Kills("app") {
					got = append(got, kill{k.Kind, k.Limit.String(), k.Requested.String(), k.Account})
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("crash=%v (-want +got):\n%s", crash, diff)
				}
				if found != tc.found || explained != tc.explained || int64(len(tc.want)) != l.Total("app") {
					t.Errorf("crash=%v: %d found and %d explained, want %d and %d; %d in total", crash, found, explained,
						tc.found, tc.explained, l.Total("app"))
				}
			}
		})
	}
}

// TestAnAgentsKillIsCountedOnce: details are thinned out, and what an agent says of its last kill stays the same.
func TestAnAgentsKillIsCountedOnce(t *testing.T) {
	l := &Ledger{}
	quiet := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
	l.Update(Observe(makePod("web-1", "u1").container("app", "256Mi", running(0, 0)).pod), nil, at(0))
	old := AgentKill{Container: quiet, Time: at(1), Child: true, Limit: size("256Mi"), Account: "sh died"}
	l.UpdateAgents([]AgentKill{old}, nil, nil, at(1))
	for i := range 3 * KillsKept {
		loud := AgentKill{
			Container: memory.ContainerRef{Namespace: "shop", Pod: "web-2", UID: "u2", Container: "app"},
			Time:      at(float64(2 + i)), Child: true, Limit: size("256Mi"), Account: "node died",
		}
		l.UpdateAgents([]AgentKill{old, loud}, nil, nil, at(float64(2+i)))
	}
	if n := l.Total("app"); n != 1+3*KillsKept {
		t.Errorf("%d kills were counted", n)
	}
}

func TestEffectiveLimit(t *testing.T) {
	single := makePod("web-1", "u1").container("app", "256Mi", running(0, 0))
	several := makePod("web-1", "u1").container("app", "256Mi", running(0, 0)).container("proxy", "128Mi", running(0, 0))
	unlimited := makePod("web-1", "u1").container("app", "256Mi", running(0, 0)).container("proxy", "0", running(0, 0))
	starting := makePod("web-1", "u1").init("load", "1Gi", false, running(0, 0)).container("app", "256Mi", running(0, 0))
	for name, c := range map[string]struct {
		pod              podMaker
		own, ofPod, want string
	}{
		"one container":                               {single, "256Mi", "256Mi", "256Mi"},
		"the pod was left behind by a resize":         {single, "512Mi", "256Mi", "256Mi"},
		"no limit of the pod":                         {unlimited, "256Mi", "0", "256Mi"},
		"no limit of the container":                   {single, "0", "256Mi", "0"},
		"two containers":                              {several, "256Mi", "384Mi", "256Mi"},
		"two, and the pod was left behind":            {several, "512Mi", "384Mi", "0"},
		"two, which is still less than both may take": {several, "300Mi", "384Mi", "0"},
		"an init container is larger than the rest":   {starting, "256Mi", "1Gi", "256Mi"},
	} {
		if got := EffectiveLimit(c.pod.pod, "app", size(c.own), size(c.ofPod)); got != size(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
