// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/test/build"
)

// TestARequestFollowsDemand: a container with 94Mi in use, most of it in /dev/shm, kept a request of 32Mi for half an
// hour, and its status said 21Mi. One without a limit kept 16Mi.
func TestARequestFollowsDemand(t *testing.T) {
	for name, options := range map[string][]build.ContainerOption{
		"with a limit":    {build.Request("32Mi"), build.Limit("256Mi")},
		"without a limit": {build.Request("16Mi")},
	} {
		t.Run(name, func(t *testing.T) {
			pod := build.Pod("shop", "db-0").On("n1").Phase(corev1.PodRunning).
				Container("app", append(options, build.Started(began))...).Obj()
			pod.UID = "uid-db-0"
			p := build.Profile("shop", "db", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingInPlace))
			s := &Snapshot{
				Owner: memory.Workload{
					Ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "db"}, UID: "db",
				},
				Profile: governing(p),
				Pods:    []*corev1.Pod{pod}, Governed: []*corev1.Pod{pod}, Template: pod,
			}
			st, now := NewState(), began
			var last Effects
			resized := 0
			for range 10 {
				now = now.Add(15 * time.Second)
				s.Events = PendingEvents{Observations: oom.Observe(pod), Source: "kubelet"}
				s.Events.AddSamples(memory.Sample{
					Container: memory.ContainerRef{Namespace: "shop", Pod: "db-0", UID: types.UID("uid-db-0"), Container: "app"},
					Time:      now, Started: began, RSS: 21 * memory.MiB, HasRSS: true, WorkingSet: 120 * memory.MiB,
				}.WithDemand(94 * memory.MiB))
				st, last = Step(st, s, now)
				for _, a := range last.Actions {
					if r := a.Sizes["app"].Request; r >= 94*memory.MiB {
						resized++
					}
				}
			}
			c := last.Status.Containers[0]
			if c.Usage == nil || c.Usage.String() != "94Mi" {
				t.Errorf("use is %v, want 94Mi", c.Usage)
			}
			if c.Recommended == nil || c.Recommended.Request == nil ||
				memory.FromQuantity(*c.Recommended.Request) < 94*memory.MiB {
				t.Errorf("recommended %+v after ten readings, want a request of at least 94Mi: %s", c.Recommended, c.Summary)
			}
			if resized == 0 {
				t.Errorf("the running pod is not resized: %s", c.Summary)
			}
		})
	}
}
