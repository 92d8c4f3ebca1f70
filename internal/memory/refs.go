// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// WorkloadRef names the topmost controller of a pod, which gets one recommendation. A bare pod is its own workload.
type WorkloadRef struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	// NodeClass is set if the profile sizes a DaemonSet by class of node; empty: all nodes, or those of unknown class.
	NodeClass string
}

// String returns "Deployment shop/web", or "DaemonSet shop/log/m5.large" with a NodeClass.
func (w WorkloadRef) String() string { return w.Kind + " " + w.Namespace + "/" + w.Title() }

// Title returns "web", or "log/m5.large" with a NodeClass.
func (w WorkloadRef) Title() string {
	if w.NodeClass == "" {
		return w.Name
	}
	return w.Name + "/" + w.NodeClass
}

// Whole returns the workload without a NodeClass: the object that owns the pods.
func (w WorkloadRef) Whole() WorkloadRef {
	w.NodeClass = ""
	return w
}

// Workload is a workload with its UID, which distinguishes it from others of the same name.
type Workload struct {
	Ref WorkloadRef
	// UID is empty while it is unknown.
	UID types.UID
}

// ContainerRef names one container of one pod. UID distinguishes a StatefulSet's pod from an earlier pod of its name.
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
	// Time is when the kubelet took the measurement, not when memfit read it.
	Time time.Time
	// Started is when the container instance started, zero when the source does not report it.
	Started time.Time
	// RSS is anonymous memory (memory.stat anon; cgroup v1 total_rss), without page cache and tmpfs.
	RSS Bytes
	// SharedAndKernel is the remaining unreclaimable memory: shared memory (tmpfs, /dev/shm, SysV) and kernel memory. It
	// may be missing or outdated unless Exact is true.
	SharedAndKernel Bytes
	// Swap is swapped-out anonymous memory, which RSS excludes. It is one sample old. 0: none, or not reported.
	Swap Bytes
	// WorkingSet is usage minus inactive file pages: the kubelet's measure for evictions, and kubectl top's.
	WorkingSet Bytes
	// Usage is all memory that counts against the limit, page cache and kernel memory included. 0: unknown.
	Usage Bytes
	// MajorFaults is the instance's number of page faults that read from disk. Only differences are meaningful.
	MajorFaults int64
	// HasRSS is false if the source reports only the working set (metrics.k8s.io). HasMajorFaults is false if it does not
	// count faults. Exact is true if SharedAndKernel was measured recently in this instance.
	HasRSS, HasMajorFaults, Exact bool
	// WaitedPercent is the share of the last five minutes in which all tasks of the container waited for memory (PSI
	// memory full, avg300), 0 to 100, in hundredths. 0: no pressure, or the kernel has no PSI.
	WaitedPercent float64
}

// Demand returns the memory that the kernel cannot reclaim, which a limit must cover: anonymous memory, shared memory,
// kernel memory and swap. If Exact is false, Demand is an estimate. With HasRSS the estimate may be too small, because
// shared memory is unknown; without HasRSS it is the working set plus swap, which includes page cache.
func (s Sample) Demand() Bytes {
	if !s.HasRSS && !s.Exact {
		return s.WorkingSet.Plus(s.Swap)
	}
	return s.RSS.Plus(s.Swap).Plus(s.SharedAndKernel)
}

// WithDemand returns the sample with SharedAndKernel set so that [Sample.Demand] returns demand, and Exact true.
func (s Sample) WithDemand(demand Bytes) Sample {
	s.SharedAndKernel, s.Exact = demand.Minus(s.RSS.Plus(s.Swap)), true
	return s
}

// KillCounter is one reading of container_oom_events_total: the kernel's count of kills in one running instance.
type KillCounter struct {
	Container ContainerRef
	// ContainerID identifies the container instance, with or without the prefix "containerd://"; empty: not reported.
	ContainerID string
	Count       int64
	// Time is when the kubelet took the reading.
	Time time.Time
}
