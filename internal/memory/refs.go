// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// WorkloadRef names the topmost controller of a pod, for which a recommendation is. A bare pod is its own workload.
type WorkloadRef struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	// NodeClass is the class of its pods' nodes, if the profile divides a DaemonSet by class; empty: all, or unknown ones.
	NodeClass string
}

// String returns "Deployment shop/web", and "DaemonSet shop/log/m5.large" for a class of nodes.
func (w WorkloadRef) String() string { return w.Kind + " " + w.Namespace + "/" + w.Title() }

// Title returns its name, and "log/m5.large" for a class of nodes.
func (w WorkloadRef) Title() string {
	if w.NodeClass == "" {
		return w.Name
	}
	return w.Name + "/" + w.NodeClass
}

// Whole returns the workload on all nodes, which is the object that owns its pods.
func (w WorkloadRef) Whole() WorkloadRef {
	w.NodeClass = ""
	return w
}

// Workload is a workload with its UID, which distinguishes it from others of the same name.
type Workload struct {
	Ref WorkloadRef
	// UID is empty while it is not known.
	UID types.UID
}

// ContainerRef names one container of one pod. UID distinguishes a StatefulSet's pod from its predecessor of that name.
type ContainerRef struct {
	Namespace string    `json:"ns,omitempty"`
	Pod       string    `json:"p"`
	UID       types.UID `json:"u"`
	Container string    `json:"n"`
}

// Sample is one measurement of one container's memory. A field that the source does not report is 0 and its Has… flag
// is false: "unknown" is not "uses nothing".
type Sample struct {
	Container ContainerRef
	// Time is when the kubelet measured, not when memfit asked.
	Time time.Time
	// Started is when the container instance started, zero when the source does not report it.
	Started time.Time
	// RSS is anonymous memory (memory.stat anon; cgroup v1 total_rss), without page cache and tmpfs.
	RSS Bytes
	// SharedAndKernel is the remaining unreclaimable memory: shared memory (tmpfs, /dev/shm, SysV) and kernel memory. With
	// Exact false it may be missing or outdated.
	SharedAndKernel Bytes
	// Swap is swapped-out anonymous memory, which RSS excludes, reported one sample late. 0: none, or not reported.
	Swap Bytes
	// WorkingSet is usage minus inactive file pages: the kubelet's measure for evictions, and kubectl top's.
	WorkingSet Bytes
	// Usage is all memory that counts against the limit, page cache and kernel memory included. 0: unknown.
	Usage Bytes
	// MajorFaults is the instance's number of page faults that read from disk. Only differences are meaningful.
	MajorFaults int64
	// HasRSS is false for sources with only the working set (metrics.k8s.io), HasMajorFaults for those that do not count
	// them. Exact: SharedAndKernel was measured recently in this instance. The three are adjacent to save memory.
	HasRSS, HasMajorFaults, Exact bool
	// WaitedPercent is the share of time in which all its tasks waited for memory: the kernel's average over the last
	// five minutes (PSI memory full, avg300), 0 to 100, in hundredths. Without PSI it is 0, as without pressure.
	WaitedPercent float64
}

// Demand returns the memory that the kernel cannot reclaim, which a limit must cover: anonymous memory, shared memory,
// kernel memory and swap. If Exact is false it is an estimate: with HasRSS it may be too small, because shared memory
// is unknown; otherwise it is the working set, which contains page cache.
func (s Sample) Demand() Bytes {
	if !s.HasRSS && !s.Exact {
		return s.WorkingSet.Plus(s.Swap)
	}
	return s.RSS.Plus(s.Swap).Plus(s.SharedAndKernel)
}

// WithDemand returns the sample with a demand that was measured as a whole.
func (s Sample) WithDemand(demand Bytes) Sample {
	s.SharedAndKernel, s.Exact = demand.Minus(s.RSS.Plus(s.Swap)), true
	return s
}

// KillCounter is one reading of container_oom_events_total: the kernel's count of kills inside one living instance.
type KillCounter struct {
	Container ContainerRef
	// ContainerID is the instance of the series, with or without its "containerd://"; empty: not reported.
	ContainerID string
	Count       int64
	// Time is when the kubelet took the reading.
	Time time.Time
}
