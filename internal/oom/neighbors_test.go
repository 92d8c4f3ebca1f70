// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
)

// TestTheLabelOfANeighborsKill: on a node with cgroup v1, a container that is well gets the label OOMKilled when
// another one of its pod was killed at the pod's limit. "side" is the one in question; "app" dies.
func TestTheLabelOfANeighborsKill(t *testing.T) {
	two := func(app, side corev1.ContainerStatus) podMaker {
		return makePod("web-1", "u1").container("app", "64Mi", app).container("side", "64Mi", side)
	}
	deleted := func(m podMaker) podMaker {
		return m.edit(func(p *corev1.Pod) {
			when, grace := metav1.NewTime(at(11).Add(30*time.Second)), int64(30)
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &when, &grace
		})
	}
	raised := func(m podMaker) podMaker { // as status shows it; the pod's cgroup stays at 128Mi
		return m.edit(func(p *corev1.Pod) {
			p.Generation = 2
			r := memoryLimit("256Mi")
			p.Spec.Containers[0].Resources, p.Status.ContainerStatuses[0].Resources = r, &r
		})
	}
	podLimited := func(m podMaker) podMaker {
		return m.edit(func(p *corev1.Pod) {
			r := memoryLimit("96Mi")
			p.Spec.Resources, p.Spec.Containers[0].Resources = &r, corev1.ResourceRequirements{}
		})
	}
	alive := two(running(0, 0), running(0, 0))
	down := two(crashLoop(1, oom(1, 2, 3)), running(0, 0))
	atOwn := two(crashLoop(2, oom(2, 9, 10)), running(0, 0))
	atPods := raised(atOwn)
	label := func(exit int32, started, finished float64) corev1.ContainerStatus {
		return ended(0, end(0, "OOMKilled", exit, started, finished))
	}
	gone := func(m podMaker, side corev1.ContainerStatus) podMaker {
		return deleted(m.edit(func(p *corev1.Pod) {
			side.Name = "side"
			p.Status.ContainerStatuses[1] = side
		}))
	}
	for name, tc := range map[string]struct {
		looks []podMaker
		want  memory.OOMKind // of side; "": no kill
	}{
		"ended with its pod, after a kill at the pod's limit": {
			looks: []podMaker{alive, down, atPods, gone(atPods, label(0, 0, 11))}},
		"by SIGTERM": {looks: []podMaker{alive, down, atPods, gone(atPods, label(143, 0, 11))}},
		"by the SIGKILL after the grace period": {
			looks: []podMaker{alive, down, atPods, gone(atPods, label(137, 0, 11))}},
		"both ends in one look": {looks: []podMaker{alive, down, gone(atPods, label(0, 0, 11))}},
		"a pod with a limit as a whole": {
			looks: []podMaker{podLimited(alive), podLimited(atOwn), gone(podLimited(atOwn), label(0, 0, 11))}},
		"a SIGKILL that nobody else sent": {
			looks: []podMaker{alive, down, atPods, two(crashLoop(2, oom(2, 9, 10)), crashLoop(0, oom(0, 0, 10)))},
			want:  memory.OOMMainProcess},
		"a kill at the neighbor's own limit": {
			looks: []podMaker{alive, down, atOwn, gone(atOwn, label(0, 0, 11))}, want: memory.OOMChildProcess},
		"it started after that kill": {
			looks: []podMaker{alive, down, atPods, gone(atPods, label(0, 10.5, 11))}, want: memory.OOMChildProcess},
		"no neighbor was killed": {
			looks: []podMaker{alive, gone(alive, label(0, 0, 11))}, want: memory.OOMChildProcess},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reversed := range []bool{false, true} {
				l := &Ledger{}
				for i, look := range tc.looks {
					obs := Observe(look.pod)
					if reversed {
						slices.Reverse(obs)
					}
					l.Update(obs, uses(20*memory.MiB), at(float64(i)+12))
					l = reborn(t, l)
				}
				if l.Total("app") == 0 && len(tc.looks) > 2 {
					t.Error("app's own kills are not counted")
				}
				switch kills := l.Kills("side"); {
				case tc.want == "" && len(kills) > 0:
					t.Errorf("reversed %t: %s is counted, for %q", reversed, kills[0].Kind, kills[0].Why)
				case tc.want != "" && (len(kills) != 1 || kills[0].Kind != tc.want):
					t.Errorf("reversed %t: counted %v, want one %s", reversed, kills, tc.want)
				}
			}
		})
	}
}
