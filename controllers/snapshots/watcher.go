// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshots watches MemorySnapshots, which node agents (config/agent) write about pods. It runs on the leader.
// memfit works without snapshots, so this package never delays or fails a reconcile.
package snapshots

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
)

// MemorySnapshots have the runtimes of pods, and what fills their memory.
// +kubebuilder:rbac:groups=memfit.dev,resources=memorysnapshots,verbs=list;watch

// Watcher reads the MemorySnapshots of pods from an informer cache.
type Watcher struct {
	Cache cache.Cache
	// Workload returns the workload of a pod; ok is false if memfit does not govern it.
	Workload func(pod types.UID) (w memory.WorkloadRef, ok bool)
	// OnAlarm is called with each snapshot whose alarm is new; it must not wait. Nil: alarms are ignored.
	OnAlarm func(*v1alpha1.MemorySnapshot)

	synced func() bool // nil until MemorySnapshots are watched
}

// Follow watches MemorySnapshots, and queues the workload of a pod when its snapshot has a relevant change. It does not
// wait for the first list. Call it before [Watcher.Of].
func (w *Watcher) Follow(ctx context.Context, queue interface{ Enqueue(...memory.WorkloadRef) }) error {
	enqueue := func(s *v1alpha1.MemorySnapshot) {
		for _, owner := range s.OwnerReferences {
			if ref, known := w.Workload(owner.UID); known {
				queue.Enqueue(ref)
			}
		}
	}
	registration, err := informers.Watch(
		ctx, w.Cache, &v1alpha1.MemorySnapshot{}, informers.Handler[*v1alpha1.MemorySnapshot]{
			Seen: func(s *v1alpha1.MemorySnapshot) {
				w.passAlarm(nil, s)
				enqueue(s)
			},
			Changed: func(before, after *v1alpha1.MemorySnapshot) {
				w.passAlarm(before, after)
				if !informers.SameSnapshot(before, after) {
					enqueue(after)
				}
			},
		}, cache.BlockUntilSynced(false),
	)
	if err != nil {
		return err
	}
	w.synced = registration.HasSynced
	return nil
}

// passAlarm calls OnAlarm with a snapshot if its previous version, if any, did not have the alarm.
func (w *Watcher) passAlarm(before, s *v1alpha1.MemorySnapshot) {
	if w.OnAlarm == nil || s.Status.Alarm == nil || before != nil && before.UID == s.UID &&
		before.Status.Alarm != nil && before.Status.Alarm.Sequence == s.Status.Alarm.Sequence {
		return
	}
	w.OnAlarm(s)
}

// Of returns the snapshots that the agents of the pods' own nodes wrote, by pod UID; nil: none. It checks UID and node,
// because StatefulSets reuse pod names, and any agent can write a snapshot of any name. The snapshots are shared with
// the cache: do not change them.
func (w *Watcher) Of(ctx context.Context, pods []*corev1.Pod) map[types.UID]*v1alpha1.MemorySnapshot {
	if w.synced == nil || !w.synced() {
		return nil
	}
	var all map[types.UID]*v1alpha1.MemorySnapshot
	for _, pod := range pods {
		s := &v1alpha1.MemorySnapshot{}
		err := w.Cache.Get(ctx, client.ObjectKeyFromObject(pod), s, client.UnsafeDisableDeepCopy)
		if err != nil || !s.IsOf(pod.UID, pod.Spec.NodeName) {
			continue
		}
		if all == nil {
			all = make(map[types.UID]*v1alpha1.MemorySnapshot, len(pods))
		}
		all[pod.UID] = s
	}
	return all
}
