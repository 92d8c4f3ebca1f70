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
	// Above is the controller of the workload; zero: none is known. Where that is the custom resource of an operator,
	// autoscalers may be for it.
	Above       memory.WorkloadRef
	VPAs        []VPA
	HPAs        []HPA
	LimitRanges []corev1.LimitRange
	Quotas      []corev1.ResourceQuota
	// NodeSize is the allocatable memory of nodes by name, LargestNode the largest of them. They are copied to Facts
	// unchanged.
	NodeSize    map[string]memory.Bytes
	LargestNode memory.Bytes
	// NodesShort is since when nodes report MemoryPressure, by name.
	NodesShort map[string]time.Time
}

// Facts are the effective constraints of one workload. The zero value has none.
type Facts struct {
	// Conflict names the autoscalers that control the workload's memory as well, or the client that applies a bare pod
	// with its memory; Remedy is what to do about it. "" if there is none.
	Conflict, Remedy string
	// Range has the bounds of LimitRanges for every container.
	Range Range
	// Quota is the rest of ResourceQuotas for pods like this one.
	Quota Quota
	// NodeSize is the allocatable memory of nodes by name (shared: read only), LargestNode the largest of them, or of
	// those known to run the pod; 0 if none is known. NodeIs describes that node.
	NodeSize    map[string]memory.Bytes
	LargestNode memory.Bytes
	NodeIs      string
	// NodesShort is [Objects.NodesShort] (shared: read only).
	NodesShort map[string]time.Time

	limits []limits
}

// About returns the constraints of a workload with these managed containers and this newest pod. Without a pod, it
// ignores quotas with scopes.
func About(w memory.WorkloadRef, containers []string, pod *corev1.Pod, o Objects) Facts {
	f := Facts{
		Quota: quotaFor(pod, o.Quotas), NodeSize: o.NodeSize, LargestNode: o.LargestNode, NodesShort: o.NodesShort,
		limits: limitsOf(o.LimitRanges),
	}
	if f.Conflict, f.Remedy = Conflict(w, containers, o.VPAs, o.HPAs); f.Conflict == "" {
		f.Conflict, f.Remedy = Conflict(o.Above, containers, o.VPAs, o.HPAs)
	}
	if f.Conflict == "" {
		f.Conflict, f.Remedy = appliedBy(pod)
	}
	f.Range = rangeOf(f.limits)
	return f
}
