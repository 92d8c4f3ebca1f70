// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import "github.com/memfit/memfit/internal/memory"

// Counters are the kill and failure counters of one node's live containers, from /metrics/cadvisor. They restart at zero with the
// container and with the kubelet, so compare two looks and read a fall as a new start, never as minus.
type Counters map[memory.ContainerRef]Counter

// Counter is what one container has counted since it, or the kubelet, started. A negative number means that the kubelet does not say.
type Counter struct {
	// OOMEvents is container_oom_events_total: processes killed by the kernel in this container while it lived.
	OOMEvents int64
	// LimitHits is container_memory_failcnt: how often usage hit the limit and memory had to be reclaimed (cgroup v1 only).
	LimitHits int64
	// MajorFaults is container_memory_failures_total{failure_type="pgmajfault",scope="container"}: pages read back from disk.
	MajorFaults int64
}
