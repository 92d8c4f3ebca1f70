// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/compress"
	"github.com/memfit/memfit/test/kubelet"
)

// TestAHistoryOfAnotherFactorStartsAnew: its hours and days are of another length, so they cannot be continued.
func TestAHistoryOfAnotherFactorStartsAnew(t *testing.T) {
	written := func(factor int) *v1alpha1.MemoryCheckpoint {
		compress.By(t, factor)
		h := history.New()
		for i := range 20 {
			h.Add(memory.Sample{
				Container: memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "1", Container: "app"},
				Time:      time.Unix(1_800_000_000+int64(i)*15, 0), RSS: memory.MiB, HasRSS: true, WorkingSet: memory.MiB,
			}, 0)
		}
		data, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		c := &v1alpha1.MemoryCheckpoint{}
		c.Status.Containers = []v1alpha1.CheckpointContainer{{Name: "app", History: data}}
		return c
	}
	plain, fast := written(1), written(144)
	for _, tc := range []struct {
		factor  int
		stored  *v1alpha1.MemoryCheckpoint
		samples int64
	}{{1, plain, 20}, {1, fast, 0}, {144, fast, 20}, {144, plain, 0}, {60, fast, 0}} {
		compress.By(t, tc.factor)
		st := &State{}
		lost, err := st.Unpack(tc.stored)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.History("app").Samples(); got != tc.samples {
			t.Errorf("factor %d: %d samples, want %d", tc.factor, got, tc.samples)
		}
		if anew := tc.samples == 0; anew != (len(lost) == 1 && errors.Is(lost[0], period.ErrFactor)) {
			t.Errorf("factor %d: lost %v", tc.factor, lost)
		}
	}
}

// TestALabLowersALimitWithinTwelveMinutes: three replicas at 512Mi that use 60Mi, a sample of each every five seconds,
// as in a lab. The first replica is lowered after a compressed day, alone, and the others after the compressed watch.
func TestALabLowersALimitWithinTwelveMinutes(t *testing.T) {
	compress.By(t, 144)
	c := cluster{Kubelet: kubelet.New(began, func(int) int { return 0 }), t: t}
	p := build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingInPlace))
	c.named = governing(p)
	for range 3 {
		c.create(512 * memory.MiB)
	}
	memfit := c.process()
	lowered := map[string]time.Duration{} // by pod, after the first sample
	for len(lowered) < 3 && c.Now.Sub(began) < 15*time.Minute {
		c.Now = c.Now.Add(5 * time.Second)
		c.listed(memfit)
		for _, pod := range c.Pods {
			memfit.inbox.AddSamples(memory.Sample{
				Container: memory.ContainerRef{Namespace: "shop", Pod: pod.Name, UID: pod.UID, Container: kubelet.Container},
				Time:      c.Now, Started: pod.Started, RSS: 60 * memory.MiB, WorkingSet: 60 * memory.MiB,
				HasRSS: true, Exact: true,
			})
		}
		var e Effects
		memfit.state, e = Step(memfit.state, c.snapshot(memfit), c.Now)
		memfit.inbox = PendingEvents{}
		for _, a := range e.Actions {
			for _, pod := range c.Pods {
				if to := a.Sizes[kubelet.Container].Limit; pod.UID == a.UID && to < pod.Limit {
					pod.Limit = to
					pod.Resizes++
					lowered[pod.Name] = c.Now.Sub(began)
				}
			}
		}
	}
	after := slices.Sorted(maps.Values(lowered))
	if len(after) != 3 || after[0] < 10*time.Minute || after[2] > 12*time.Minute {
		t.Fatalf("limits were lowered after %v, want all three after 10 to 12 minutes", lowered)
	}
	if watch := (10 * period.Minute).Duration(); after[1]-after[0] < watch {
		t.Errorf("the second followed the first after %s, want at least the compressed watch of %s", after[1]-after[0], watch)
	}
}
