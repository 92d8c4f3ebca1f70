// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/test/kubelet"
)

// thousand is a workload of 1000 replicas that were measured for an hour.
func thousand(b *testing.B) (*State, *Snapshot, time.Time) {
	b.Helper()
	c := &cluster{Kubelet: kubelet.New(began, func(int) int { return 0 }), need: 100 * memory.MiB}
	c.named = newCluster(&testing.T{}, 1).named
	for range 1000 {
		c.create(256 * memory.MiB)
	}
	p := &process{state: NewState()}
	for range 60 {
		c.Now = c.Now.Add(time.Minute)
		for _, r := range c.Pods {
			ref := memory.ContainerRef{Namespace: "shop", Pod: r.Name, UID: r.UID, Container: "app"}
			p.inbox.AddSamples(
				memory.Sample{Container: ref, Time: c.Now, Started: r.Started, RSS: 90 * memory.MiB, HasRSS: true, Exact: true},
			)
		}
		for _, r := range c.Pods {
			p.inbox.Observations = append(p.inbox.Observations, oom.Observe(c.Shown(r))...)
		}
		p.state, _ = Step(p.state, c.snapshot(p), c.Now)
		p.inbox = PendingEvents{}
	}
	s := c.snapshot(p)
	slices.SortFunc(s.Pods, NewestFirst)
	return p.state, s, c.Now
}

// BenchmarkStep is one step of a workload of 1000 replicas, and what of it the copy of the state takes: the price of
// having nothing to undo.
func BenchmarkStep(b *testing.B) {
	st, s, now := thousand(b)
	b.Run("step", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Step(st, s, now)
		}
	})
	b.Run("clone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			st.Clone()
		}
	})
}
