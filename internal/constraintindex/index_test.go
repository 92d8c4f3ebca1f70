// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraintindex

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/internal/memory"
)

func amount(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(q)}
}

func limitRange(namespace, highest string) *corev1.LimitRange {
	return &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bounds"},
		Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: amount(highest)}},
		},
	}
}

func quota(namespace, hard, used string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}}
	q.Status.Hard = corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse(hard)}
	q.Status.Used = corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse(used)}
	return q
}

// TestWhatANamespaceSays follows one namespace while its objects come, change and go.
func TestWhatANamespaceSays(t *testing.T) {
	x := &Index{}
	h := x.handler()
	if x.In("shop") != nil {
		t.Fatal("a namespace says something before anything was seen")
	}
	h.OnAdd(limitRange("shop", "1Gi"), true)
	if got := x.In("shop").FactsFor(nil, 0); got.Range.Max != memory.GiB || got.Quota.Limits != 0 {
		t.Fatalf("maximum %s, the quota leaves %s; want 1Gi and no quota", got.Range.Max, got.Quota.Limits)
	}
	h.OnAdd(quota("shop", "4Gi", "3Gi"), true)
	if got := x.In("shop").FactsFor(&corev1.Pod{}, 0); got.Range.Max != memory.GiB || got.Quota.Limits != memory.GiB {
		t.Errorf("maximum %s, the quota leaves %s; want 1Gi each", got.Range.Max, got.Quota.Limits)
	}
	h.OnUpdate(nil, quota("shop", "4Gi", "3584Mi"))
	if got := x.In("shop").FactsFor(&corev1.Pod{}, 0).Quota.Limits; got != 512*memory.MiB {
		t.Errorf("the quota leaves %s, want 512Mi", got)
	}
	h.OnUpdate(nil, limitRange("shop", "512Mi"))
	if got := x.In("shop").FactsFor(&corev1.Pod{}, 0); got.Range.Max != 512*memory.MiB ||
		got.Quota.Limits != 512*memory.MiB {
		t.Errorf("after the LimitRange changed: %+v", got)
	}
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: quota("shop", "4Gi", "3Gi")})
	h.OnDelete(limitRange("shop", "512Mi"))
	if x.In("shop") != nil || len(x.spaces) > 0 {
		t.Errorf("a namespace says something after all was deleted: %+v", x.In("shop"))
	}
	h.OnAdd(limitRange("shop", "1Gi"), false)
	if again := x.In("shop"); again == nil || again.FactsFor(nil, 0).Range.Max != memory.GiB {
		t.Errorf("created again, it says %+v", again)
	}
	h.OnAdd(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "cpu"}}, false)
	if x.In("other") != nil {
		t.Error("a LimitRange without memory says something about it")
	}
}

// TestReadingAllocatesNothing, because it is done for every new pod that is sized.
func TestReadingAllocatesNothing(t *testing.T) {
	x := &Index{}
	for i := range 1000 {
		x.handler().OnAdd(limitRange(fmt.Sprintf("ns-%d", i), "1Gi"), true)
	}
	for _, namespace := range []string{"ns-7", "free"} {
		if allocs := testing.AllocsPerRun(100, func() { _, _ = x.In(namespace), x.LargestNode() }); allocs > 0 {
			t.Errorf("reading %s allocates %v times, want 0", namespace, allocs)
		}
	}
}

// TestTheLargestNode stays known while nodes come, shrink and go.
func TestTheLargestNode(t *testing.T) {
	n := &Nodes{}
	h := n.Handler()
	node := func(name, allocatable string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: amount(allocatable)},
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"two nodes", func() { h.OnAdd(node("a", "8Gi"), true); h.OnAdd(node("b", "4Gi"), true) }, "8Gi"},
		{"the largest shrinks", func() { h.OnUpdate(nil, node("a", "2Gi")) }, "4Gi"},
		{"a larger one comes", func() { h.OnAdd(node("c", "16Gi"), false) }, "16Gi"},
		{"and goes", func() { h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: node("c", "16Gi")}) }, "4Gi"},
		{"and the last ones", func() { h.OnDelete(node("a", "2Gi")); h.OnDelete(node("b", "4Gi")) }, "0"},
	} {
		step.do()
		if sizes, largest := n.All(); largest.String() != step.want || n.Largest() != largest {
			t.Errorf("%s: the largest is %s of %v, want %s", step.what, largest, sizes, step.want)
		}
	}
}
