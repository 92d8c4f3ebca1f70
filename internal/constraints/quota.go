// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Quota is the least unused memory of the ResourceQuotas that count a workload's pods. 0: no quota; [Exhausted]: none.
type Quota struct {
	Name     string       // of the ResourceQuota, or of two ("a and b") if Limits and Requests come from different ones
	Limits   memory.Bytes // unused limits.memory
	Requests memory.Bytes // unused requests.memory (or memory, its older name)
}

// Holds reports whether a pod of this size fits the quota.
func (q Quota) Holds(need memory.Size) bool {
	return (q.Limits == 0 || need.Limit <= q.Limits) && (q.Requests == 0 || need.Request <= q.Requests)
}

// Exhausted represents an exhausted quota: a byte, because 0 means no quota.
const Exhausted memory.Bytes = 1

// quotaFor returns the unused memory of the quotas that count the pod.
func quotaFor(pod *corev1.Pod, quotas []corev1.ResourceQuota) Quota {
	var out Quota
	var limits, requests string
	tighter := func(left, least memory.Bytes, name, leastName string) bool { // if equal, the first name is tighter
		return left > 0 && (least == 0 || left < least || left == least && name < leastName)
	}
	for i := range quotas {
		q := &quotas[i]
		if !covers(q, pod) {
			continue
		}
		if left := left(q, corev1.ResourceLimitsMemory); tighter(left, out.Limits, q.Name, limits) {
			out.Limits, limits = left, q.Name
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceRequestsMemory, corev1.ResourceMemory} {
			if left := left(q, name); tighter(left, out.Requests, q.Name, requests) {
				out.Requests, requests = left, q.Name
			}
		}
	}
	out.Name = both(limits, requests)
	return out
}

// left returns the unused amount; 0: the quota does not limit the resource, or has not counted it yet.
func left(q *corev1.ResourceQuota, name corev1.ResourceName) memory.Bytes {
	hard, bounded := q.Status.Hard[name]
	used, counted := q.Status.Used[name]
	if !bounded || !counted {
		return 0
	}
	return max(memory.FromQuantity(hard).Minus(memory.FromQuantity(used)), Exhausted)
}

// covers reports whether the quota counts the pod: all scopes and selector terms match. A nil pod matches no term.
func covers(q *corev1.ResourceQuota, pod *corev1.Pod) bool {
	var terms []corev1.ScopedResourceSelectorRequirement
	for _, scope := range q.Spec.Scopes {
		exists := corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}
		terms = append(terms, exists)
	}
	if q.Spec.ScopeSelector != nil {
		terms = append(terms, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return !slices.ContainsFunc(terms, func(term corev1.ScopedResourceSelectorRequirement) bool {
		return pod == nil || !matches(term, pod)
	})
}

// matches reports whether one term matches the pod. Unsupported scopes (cross-namespace affinity, volume attributes
// classes) match no pod.
func matches(term corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	terminating := pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
	bestEffort := pod.Status.QOSClass == corev1.PodQOSBestEffort
	switch term.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !terminating
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort
	case corev1.ResourceQuotaScopePriorityClass:
		return ofPriority(term, pod.Spec.PriorityClassName)
	default:
		return false
	}
}

func ofPriority(term corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch term.Operator {
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(term.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(term.Values, class)
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	default:
		return false
	}
}
