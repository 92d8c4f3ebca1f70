// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Namespace is the bounds of the LimitRanges and ResourceQuotas of one namespace on memory. It is not changed once it
// is read.
type Namespace struct {
	limits []limits
	quotas []corev1.ResourceQuota
}

// ReadNamespace reads them; nil when there are no bounds on memory.
func ReadNamespace(ranges []corev1.LimitRange, quotas []corev1.ResourceQuota) *Namespace {
	n := &Namespace{limits: limitsOf(ranges)}
	for i := range quotas {
		if boundsMemory(&quotas[i]) {
			n.quotas = append(n.quotas, quotas[i])
		}
	}
	if len(n.limits)+len(n.quotas) == 0 {
		return nil
	}
	return n
}

func boundsMemory(q *corev1.ResourceQuota) bool {
	for _, name := range []corev1.ResourceName{
		corev1.ResourceLimitsMemory, corev1.ResourceRequestsMemory, corev1.ResourceMemory,
	} {
		if _, bounded := q.Status.Hard[name]; bounded {
			return true
		}
	}
	return false
}

// Holds reports whether a pod that takes so much fits.
func (q Quota) Holds(need memory.Size) bool {
	return (q.Limits == 0 || need.Limit <= q.Limits) && (q.Requests == 0 || need.Request <= q.Requests)
}

// FactsFor is what a new pod there has to fit into. A nil namespace has no bounds.
func (n *Namespace) FactsFor(pod *corev1.Pod, largestNode memory.Bytes) Facts {
	f := Facts{LargestNode: largestNode}
	if n != nil {
		f.limits, f.Range, f.Quota = n.limits, rangeOf(n.limits), quotaFor(pod, n.quotas)
	}
	return f
}
