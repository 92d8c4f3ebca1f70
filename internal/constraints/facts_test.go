// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
)

var web = memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}

// TestFactsOfAnEmptyNamespace: without objects nothing is constrained.
func TestFactsOfAnEmptyNamespace(t *testing.T) {
	f := FactsOf(web, []string{"app"}, nil, Objects{})
	if f.Conflict != "" || f.Remedy != "" || f.Range != (Range{}) || f.Quota != (Quota{}) || f.NodeSize != nil ||
		f.Refusal(pod(), nil) != "" {
		t.Errorf("an empty namespace says %+v", f)
	}
}

// TestFactsBringEverythingTogether: every object counts.
func TestFactsBringEverythingTogether(t *testing.T) {
	f := FactsOf(web, []string{"app"}, pod(), Objects{
		VPAs:        []VPA{{Name: "v", Target: memory.WorkloadRef{Kind: "Deployment", Namespace: "shop", Name: "web"}}},
		LimitRanges: []corev1.LimitRange{limitRange("bounds", item(corev1.LimitTypeContainer, "64Mi", "512Mi", ""))},
		Quotas: []corev1.ResourceQuota{
			quota("team", map[corev1.ResourceName][2]string{"limits.memory": {"4Gi", "3Gi"}}),
		},
		Nodes: Nodes{NodeSize: map[string]memory.Bytes{"n1": 8 * memory.GiB}},
	})
	if f.Conflict == "" || f.Remedy == "" || f.Range.Max != 512*memory.MiB || f.Quota.Limits != memory.GiB ||
		f.NodeSize["n1"] != 8*memory.GiB {
		t.Errorf("facts are %+v", f)
	}
}

// pod is a pod with the given containers.
func pod(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}
}

// container asks for a request and a limit; "" for none.
func container(name, request, limit string) corev1.Container {
	c := corev1.Container{Name: name}
	if request != "" {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(request)}
	}
	if limit != "" {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	}
	return c
}

func limitRange(name string, items ...corev1.LimitRangeItem) corev1.LimitRange {
	return corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.LimitRangeSpec{Limits: items},
	}
}

func item(kind corev1.LimitType, lowest, highest, ratio string) corev1.LimitRangeItem {
	i := corev1.LimitRangeItem{Type: kind}
	for value, field := range map[*corev1.ResourceList]string{
		&i.Min: lowest, &i.Max: highest, &i.MaxLimitRequestRatio: ratio,
	} {
		if field != "" {
			*value = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(field)}
		}
	}
	return i
}

// quota has, for each resource, what is hard and what is used.
func quota(
	name string, amounts map[corev1.ResourceName][2]string, scopes ...corev1.ResourceQuotaScope,
) corev1.ResourceQuota {
	q := corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ResourceQuotaSpec{Scopes: scopes},
	}
	q.Status.Hard, q.Status.Used = corev1.ResourceList{}, corev1.ResourceList{}
	for resourceName, amount := range amounts {
		q.Status.Hard[resourceName] = resource.MustParse(amount[0])
		if amount[1] != "" {
			q.Status.Used[resourceName] = resource.MustParse(amount[1])
		}
	}
	return q
}
