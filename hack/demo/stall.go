// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/memfit/memfit/internal/memory"
)

// The other death. The limit is full of anonymous memory, which has nowhere to go, so the kernel takes the pages of the
// program itself, and reads them back from the disk a moment later. The process gets nowhere, and nobody kills it.
// Whether that happens or a kill depends on the disk, its read-ahead and what else runs on the machine.
const (
	// patience is how long a running process may take for a burst: one takes 2 s on an idle machine, 20 s beside builds.
	patience = 40 * time.Second
	// fullPercent of the limit counts as full: the kernel frees in batches of a few MiB.
	fullPercent = 97
	// faultsPerSecond tells a stall from a process that waits for a processor: 10 (beside many builds) to 200 were seen in
	// stalls, and less than one a minute in a process that runs, however slowly.
	faultsPerSecond = 2
)

// usage is what the kubelet last measured of a container; zero when it has not yet.
type usage struct {
	total, rss memory.Bytes
	faults     uint64 // major page faults since the container started
}

// stall is what was seen while nothing was done.
type stall struct {
	lasted     time.Duration
	use        usage
	limit      memory.Bytes
	readFaults uint64
}

func (s stall) String() string {
	return fmt.Sprintf("no burst for %s, %s of %s in use, %s of it anonymous; meanwhile the program was read back from "+
		"the disk "+
		"%d times (major page faults). No kernel kills it and nothing restarts it, but it is as dead",
		s.lasted.Round(time.Second), s.use.total, s.limit, s.use.rss, s.readFaults)
}

// stallWatch remembers since when a container has done nothing.
type stallWatch struct {
	limit    memory.Bytes
	since    time.Time
	bursts   int
	restarts int32
	faults   uint64
}

// look returns a stall when a running container has done no burst for too long, its limit is full, and it reads its
// program again and again.
func (w *stallWatch) look(now time.Time, running bool, bursts int, restarts int32, use usage) *stall {
	if use.total == 0 {
		return nil // not measured yet
	}
	if w.since.IsZero() || !running || bursts != w.bursts || restarts != w.restarts {
		w.since, w.bursts, w.restarts, w.faults = now, bursts, restarts, use.faults
		return nil
	}
	w.faults = min(w.faults, use.faults) // what was measured first may have been another container's
	lasted, read := now.Sub(w.since), use.faults-w.faults
	full, reads := use.total >= w.limit.Percent(fullPercent), float64(read) >= faultsPerSecond*lasted.Seconds()
	if lasted < patience || !full || !reads {
		return nil
	}
	return &stall{lasted: lasted, use: use, limit: w.limit, readFaults: read}
}

// endStall does to a stalled container what happens to it sooner or later: somebody opens a shell in it to look, and
// that takes memory which is not there.
func (s *story) endStall(ctx context.Context) error {
	pod, err := s.newestPod(ctx, "bursts")
	if err != nil {
		return err
	}
	s.say("somebody looks into the stalled container; 64 MiB are enough to end it")
	was, asked := restarts(pod), time.Time{}
	w := wait{
		what: "the end of the stalled container of " + pod.Name, atMost: 5 * time.Minute, look: "describe pod " + pod.Name,
	}
	return s.await(ctx, w, func(ctx context.Context) (bool, string, error) {
		now, err := s.newestPod(ctx, "bursts")
		if err != nil || restarts(now) > was {
			return err == nil, "", err
		}
		if time.Since(asked) < 20*time.Second { // the kubelet tells of the kill a moment later
			return false, "", nil
		}
		asked = time.Now()
		_, err = s.show(ctx, "exec", now.Name, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1")
		return false, "", err
	})
}

func restarts(p *corev1.Pod) int32 {
	if len(p.Status.ContainerStatuses) == 0 {
		return 0
	}
	return p.Status.ContainerStatuses[0].RestartCount
}

func (s *story) usage(ctx context.Context, pod *corev1.Pod) usage {
	raw, err := s.clientset.CoreV1().RESTClient().Get().Resource("nodes").Name(pod.Spec.NodeName).
		SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
	var summary stats.Summary
	if err != nil || json.Unmarshal(raw, &summary) != nil {
		return usage{}
	}
	for _, p := range summary.Pods {
		if p.PodRef.UID == string(pod.UID) && len(p.Containers) > 0 {
			return fromStats(p.Containers[0].Memory)
		}
	}
	return usage{}
}

func fromStats(m *stats.MemoryStats) usage {
	if m == nil {
		return usage{}
	}
	value := func(p *uint64) uint64 {
		if p == nil {
			return 0
		}
		return *p
	}
	bytes := func(p *uint64) memory.Bytes { return memory.Bytes(value(p)) }
	return usage{total: bytes(m.UsageBytes), rss: bytes(m.RSSBytes), faults: value(m.MajorPageFaults)}
}
