// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// InformerReader is a reader of a cache that goes straight to the informer for what each new pod of a cluster asks,
// which is metadata of owners and namespaces, and recommendations, and for pods. The cache itself looks up scheme, kind
// and informer at every read and copies by reflection. What it returns is the cache's own: only read it.
type InformerReader struct {
	client.Reader
	cache           cache.Cache
	metadata        map[metav1.TypeMeta]*store
	recommendations *store
	pods            atomic.Pointer[store] // nil until somebody asks for a pod
}

// NewInformerReader reads from c, which must be the cache of a manager. It starts the informers that every replica
// needs for the webhook, besides those of profiles ([Watcher]) and of what bounds pods (internal/constraintindex). Pods
// are the leader's business, and a replica that only serves the webhook must neither hold all pods of the cluster nor
// wait for them before it is ready.
func NewInformerReader(ctx context.Context, c cache.Cache) (*InformerReader, error) {
	s := &InformerReader{Reader: c, cache: c, metadata: map[metav1.TypeMeta]*store{}}
	var err error
	for _, obj := range Informers() {
		of := metav1.TypeMeta{}
		of.APIVersion, of.Kind = obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		if s.metadata[of], err = storeOf(ctx, c, obj); err != nil {
			return nil, err
		}
	}
	s.recommendations, err = storeOf(ctx, c, &v1alpha1.MemoryRecommendation{})
	return s, err
}

// Pod is the cache's own pod, which nobody may change; nil: it has none of that name. A reader of the cache would copy
// a kibibyte of each pod of a workload for every look at it. Only for whoever follows pods: the first question starts
// their informer.
func (s *InformerReader) Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	pods := s.pods.Load()
	if pods == nil {
		var err error
		if pods, err = storeOf(ctx, s.cache, &corev1.Pod{}); err != nil {
			return nil, err
		}
		s.pods.Store(pods)
	}
	if found, ok := pods.find(key); ok {
		pod, _ := found.(*corev1.Pod)
		return pod, nil
	}
	pod := &corev1.Pod{}
	if err := s.Reader.Get(ctx, key, pod); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return pod, nil
}

// Get reads from a store, or from the cache while that is not filled yet.
func (s *InformerReader) Get(
	ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption,
) error {
	switch into := into.(type) {
	case *metav1.PartialObjectMetadata:
		if found, ok := s.metadata[into.TypeMeta].find(key); ok {
			m, ok := found.(*metav1.PartialObjectMetadata)
			if !ok {
				return notFound(into.Kind, key)
			}
			into.ObjectMeta = m.ObjectMeta
			return nil
		}
	case *v1alpha1.MemoryRecommendation:
		if found, ok := s.recommendations.find(key); ok {
			m, ok := found.(*v1alpha1.MemoryRecommendation)
			if !ok {
				return notFound("MemoryRecommendation", key)
			}
			*into = *m
			return nil
		}
	}
	return s.Reader.Get(ctx, key, into, options...)
}

func notFound(kind string, key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
}

// store is what one informer keeps.
type store struct {
	items  toolscache.Store
	synced func() bool
	filled atomic.Bool // synced was true once, and stays
}

// storeOf is nil for a cache that has more than one informer of a kind, or none of client-go's.
func storeOf(ctx context.Context, c cache.Cache, obj client.Object) (*store, error) {
	informer, err := c.GetInformer(ctx, obj)
	if err != nil {
		return nil, fmt.Errorf("preparing the cache for %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, nil
	}
	return &store{items: shared.GetStore(), synced: shared.HasSynced}, nil
}

// find is nil for an object that is not there; ok is false when this store cannot tell.
func (s *store) find(key client.ObjectKey) (found any, ok bool) {
	if s == nil || !s.filled.Load() && !s.synced() {
		return nil, false
	}
	s.filled.Store(true)
	id := key.Name
	if key.Namespace != "" {
		id = key.Namespace + "/" + key.Name
	}
	found, _, err := s.items.GetByKey(id)
	return found, err == nil
}
