// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Set is the profiles that enable rescues, as the API server last reported them.
type Set struct {
	mu sync.Mutex
	// enabling has the names of profiles by namespace; those of "" are ClusterMemoryProfiles.
	enabling map[string]map[string]bool
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{enabling: map[string]map[string]bool{}} }

// Rescues reports whether a profile of the namespace or of the cluster enables rescues. namespaceSelector is left to
// the manager, because the agent does not know the labels of namespaces.
func (s *Set) Rescues(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.enabling[""]) > 0 || len(s.enabling[namespace]) > 0
}

// Watch keeps the set up to date until ctx ends.
func (s *Set) Watch(ctx context.Context, client cache.Getter) {
	go s.watch(ctx, client, "clustermemoryprofiles", &v1alpha1.ClusterMemoryProfile{}, true)
	s.watch(ctx, client, "memoryprofiles", &v1alpha1.MemoryProfile{}, false)
}

func (s *Set) watch(ctx context.Context, client cache.Getter, resource string, kind runtime.Object, cluster bool) {
	lw := cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
	r := cache.NewReflectorWithOptions(lw, kind, &store{s, cluster}, cache.ReflectorOptions{Name: resource})
	r.RunWithContext(ctx)
}

// store is what a reflector of one kind fills.
type store struct {
	set     *Set
	cluster bool
}

// Add is part of what a reflector's store does.
func (s *store) Add(object any) error { return s.Update(object) }

// Update is part of what a reflector's store does.
func (s *store) Update(object any) error {
	name, enabled, err := trim(object)
	if err != nil {
		return err
	}
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	s.set.put(name, enabled)
	return nil
}

// Delete is part of what a reflector's store does.
func (s *store) Delete(object any) error {
	name, _, err := trim(object)
	if err != nil {
		return err
	}
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	s.set.put(name, false)
	return nil
}

// Replace is part of what a reflector's store does.
func (s *store) Replace(objects []any, _ string) error {
	now := NewSet()
	for _, object := range objects {
		name, enabled, err := trim(object)
		if err != nil {
			return err
		}
		now.put(name, enabled)
	}
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	for namespace, names := range s.set.enabling { // those of the other kind remain
		if (namespace == "") != s.cluster {
			now.enabling[namespace] = names
		}
	}
	s.set.enabling = now.enabling
	return nil
}

// Resync is part of what a reflector's store does.
func (s *store) Resync() error { return nil }

// put takes note of a profile. The caller holds mu.
func (s *Set) put(name types.NamespacedName, enabled bool) {
	names := s.enabling[name.Namespace]
	switch {
	case !enabled:
		if delete(names, name.Name); len(names) == 0 {
			delete(s.enabling, name.Namespace)
		}
	case names == nil:
		s.enabling[name.Namespace] = map[string]bool{name.Name: true}
	default:
		names[name.Name] = true
	}
}

// trim takes what is kept of a profile.
func trim(object any) (name types.NamespacedName, enabled bool, err error) {
	switch p := object.(type) {
	case *v1alpha1.MemoryProfile:
		return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, enables(&p.Spec), nil
	case *v1alpha1.ClusterMemoryProfile:
		return types.NamespacedName{Name: p.Name}, enables(&p.Spec.MemoryProfileSpec), nil
	}
	return name, false, fmt.Errorf("the watch for profiles returned a %T", object)
}

func enables(spec *v1alpha1.MemoryProfileSpec) bool {
	return spec.Sizing.Rescue == v1alpha1.RescueEnabled
}
