// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Objects are the objects that may constrain a workload: those of its namespace, in any order, and the nodes.
type Objects struct {
	// Controller is the workload's controller, such as a custom resource, which autoscalers may target; zero: unknown.
	Controller  memory.WorkloadRef
	VPAs        []VPA
	HPAs        []HPA
	LimitRanges []corev1.LimitRange
	Quotas      []corev1.ResourceQuota
	Nodes
}

// Nodes has the memory of the cluster's nodes. Its maps, by node name, are shared: do not change them.
type Nodes struct {
	NodeSize          map[string]memory.Bytes // allocatable memory
	LargestNode       memory.Bytes            // largest NodeSize; 0: unknown
	NodePressureSince map[string]time.Time    // when MemoryPressure began; nodes without it are absent
}

// Facts are the effective constraints of one workload. The zero value has none.
type Facts struct {
	// Conflict names other controllers of the workload's memory; "": none. Remedy is the user's way to end the conflict.
	Conflict, Remedy string
	// Range has the bounds of LimitRanges for every container.
	Range Range
	// Quota is the unused quota for the workload's pods.
	Quota Quota
	// Nodes has all nodes. Callers may lower LargestNode to the largest node that can run the pod.
	Nodes
	NodeDescription string // of LargestNode, for messages; "": the largest node
	// Refused is the smallest request of an unschedulable pod of the workload, as [Need] returns it; 0: none.
	Refused memory.Bytes

	limits []limits
}

// FactsOf returns the constraints of w. containers are the names of its managed containers. pod is its newest pod or
// nil.
func FactsOf(w memory.WorkloadRef, containers []string, pod *corev1.Pod, o Objects) Facts {
	f := Facts{Quota: quotaFor(pod, o.Quotas), Nodes: o.Nodes, limits: limitsOf(o.LimitRanges)}
	if f.Conflict, f.Remedy = Conflict(w, containers, o.VPAs, o.HPAs); f.Conflict == "" {
		f.Conflict, f.Remedy = Conflict(o.Controller, containers, o.VPAs, o.HPAs)
	}
	if f.Conflict == "" {
		f.Conflict, f.Remedy = appliedBy(pod)
	}
	f.Range = rangeOf(f.limits)
	return f
}
