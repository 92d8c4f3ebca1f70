// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
)

const sizeLabel = "example.com/size"

// classed are the objects of a cluster with nodes of two classes and one without, and a profile that keeps the pods of
// DaemonSets apart.
func classed(t *testing.T) (client.Client, *policy.Resolver, *appsv1.DaemonSet) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	daemons := build.DaemonSet("shop", "log", v1alpha1.ProfileAnnotation, "web", v1alpha1.PauseAnnotation, "true")
	daemons.UID = "daemons"
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		build.Namespace("shop"), daemons,
		node("small-1", map[string]string{sizeLabel: "small"}), node("large-1", map[string]string{sizeLabel: "large"}),
		node("bare-1", nil),
		build.Profile("shop", "web", v1alpha1.RuntimeNative, func(s *v1alpha1.MemoryProfileSpec) {
			s.Identity = &v1alpha1.IdentitySpec{NodeClass: sizeLabel}
		}),
	).Build()
	resolver := policy.New(reader, nil)
	if err := resolver.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	return reader, resolver, daemons
}

func TestPodsOfADaemonSetAreKeptApartByNode(t *testing.T) {
	_, resolver, daemons := classed(t)
	of := func(node string) *corev1.Pod {
		return build.Pod("shop", "log-1").OwnedBy(daemons, "apps/v1", "DaemonSet").On(node).Obj()
	}
	chosen := of("")
	chosen.Spec.Affinity = identity.PinnedTo("large-1")
	bare := build.Pod("shop", "web").Annotate(v1alpha1.ProfileAnnotation, "web").On("large-1").Obj()
	for name, tc := range map[string]struct {
		pod         *corev1.Pod
		want, class string
	}{
		"on a small node":        {of("small-1"), "DaemonSet shop/log/small", "small"},
		"on a large node":        {of("large-1"), "DaemonSet shop/log/large", "large"},
		"before it is scheduled": {chosen, "DaemonSet shop/log/large", "large"},
		"without the label":      {of("bare-1"), "DaemonSet shop/log", ""},
		"on a node unknown":      {of("new-1"), "DaemonSet shop/log", ""},
		"without a node":         {of(""), "DaemonSet shop/log", ""},
		"another kind":           {bare, "Pod shop/web", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolver.ResolveCached(t.Context(), tc.pod, policy.Remembered{})
			if err != nil || got.Ref.String() != tc.want || got.Ref.NodeClass != tc.class ||
				(got.Identity != nil) != (tc.class != "") {
				t.Errorf("%v with identity %v, error %v; want %s", got.Ref, got.Identity, err, tc.want)
			}
			if tc.class != "" && (got.UID != daemons.UID || got.Paused != v1alpha1.PauseAnnotation+" on DaemonSet shop/log") {
				t.Errorf("its owner has UID %q; paused by %q", got.UID, got.Paused)
			}
			fromMeta, err := resolver.Resolve(t.Context(), &tc.pod.ObjectMeta)
			if err != nil || fromMeta.Ref != got.Ref.Whole() || fromMeta.Identity != nil {
				t.Errorf("from metadata: %v with identity %v, error %v", fromMeta.Ref, fromMeta.Identity, err)
			}
			if later := resolver.InNodeClass(t.Context(), tc.pod, fromMeta); later.Ref != got.Ref {
				t.Errorf("with its spec: %v, want %v", later.Ref, got.Ref)
			}
		})
	}
}

// TestAPodStaysInItsClass: a node may be deleted before its pods, whose last kill belongs to the class. A node that
// loses its label is another matter.
func TestAPodStaysInItsClass(t *testing.T) {
	reader, resolver, daemons := classed(t)
	pod := build.Pod("shop", "log-1").OwnedBy(daemons, "apps/v1", "DaemonSet").On("large-1").Obj()
	first, err := resolver.ResolveCached(t.Context(), pod, policy.Remembered{})
	if err != nil {
		t.Fatal(err)
	}
	kept, complete := first.Remember(pod)
	if !complete || kept.Workload.NodeClass != "large" {
		t.Fatalf("kept %+v", kept)
	}
	var node corev1.Node
	if err := reader.Get(t.Context(), client.ObjectKey{Name: "large-1"}, &node); err != nil {
		t.Fatal(err)
	}
	node.Labels = nil
	if err := reader.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	if got, err := resolver.ResolveCached(t.Context(), pod, kept); err != nil || got.Ref.NodeClass != "" {
		t.Errorf("without the label: %v, error %v", got.Ref, err)
	}
	if err := reader.Delete(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	got, err := resolver.ResolveCached(t.Context(), pod, kept)
	if err != nil || got.Ref != first.Ref || got.Identity == nil || got.Identity.String() != "daemonset/log [large]" {
		t.Errorf("without the node: %v with identity %v, error %v", got.Ref, got.Identity, err)
	}
	if err := reader.Delete(t.Context(), daemons); err != nil {
		t.Fatal(err)
	}
	if got, err = resolver.ResolveCached(t.Context(), pod, kept); err != nil || got.Ref != first.Ref {
		t.Errorf("without the DaemonSet: %v, error %v", got.Ref, err)
	}
}
