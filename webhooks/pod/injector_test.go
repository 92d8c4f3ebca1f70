// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/goldenpods"
)

// TestPausedPodsKeepTheSizeOfRunningOnes: a pause stops changes. A pod that is created again must not get the limit
// that killed its predecessor.
func TestPausedPodsKeepTheSizeOfRunningOnes(t *testing.T) {
	pair, err := goldenpods.Read(filepath.Join(goldenpods.Dir(), "nodejs", "node-live-heap-raised.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	pair.Profile.UID = "p" // as in a cluster
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objectsOf(&pair)...).Build()
	h := &Injector{Resolver: policy.New(reader, nil), Reader: reader}
	if err := h.Resolver.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	pod := decode(t, pair.Pod)
	pod.Namespace = pair.Profile.Namespace
	resolved, err := h.Resolver.Resolve(t.Context(), &pod.ObjectMeta)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := h.recommendation(t.Context(), resolved)
	if err != nil || rec == nil {
		t.Fatalf("%v, %v", rec, err)
	}
	resolved.Paused = "memfit.dev/pause on Namespace shop"
	if got := offersOf(resolved, rec); len(got) != 1 {
		t.Errorf("new pods of a paused workload get %v", got)
	}
	if rec, err = h.recommendation(t.Context(), resolved); err != nil ||
		len(inject.ObservedIn(rec.Status.Containers)) != 1 {
		t.Errorf("what is alive counts for paused workloads, too: %v, %v", rec, err)
	}
}

// TestTheNodesThatTakeAPod are not those that the cluster has this moment: at seven in the morning there may be none
// yet, and the largest may have a taint.
func TestTheNodesThatTakeAPod(t *testing.T) {
	facts := constraints.Facts{Nodes: constraints.Nodes{
		NodeSize: map[string]memory.Bytes{"a": 3 * memory.GiB, "gpu": 512 * memory.GiB}, LargestNode: 512 * memory.GiB,
	}}
	pinned := func(node string) corev1.PodSpec { return corev1.PodSpec{Affinity: identity.PinnedTo(node)} }
	for name, tc := range map[string]struct {
		pod         corev1.PodSpec
		ranOn, want memory.Bytes
	}{
		"the workload has run": {ranOn: 14 * memory.GiB, want: 14 * memory.GiB},
		"it has not":           {want: 512 * memory.GiB},
		"a DaemonSet's pod":    {pod: pinned("a"), ranOn: 14 * memory.GiB, want: 3 * memory.GiB},
		"one on a new node":    {pod: pinned("b"), ranOn: 14 * memory.GiB, want: 3 * memory.GiB},
	} {
		rec := &v1alpha1.MemoryRecommendation{}
		rec.Status.LargestNode = format.Exact(tc.ranOn)
		if got, _ := largestNode(&corev1.Pod{Spec: tc.pod}, rec, &facts); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
