// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// WorkloadRef names the topmost controller of a pod: what people edit and what a recommendation is for.
// A bare pod is its own workload.
type WorkloadRef struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	// NodeClass is the class of the nodes that its pods run on, where a profile keeps the pods of a DaemonSet apart by it;
	// empty: all nodes, or those whose class is unknown.
	NodeClass string
}

// String is "Deployment shop/web", and "DaemonSet shop/log/m5.large" for a class of nodes.
func (w WorkloadRef) String() string { return w.Kind + " " + w.Namespace + "/" + w.Title() }

// Title is its name, and "log/m5.large" for a class of nodes.
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

// Workload is a workload that exists, or existed: another of the same name has another UID.
type Workload struct {
	Ref WorkloadRef
	// UID is empty while it is not known.
	UID types.UID
}

// ContainerRef names one container of one pod. UID distinguishes a StatefulSet's pod from its predecessor of that
// name.
type ContainerRef struct {
	Namespace string    `json:"ns,omitempty"`
	Pod       string    `json:"p"`
	UID       types.UID `json:"u"`
	Container string    `json:"n"`
}

// Sample is one measurement of one container's memory. A field that the source cannot see is 0 and its Has… flag is
// false: "unknown" must never be read as "uses nothing".
type Sample struct {
	Container ContainerRef
	// Time is when the kubelet measured, not when memfit asked.
	Time time.Time
	// Started is when the container instance started, zero when the source does not report it.
	Started time.Time
	// RSS is anonymous memory (memory.stat anon; cgroup v1 total_rss): what the allocator holds. No page cache, no tmpfs.
	RSS Bytes
	// SharedAndKernel is the rest of what the kernel cannot reclaim: shared memory (tmpfs, /dev/shm, SysV) and kernel
	// memory charged to the container. With Exact false it may be missing or outdated.
	SharedAndKernel Bytes
	// Swap is anonymous memory that the node has swapped out: the container needs it, and its RSS is without it. The
	// kubelet reports it one sample late. 0: none, or the source does not report it.
	Swap Bytes
	// WorkingSet is usage minus inactive file pages: what the kubelet evicts by, and what kubectl top shows.
	WorkingSet Bytes
	// Usage is all memory the kernel counts against the limit, page cache included. What it has beyond RSS is page cache
	// and the kernel's own. 0: unknown.
	Usage Bytes
	// MajorFaults is how often the instance has waited for a page to be read from disk since it started. Only the
	// difference between two samples of one instance means something.
	MajorFaults int64
	// HasRSS is false for sources that only know the working set (metrics.k8s.io), HasMajorFaults for those that do not
	// count them. Exact is true where SharedAndKernel was measured in this container instance, and recently. The three are
	// adjacent because apart each would take as much as a number, and many samples wait at a time.
	HasRSS, HasMajorFaults, Exact bool
	// WaitedPercent is the share of the time in which all of its tasks together waited for memory: the kernel's average
	// over the last five minutes (PSI memory full, avg300), 0 to 100, of hundredths. A kernel without PSI reports 0, as
	// one without pressure does.
	WaitedPercent float64
}

// Demand returns the memory that the kernel cannot reclaim, which is what a limit must hold: anonymous memory, shared
// memory, kernel memory and swap. Where Exact is false it is an estimate: with HasRSS one that may be too small,
// because shared memory is unknown; without it the working set, which contains page cache.
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

// KillCounter is one reading of container_oom_events_total: the kernel's count of kills inside one living container
// instance.
type KillCounter struct {
	Container ContainerRef
	// ContainerID is the instance the series belongs to, with or without its "containerd://"; empty when the source does
	// not report it.
	ContainerID string
	Count       int64
	// Time is when the kubelet took the reading.
	Time time.Time
}
