// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Objects are the constraints of a workload: the objects of its namespace, in any order, and the nodes.
type Objects struct {
	// Above is the controller of the workload, such as a custom resource with autoscalers of its own; zero: unknown.
	Above       memory.WorkloadRef
	VPAs        []VPA
	HPAs        []HPA
	LimitRanges []corev1.LimitRange
	Quotas      []corev1.ResourceQuota
	Nodes
}

// Nodes are the nodes of the cluster, by name. Its maps are shared: read only.
type Nodes struct {
	// NodeSize is their allocatable memory, LargestNode the largest; 0 if none is known.
	NodeSize    map[string]memory.Bytes
	LargestNode memory.Bytes
	// NodesShort is when nodes' MemoryPressure began.
	NodesShort map[string]time.Time
}

// Facts are the effective constraints of one workload. The zero value has none.
type Facts struct {
	// Conflict names what else controls the workload's memory, Remedy is what to do about it; "": nothing.
	Conflict, Remedy string
	// Range has the bounds of LimitRanges for every container.
	Range Range
	// Quota is what ResourceQuotas leave pods like this one.
	Quota Quota
	// Nodes has all nodes. LargestNode may be limited to nodes known to run the pod; NodeDescription names it.
	Nodes
	NodeDescription string
	// Refused is the least request, as [Need] returns it, of a pod of the workload that no node took; 0: none.
	Refused memory.Bytes

	limits []limits
}

// About returns the constraints of a workload with these managed containers and this newest pod, which may be nil.
func About(w memory.WorkloadRef, containers []string, pod *corev1.Pod, o Objects) Facts {
	f := Facts{Quota: quotaFor(pod, o.Quotas), Nodes: o.Nodes, limits: limitsOf(o.LimitRanges)}
	if f.Conflict, f.Remedy = Conflict(w, containers, o.VPAs, o.HPAs); f.Conflict == "" {
		f.Conflict, f.Remedy = Conflict(o.Above, containers, o.VPAs, o.HPAs)
	}
	if f.Conflict == "" {
		f.Conflict, f.Remedy = appliedBy(pod)
	}
	f.Range = rangeOf(f.limits)
	return f
}
