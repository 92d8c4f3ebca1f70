// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
)

// podHas is what a kubelet from 1.36 on reports of the pod's cgroup.
func (m podMaker) podHas(limit string) podMaker {
	return m.edit(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		r := memoryLimit(limit)
		p.Status.Resources = &r
	})
}

func resizedTo(limit string, cs corev1.ContainerStatus) podMaker {
	return makePod("web-1", "u1").container("app", limit, effective(cs, limit)).
		edit(func(p *corev1.Pod) { p.Generation = 2 })
}

func TestLimitEffective(t *testing.T) {
	type look struct {
		pod  podMaker
		peak memory.Bytes
	}
	type story struct {
		looks          []look
		limit, asked   string
		container      string
		unknown        bool
		killed, wanted string // limit and asked-for of the last kill
	}
	born := func(limit string, cs corev1.ContainerStatus) podMaker {
		return makePod("web-1", "u1").container("app", limit, effective(cs, limit))
	}
	restartsOnResize := func(m podMaker) podMaker {
		return m.edit(func(p *corev1.Pod) {
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
		})
	}
	beside := func(m podMaker, limit string) podMaker {
		return m.container("mesh", limit, effective(running(0, 0), limit))
	}
	fresh := born("32Mi", running(0, 0))
	alive := born("32Mi", after(running(1, 1), oom(0, 0, 1)))
	down := born("32Mi", crashLoop(1, oom(1, 1, 2)))
	raised := resizedTo("600Mi", after(running(2, 3), oom(1, 1, 2))) // it ran again when memfit looked
	again := resizedTo("601Mi", after(running(2, 3), oom(1, 1, 2)))
	dead := resizedTo("600Mi", crashLoop(2, oom(2, 3, 4)))
	lowered := resizedTo("24Mi", after(running(2, 3), oom(1, 1, 2)))
	rounded := resizedTo("100M", after(running(2, 3), end(1, "Error", 1, 1, 2)))
	ended := restartsOnResize(resizedTo("256Mi", after(running(2, 3), end(1, "Error", 143, 1, 2))))
	crashed := restartsOnResize(resizedTo("256Mi", after(running(2, 3), oom(1, 1, 2))))
	sibling := makePod("web-0", "u0").container("app", "32Mi", running(0, 0))
	seen := func(pods ...podMaker) (looks []look) {
		for _, p := range pods {
			looks = append(looks, look{pod: p})
		}
		return looks
	}
	for name, tc := range map[string]story{
		"a container that nothing happened to": {looks: seen(fresh), unknown: true},
		"resized while it ran":                 {looks: seen(fresh, resizedTo("256Mi", running(0, 0))), limit: "256Mi"},
		"resized while it was down":            {looks: seen(down, raised), limit: "32Mi", asked: "600Mi"},
		"killed again, at the old limit": {
			looks: seen(alive, raised, dead), limit: "32Mi", asked: "600Mi", killed: "32Mi", wanted: "600Mi"},
		"resized and dead before anybody looked": {
			looks: seen(alive, resizedTo("600Mi", crashLoop(2, oom(2, 3, 4)))), limit: "32Mi", asked: "600Mi",
			killed: "32Mi", wanted: "600Mi"},
		"sent again while it ran":              {looks: seen(alive, raised, again), limit: "601Mi"},
		"the same numbers again prove nothing": {looks: seen(alive, raised, raised), limit: "32Mi", asked: "600Mi"},
		"use above the old limit": {
			looks: []look{{pod: alive}, {pod: raised}, {raised, 40 * memory.MiB}}, limit: "40Mi", asked: "600Mi"},
		"lowered while it was down": {looks: seen(down, lowered), limit: "24Mi"},
		"restarted to be resized":   {looks: seen(restartsOnResize(alive), ended), limit: "256Mi"},
		"crashed while it was to be restarted": {
			looks: seen(restartsOnResize(alive), crashed), limit: "32Mi", asked: "256Mi",
		},
		"a pod that memfit meets late":         {looks: seen(sibling, raised), limit: "32Mi", asked: "600Mi"},
		"the kubelet says that the pod has it": {looks: seen(down, raised.podHas("600Mi")), limit: "600Mi"},
		"the kubelet says that it has not":     {looks: seen(down, raised.podHas("32Mi")), limit: "32Mi", asked: "600Mi"},
		"and of one that is down": {
			looks: seen(alive.podHas("32Mi"), resizedTo("600Mi", crashLoop(1, oom(1, 1, 2))).podHas("32Mi")),
			limit: "32Mi", asked: "600Mi", killed: "32Mi"},
		"and nobody saw what was before": {
			looks: seen(raised.podHas("32Mi")), limit: "32Mi", asked: "600Mi", killed: "32Mi", wanted: "600Mi"},
		"a page less is no less": {looks: seen(rounded.podHas("97656Ki")), limit: "100M"},
		"one of two": {
			looks: seen(beside(down, "64Mi"), beside(raised, "64Mi").podHas("96Mi")), limit: "32Mi", asked: "600Mi",
		},
		"and the other of them": {
			container: "mesh", looks: seen(beside(down, "64Mi"), beside(raised, "64Mi").podHas("96Mi")), limit: "64Mi"},
		"beside a container without a limit": {
			looks: seen(beside(down, ""), beside(raised, "").podHas("9007199254740988Ki")), limit: "600Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			l, container := &Ledger{}, tc.container
			if container == "" {
				container = "app"
			}
			for i, lk := range tc.looks {
				l.Update(Observe(lk.pod.pod), uses(lk.peak), at(float64(i)+5))
				l = reborn(t, l)
			}
			limit, asked, known := l.EffectiveLimit(
				memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: container},
			)
			if known == tc.unknown || known && (limit != size(tc.limit) || asked != size(tc.asked)) {
				t.Errorf("effective %s, asked for %s, known %t; want %s, %s, unknown %t",
					limit, asked, known, tc.limit, tc.asked, tc.unknown)
			}
			kills := l.Kills(container)
			if tc.killed != "" {
				if last := kills[len(kills)-1]; last.Limit != size(tc.killed) || last.Requested != size(tc.wanted) {
					t.Errorf("killed at %s, %s asked for; want %s, %s", last.Limit, last.Requested, tc.killed, tc.wanted)
				}
			}
		})
	}
}

func uses(b memory.Bytes) func(memory.ContainerRef) memory.Bytes {
	return func(memory.ContainerRef) memory.Bytes { return b }
}

func size(s string) memory.Bytes {
	if s == "" {
		return 0
	}
	return memory.FromQuantity(resource.MustParse(s))
}

// node is a kubelet with the bug of 1.34 to 1.37.0, and one container that dies and is resized at any moment.
type node struct {
	spec, container, cgroup memory.Bytes
	restarts                int32
	runs, tells             bool
	last                    *corev1.ContainerStateTerminated
	generation              int64
	minute                  float64
}

func (n *node) starts() {
	if !n.runs {
		n.restarts++
		n.runs, n.container = true, n.spec // the pod's cgroup stays as it is
	}
}

func (n *node) dies(reason string, code int32) {
	if n.runs {
		n.runs, n.last = false, end(n.restarts, reason, code, n.minute, n.minute)
	}
}

func (n *node) resized(to memory.Bytes) {
	n.spec = to
	n.generation++
	if n.runs {
		n.container, n.cgroup = to, to
	}
}

func (n *node) truth() memory.Bytes { return min(n.container, n.cgroup) }

func (n *node) shown() []Observation {
	cs := running(n.restarts, n.minute)
	if n.last != nil {
		cs = after(cs, n.last)
	}
	if !n.runs {
		cs = crashLoop(n.restarts, n.last)
	}
	m := makePod("web-1", "u1").container("app", n.spec.String(), effective(cs, n.spec.String())).
		edit(func(p *corev1.Pod) { p.Generation = n.generation })
	if n.tells {
		m = m.podHas(n.cgroup.String())
	}
	return Observe(m.pod)
}

// Whatever is seen or missed, of a kubelet that reports the pod's cgroup or does not: no kill counts with a limit that
// was not effective.
func TestNoKillCountsWithALimitThatWasNotEffective(t *testing.T) {
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 9))
		first := 32 * memory.MiB
		n := &node{spec: first, container: first, cgroup: first, runs: true, generation: 1, tells: seed%2 == 0}
		l, truth, story, unseen := &Ledger{}, map[int64]memory.Bytes{}, "", false
		l.Update(n.shown(), nil, at(0))
		for range 30 {
			n.minute++
			switch what := rng.IntN(5); {
			case what == 0 && !unseen: // of two resizes between two looks nobody can know the first
				unseen = true
				to := memory.Bytes(16+rng.IntN(500)) * memory.MiB
				story += fmt.Sprintf(" resize %s", to)
				n.resized(to)
			case what == 1 && n.runs:
				truth[at(n.minute).Unix()] = n.truth()
				story += fmt.Sprintf(" kill at %s", n.truth())
				n.dies(reasonOOMKilled, exitKill)
			case what == 2:
				story += " exit"
				n.dies("Error", 1)
			case what == 3:
				story += " start"
				n.starts()
			}
			if rng.IntN(3) == 0 {
				continue // nobody looks
			}
			story, unseen = story+" look", false
			l.Update(n.shown(), uses(memory.Bytes(rng.Int64N(int64(n.truth())))), at(n.minute))
			if rng.IntN(4) == 0 {
				l = reborn(t, l)
			}
		}
		for _, k := range l.Kills("app") {
			if was, exact := truth[k.Time.Unix()]; exact && k.Limit > was {
				t.Fatalf("seed %d: a kill at %s counts as one at %s:%s", seed, was, k.Limit, story)
			}
		}
	}
}

// Seen on a real node: three replicas start together, the first kill raises all of them, and the second dies in the
// second of its raise.
func TestADeathInTheSecondOfARaiseIsAtTheLimitOfBefore(t *testing.T) {
	const second = 1. / 60
	first := makePod("web-1", "u1").container("app", "64Mi", running(0, 0))
	killed := func(limit string, finished float64) podMaker {
		return resizedTo(limit, ended(0, oom(0, 0, finished))).podHas(limit)
	}
	for name, tc := range map[string]struct {
		limit, asked  string
		killedSeconds float64
	}{
		"within a second of it":        {limit: "64Mi", asked: "256Mi", killedSeconds: 3},
		"before it was seen":           {limit: "64Mi", asked: "256Mi", killedSeconds: 1},
		"long after it: the new limit": {limit: "256Mi", killedSeconds: 8},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Ledger{}
			l.Update(Observe(first.pod), nil, at(second))
			l.Update(Observe(resizedTo("256Mi", running(0, 0)).podHas("256Mi").pod), nil, at(2*second))
			got := l.Update(Observe(killed("256Mi", tc.killedSeconds*second).pod), nil, at(10*second))
			if len(got) != 1 || got[0].Limit != size(tc.limit) || got[0].Requested != size(tc.asked) {
				t.Errorf("got %+v, want one kill at %s, %s asked for", got, tc.limit, tc.asked)
			}
		})
	}
}

// On a node whose clock is an hour behind every death seems to come before the raise. Only the first may be taken for
// that.
func TestASlowClockDoesNotHideThatTheRaiseWasTooLittle(t *testing.T) {
	const second, hour = 1. / 60, 60.
	l := &Ledger{}
	l.Update(Observe(makePod("web-1", "u1").container("app", "64Mi", running(0, -hour)).pod), nil, at(second))
	l.Update(Observe(resizedTo("256Mi", running(0, -hour)).podHas("256Mi").pod), nil, at(2*second))
	l.Update(
		Observe(resizedTo("256Mi", after(running(1, -hour+2), oom(0, -hour, -hour+1))).podHas("256Mi").pod), nil, at(1),
	)
	got := l.Update(Observe(resizedTo("256Mi", ended(1, oom(1, -hour+2, -hour+3))).podHas("256Mi").pod), nil, at(3))
	if len(got) != 1 || got[0].Limit != size("256Mi") || got[0].Requested != 0 {
		t.Errorf("got %+v, want one kill at 256Mi", got)
	}
}

// Seen on Kubernetes 1.34, whose kubelet does not say what the pod's cgroup has: a container that dies within a second
// of each start was seen to run with the limit that its resize asked for, and its pod never had it.
func TestADeathInTheSecondOfARaiseProvesNothing(t *testing.T) {
	const second = 1. / 60
	before := makePod("web-1", "u1").container("app", "64Mi", after(running(1, 0), oom(0, 0, 0)))
	raised := resizedTo("256Mi", after(running(1, 0), oom(0, 0, 0)))
	for name, tc := range map[string]struct {
		told          string // the limit of the pod's cgroup, by the kubelet
		killedSeconds float64
		limit, asked  string // of the next kill
	}{
		"in the second of its raise":                      {killedSeconds: 3, limit: "64Mi", asked: "256Mi"},
		"long after it":                                   {killedSeconds: 8, limit: "256Mi"},
		"and the kubelet says that the pod has its limit": {told: "256Mi", killedSeconds: 3, limit: "256Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			says := func(m podMaker) *corev1.Pod {
				if tc.told != "" {
					m = m.podHas(tc.told)
				}
				return m.pod
			}
			l := &Ledger{}
			l.Update(Observe(before.pod), nil, at(second))
			l.Update(Observe(says(raised)), nil, at(2*second))
			app := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
			until := at(5 * second)
			if tc.told != "" {
				until = time.Time{}
			}
			if got := l.RevertibleUntil(app); !got.Equal(until) {
				t.Errorf("the raise is in doubt until %s, want %s", got, until)
			}
			finished := tc.killedSeconds * second
			l.Update(Observe(says(resizedTo("256Mi", ended(1, oom(1, 0, finished))))), nil, at(10*second))
			l = reborn(t, l)
			l.Update(Observe(says(resizedTo("256Mi", after(running(2, 20*second), oom(1, 0, finished))))), nil, at(21*second))
			got := l.Update(Observe(says(resizedTo("256Mi", ended(2, oom(2, 20*second, 30*second))))), nil, at(31*second))
			if len(got) != 1 || got[0].Limit != size(tc.limit) || got[0].Requested != size(tc.asked) {
				t.Errorf("got %+v, want one kill at %s, %s asked for", got, tc.limit, tc.asked)
			}
		})
	}
}

// Seen on Kubernetes 1.34: a container that was never shown as running after its first death, and whose resize was not
// effective, counted with the limit that the next pod was created with, and 666Mi were asked for a need of 90Mi.
func TestTheLimitOfAYoungerPodIsNotThatOfAnOlderOne(t *testing.T) {
	app := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
	younger := makePod("web-2", "u2").container("app", "256Mi", running(0, 9)).created(9)
	end := func(index int32) *corev1.ContainerStateTerminated {
		return oom(index, float64(index)+1, float64(index)+1)
	}
	atOld := makePod("web-1", "u1").container("app", "64Mi", effective(ended(0, end(0)), "64Mi"))
	edited := atOld.edit(func(p *corev1.Pod) { p.Generation = 2 })
	again := func(index int32) podMaker {
		return resizedTo("256Mi", effective(ended(index, end(index)), "256Mi"))
	}
	for name, looks := range map[string][]podMaker{
		"resized before its first death was seen": {edited, again(1), younger, again(2)},
		"resized after it":                        {atOld, again(1), younger, again(2)},
		"resized after the younger one was born":  {atOld, younger, again(1), again(2)},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Ledger{}
			l.Update(nil, nil, t0)
			for i, m := range looks {
				l.Update(Observe(m.pod), nil, at(float64(i)+10))
				l = reborn(t, l)
			}
			if limit, asked, _ := l.EffectiveLimit(app); limit != size("64Mi") || asked != size("256Mi") {
				t.Errorf("effective is %s, %s asked for; want 64Mi, 256Mi", limit, asked)
			}
			for _, k := range l.Kills("app") {
				if k.Limit != size("64Mi") {
					t.Errorf("a kill counts with %s: %s", k.Limit, k.Why)
				}
			}
			if n := l.Total("app"); n != 3 {
				t.Errorf("%d kills, want 3", n)
			}
		})
	}
}
