// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Watch calls written with each recommendation of a namespace (of all with "") that exists, and again whenever one is
// written, until ctx ends or watching is forbidden. Deletions are not reported. A broken connection is reestablished.
func (c *Cluster) Watch(ctx context.Context, namespace string, written func(v1alpha1.MemoryRecommendation)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	client := c.client.Resource(v1alpha1.GroupVersion.WithResource(recommendations)).Namespace(namespace)
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}, 0, nil)
	handle := func(object any) {
		var rec v1alpha1.MemoryRecommendation
		u, ok := object.(*unstructured.Unstructured)
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &rec) == nil {
			written(rec)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) },
	})
	if err != nil {
		return fmt.Errorf("watching recommendations: %w", err)
	}
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		switch {
		case apierrors.IsForbidden(err):
			stop(fmt.Errorf("you may not watch %s.%s: ask for the right (ClusterRole %s has it), or leave --watch out: %w",
				recommendations, v1alpha1.Group, roles[recommendations], err))
		case apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
			stop(helpful(err, recommendations, namespace))
		}
	})
	if err != nil {
		return fmt.Errorf("watching recommendations: %w", err)
	}
	informer.RunWithContext(ctx)
	return context.Cause(ctx)
}
