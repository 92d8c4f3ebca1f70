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

// A stall is a failure without a kill. Anonymous memory fills the limit, so the kernel reclaims the pages of the
// program itself, and reads them back from disk a moment later. The process makes no progress, and nothing kills it.
// Whether a process stalls or is OOM-killed depends on the disk, its read-ahead and the machine's other load.
const (
	// patience is how long a running process may take for a burst: one takes 2 s on an idle machine, 20 s beside builds.
	patience = 40 * time.Second
	// fullPercent of the limit counts as full: the kernel frees in batches of a few MiB.
	fullPercent = 97
	// faultsPerSecond distinguishes a stall from a process that waits for a processor: stalls had 10 (beside many builds)
	// to 200, and slow processes less than one a minute.
	faultsPerSecond = 2
)

// usage is what the kubelet last measured of a container; zero before the first measurement.
type usage struct {
	total, rss memory.Bytes
	faults     uint64 // major page faults since the container started
}

// stall describes a period without progress.
type stall struct {
	lasted     time.Duration
	use        usage
	limit      memory.Bytes
	readFaults uint64
}

func (s stall) String() string {
	return fmt.Sprintf("no burst for %s, %s of %s in use, %s of it anonymous, %d major page faults (pages of the program "+
		"were read back from disk). The process makes no progress, but nothing kills or restarts it",
		s.lasted.Round(time.Second), s.use.total, s.limit, s.use.rss, s.readFaults)
}

// stallWatch records since when a container has made no progress.
type stallWatch struct {
	limit    memory.Bytes
	since    time.Time
	bursts   int
	restarts int32
	faults   uint64
}

// observe returns a stall when a running container has completed no burst for patience, its limit is full, and it keeps
// reading its program from disk.
func (w *stallWatch) observe(now time.Time, running bool, bursts int, restarts int32, use usage) *stall {
	if use.total == 0 {
		return nil // not measured yet
	}
	if w.since.IsZero() || !running || bursts != w.bursts || restarts != w.restarts {
		w.since, w.bursts, w.restarts, w.faults = now, bursts, restarts, use.faults
		return nil
	}
	w.faults = min(w.faults, use.faults) // the first measurement may be of the previous container
	lasted, read := now.Sub(w.since), use.faults-w.faults
	full, reads := use.total >= w.limit.Percent(fullPercent), float64(read) >= faultsPerSecond*lasted.Seconds()
	if lasted < patience || !full || !reads {
		return nil
	}
	return &stall{lasted: lasted, use: use, limit: w.limit, readFaults: read}
}

// endStall causes an OOM kill of a stalled container, as a shell for debugging would: it runs a process that needs
// 64 MiB in the container.
func (s *session) endStall(ctx context.Context) error {
	pod, err := s.newestPod(ctx, "bursts")
	if err != nil {
		return err
	}
	s.printf("a command in the stalled container needs 64 MiB, which ends the container")
	was, tried := restarts(pod), time.Time{}
	w := wait{
		what: "the end of the stalled container of " + pod.Name, atMost: 5 * time.Minute, command: "describe pod " + pod.Name,
	}
	return s.await(ctx, w, func(ctx context.Context) (bool, string, error) {
		now, err := s.newestPod(ctx, "bursts")
		if err != nil || restarts(now) > was {
			return err == nil, "", err
		}
		if time.Since(tried) < 20*time.Second { // the kubelet reports the kill with a delay
			return false, "", nil
		}
		tried = time.Now()
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

func (s *session) usage(ctx context.Context, pod *corev1.Pod) usage {
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
