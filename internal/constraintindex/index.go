// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraintindex reads LimitRanges, ResourceQuotas and the memory of nodes from informer caches. The webhook
// and the controllers call it.
package constraintindex

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/informers"
)

// Index reads LimitRanges and ResourceQuotas from a cache, and stores the nodes. It is safe for concurrent use.
type Index struct {
	// Reader is the cache.
	Reader client.Reader

	nodes        nodes
	registration toolscache.ResourceEventHandlerRegistration
}

// Follow adds the informers to a cache, which may be started later.
func (x *Index) Follow(ctx context.Context, c cache.Cache) error {
	for _, obj := range []client.Object{&corev1.LimitRange{}, &corev1.ResourceQuota{}} {
		if _, err := c.GetInformer(ctx, obj); err != nil {
			return fmt.Errorf("watching %T: %w", obj, err)
		}
	}
	var err error
	x.registration, err = informers.Watch(ctx, c, &corev1.Node{}, x.nodes.handler())
	return err
}

// HasSynced reports whether the existing nodes are stored.
func (x *Index) HasSynced() bool { return x.registration.HasSynced() }

// NodePressureSince returns when a node's MemoryPressure began; zero: no pressure, or unknown.
func (x *Index) NodePressureSince(name string) time.Time {
	return x.nodes.all().NodePressureSince[name]
}

// In returns the LimitRanges and ResourceQuotas of a namespace, and the nodes. It returns no autoscalers. Objects are
// shared with the cache: do not change them.
func (x *Index) In(ctx context.Context, namespace string) (constraints.Objects, error) {
	var ranges corev1.LimitRangeList
	var quotas corev1.ResourceQuotaList
	err := errors.Join(
		x.Reader.List(ctx, &ranges, client.InNamespace(namespace), client.UnsafeDisableDeepCopy),
		x.Reader.List(ctx, &quotas, client.InNamespace(namespace), client.UnsafeDisableDeepCopy),
	)
	if err != nil {
		return constraints.Objects{}, fmt.Errorf("reading the constraints of namespace %s: %w", namespace, err)
	}
	return constraints.Objects{LimitRanges: ranges.Items, Quotas: quotas.Items, Nodes: x.nodes.all()}, nil
}
