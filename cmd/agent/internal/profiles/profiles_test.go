// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

func profile(namespace, name string, rescue v1alpha1.RescuePolicy) any {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	spec := v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Rescue: rescue}}
	if namespace == "" {
		return &v1alpha1.ClusterMemoryProfile{
			ObjectMeta: meta, Spec: v1alpha1.ClusterMemoryProfileSpec{MemoryProfileSpec: spec},
		}
	}
	return &v1alpha1.MemoryProfile{ObjectMeta: meta, Spec: spec}
}

func TestRescues(t *testing.T) {
	set := NewSet()
	namespaced, cluster := set.namespaced, set.cluster
	const on, off = v1alpha1.RescueEnabled, v1alpha1.RescueDisabled
	for _, step := range []struct {
		name       string
		do         func() error
		shop, bank bool
	}{
		{"nothing", func() error { return nil }, false, false},
		{"a list", func() error {
			return namespaced.Replace([]any{profile("shop", "a", on), profile("bank", "a", off)}, "")
		}, true, false},
		{"a second one", func() error { return namespaced.Add(profile("shop", "b", on)) }, true, false},
		{"one is disabled", func() error { return namespaced.Update(profile("shop", "a", "")) }, true, false},
		{"the other one, too", func() error { return namespaced.Delete(profile("shop", "b", on)) }, false, false},
		{"one of the cluster", func() error { return cluster.Replace([]any{profile("", "all", on)}, "") }, true, true},
		{"an empty list of the namespaced", func() error { return namespaced.Replace(nil, "") }, true, true},
		{"none of the cluster", func() error { return cluster.Replace(nil, "") }, false, false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if shop, bank := set.Rescues("shop"), set.Rescues("bank"); shop != step.shop || bank != step.bank {
			t.Errorf("%s: shop %t, bank %t", step.name, shop, bank)
		}
	}
	if kept := namespaced.ListIndexFuncValues(byNamespace); len(kept) != 0 {
		t.Errorf("%v is kept", kept)
	}
	if err := namespaced.Add(&corev1.Pod{}); err == nil {
		t.Error("a pod is taken for a profile")
	}
}
