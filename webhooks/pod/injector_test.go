// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/goldenpods"
)

// TestPausedPodsAreUnlikeOthers: they get no size, but whatever else the recommendation says of them.
func TestPausedPodsAreUnlikeOthers(t *testing.T) {
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
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pair.Objects()...).Build()
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
	going, shared := h.inputs(resolved, rec, bounds{})
	resolved.Paused = "somebody"
	still, _ := h.inputs(resolved, rec, bounds{})
	if going == still || !shared {
		t.Errorf("paused or not, an outcome is shared (shared: %t)", shared)
	}
	if got := sizes(resolved, rec); got != nil {
		t.Errorf("paused, and yet %v", got)
	}
	if rec, err = h.recommendation(t.Context(), resolved); err != nil || len(observed(rec)) != 1 {
		t.Errorf("what is alive counts for paused workloads, too: %v, %v", rec, err)
	}
}
