// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Objects are what constrains a workload: what its namespace holds, in any order, and the nodes.
type Objects struct {
	// Above is the controller of the workload; zero: none is known. Where that is the custom resource of an operator,
	// autoscalers may be for it.
	Above       memory.WorkloadRef
	VPAs        []VPA
	HPAs        []HPA
	LimitRanges []corev1.LimitRange
	Quotas      []corev1.ResourceQuota
	// NodeSize is the allocatable memory of nodes by name, LargestNode the most of them. They are handed on as they are.
	NodeSize    map[string]memory.Bytes
	LargestNode memory.Bytes
	// NodesShort is since when nodes report MemoryPressure, by name.
	NodesShort map[string]time.Time
}

// Facts are what the objects around it mean for one workload. The zero value means that there are none.
type Facts struct {
	// Conflict names the autoscalers that control the workload's memory as well, or the client that applies a bare pod
	// together with it; Remedy is what to do about it. "" when there are none.
	Conflict, Remedy string
	// Range is what LimitRanges allow every container.
	Range Range
	// Quota is what ResourceQuotas leave for pods like this one.
	Quota Quota
	// NodeSize is the allocatable memory of nodes by name (shared: read only), LargestNode the most of them, or of those
	// that are known to take the pod; 0 when none is known. NodeIs is which node that is, in words.
	NodeSize    map[string]memory.Bytes
	LargestNode memory.Bytes
	NodeIs      string
	// NodesShort is [Objects.NodesShort] (shared: read only).
	NodesShort map[string]time.Time

	limits []limits
}

// About gathers what the objects around it mean for a workload, whose managed containers and newest pod are given.
// Without a pod, quotas that choose pods by scope are left out.
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
