// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profiles tracks the namespaces in which a profile enables rescues (sizing.rescue). In other namespaces the
// agent sends no alarms (predictions that a container reaches its limit). The agent does not know which pods a profile
// governs, so it may send alarms for pods without rescues, which the manager refuses.
package profiles

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Set has the namespaces of profiles that enable rescues, as the API server last reported them.
type Set struct {
	namespaced, cluster cache.Indexer
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{newStore(), newStore()} }

// byNamespace is the index of the profiles that enable rescues; the key "" has ClusterMemoryProfiles.
const byNamespace = "namespace"

// newStore returns a store that computes the key from a profile, and then keeps only what trim returns.
func newStore() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		byNamespace: func(kept any) ([]string, error) { return kept.([]string), nil },
	}, cache.WithTransformer(trim))
}

// Rescues reports whether a profile of the namespace or of the cluster enables rescues. It ignores namespaceSelector,
// because the agent does not know the labels of namespaces; the manager checks it.
func (s *Set) Rescues(namespace string) bool {
	all, _ := s.cluster.IndexKeys(byNamespace, "") // fails only without the index
	own, _ := s.namespaced.IndexKeys(byNamespace, namespace)
	return len(all)+len(own) > 0
}

// Watch keeps the set up to date until ctx ends.
func (s *Set) Watch(ctx context.Context, client cache.Getter) {
	go watch(ctx, client, "clustermemoryprofiles", &v1alpha1.ClusterMemoryProfile{}, s.cluster)
	watch(ctx, client, "memoryprofiles", &v1alpha1.MemoryProfile{}, s.namespaced)
}

func watch(ctx context.Context, client cache.Getter, resource string, kind runtime.Object, into cache.Store) {
	lw := cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
	cache.NewReflectorWithOptions(lw, kind, into, cache.ReflectorOptions{Name: resource}).RunWithContext(ctx)
}

// trim returns the namespaces in which a profile enables rescues: one or none.
func trim(object any) (kept any, err error) {
	switch p := object.(type) {
	case *v1alpha1.MemoryProfile:
		return namespaces(p.Namespace, &p.Spec), nil
	case *v1alpha1.ClusterMemoryProfile:
		return namespaces("", &p.Spec.MemoryProfileSpec), nil
	}
	return nil, fmt.Errorf("the watch for profiles returned a %T", object)
}

func namespaces(namespace string, spec *v1alpha1.MemoryProfileSpec) []string {
	if spec.Sizing.Rescue == v1alpha1.RescueEnabled {
		return []string{namespace}
	}
	return nil
}
