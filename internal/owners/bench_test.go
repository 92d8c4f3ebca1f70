// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// quiet is the cluster of a benchmark: a map and nothing else.
type quiet struct {
	client.Reader
	objects map[types.NamespacedName]*metav1.PartialObjectMetadata
}

func (q quiet) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	m, ok := q.objects[key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	*out.(*metav1.PartialObjectMetadata) = *m
	return nil
}

func BenchmarkOwner(b *testing.B) {
	known := quiet{objects: map[types.NamespacedName]*metav1.PartialObjectMetadata{}}
	for id, m := range holding("ReplicaSet/web-6d4c < apps/v1 Deployment/web", "Deployment/web", "DaemonSet/log").objects {
		_, name, _ := strings.Cut(id, "/")
		known.objects[types.NamespacedName{Namespace: "shop", Name: name}] = m
	}
	for name, pod := range map[string]*metav1.ObjectMeta{
		"deployment":  podOf("apps/v1 ReplicaSet/web-6d4c", "pod-template-hash=6d4c"),
		"new-rollout": podOf("apps/v1 ReplicaSet/web-77ff", "pod-template-hash=77ff"),
		"daemonset":   podOf("apps/v1 DaemonSet/log"),
		"bare":        podOf(""),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := Resolver{Reader: known}
			for b.Loop() {
				if _, err := r.Owner(b.Context(), pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCache measures what one owner costs in the cache, as it comes from the API server and stripped.
func BenchmarkCache(b *testing.B) {
	const owners = 10_000
	strip := Strip(func(a string) bool { return strings.HasPrefix(a, "memfit.dev/") })
	for name, transform := range map[string]func(any) (any, error){
		"whole":    func(o any) (any, error) { return o, nil },
		"stripped": strip,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				kept := make([]any, 0, owners)
				before := liveHeap()
				for i := range owners {
					o, err := transform(typicalReplicaSet(i))
					if err != nil {
						b.Fatal(err)
					}
					kept = append(kept, o)
				}
				b.ReportMetric(float64(liveHeap()-before)/owners, "B/owner")
				runtime.KeepAlive(kept)
			}
		})
	}
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// typicalReplicaSet has what a Deployment with kubectl-applied history leaves on its ReplicaSets.
func typicalReplicaSet(i int) *metav1.PartialObjectMetadata {
	s := func(format string) string { return strings.Clone(fmt.Sprintf(format, i)) }
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s("team-%d"), Name: s("web-%d-6d4cf56db6"), UID: types.UID(s("01234567-89ab-cdef-0123-%012d")),
			ResourceVersion: s("%d"),
			Labels:          map[string]string{"app": s("web-%d"), "pod-template-hash": s("6d4cf%d")},
			Annotations: map[string]string{
				"deployment.kubernetes.io/revision": s("%d"), "memfit.dev/profile": s("web-%d"),
				"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat(s("%08d"), 300),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: s("web-%d"), UID: types.UID(s("%d")), Controller: new(true),
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(strings.Repeat(s("%08d"), 150))},
			},
		},
	}
}
