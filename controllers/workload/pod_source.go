// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/internal/policy"
)

// Priorities in the workload queue: a kill must overtake a relist of a hundred thousand pods.
const (
	priorityKill    = 100
	priorityNormal  = 0
	priorityRefresh = -100
)

// PodSource turns pod events into observations and queues the pods' workloads. It is the workload controller's source.
//
// The event handler reads the pod's status immediately, because a later event may no longer show an OOM kill. It only
// reads caches and appends to the inbox, so that it never delays the informer.
type PodSource struct {
	Cache    cache.Cache
	Resolver *policy.Resolver
	Inbox    *inbox.Inbox
	// Constraints are watched before pods; nil: none.
	Constraints interface {
		Follow(
			ctx context.Context, queue interface{ Enqueue(...memory.WorkloadRef) }, known func() []memory.WorkloadRef,
		) error
	}
	// Snapshots are watched as well; nil: none.
	Snapshots interface {
		Follow(ctx context.Context, queue interface{ Enqueue(...memory.WorkloadRef) }) error
	}

	queue  atomic.Pointer[workloadQueue] // set when the controller starts, only on the leader
	pods   atomic.Pointer[toolscache.Store]
	synced chan error
}

type workloadQueue = workqueue.TypedRateLimitingInterface[memory.WorkloadRef]

// Start starts to watch pods. Existing pods arrive as additions, so that earlier kills are also found.
func (f *PodSource) Start(ctx context.Context, queue workloadQueue) error {
	f.queue.Store(&queue)
	f.synced = make(chan error, 1)
	go func() { f.synced <- f.follow(ctx) }()
	return nil
}

// WaitForSync returns when every pod that existed at the start is in the inbox.
func (f *PodSource) WaitForSync(ctx context.Context) error {
	select {
	case err := <-f.synced:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Pod returns a pod of the cache, which must not be changed; nil: not found. It does not use [PodSource.Cache], which
// would copy 1 KiB per pod in every step.
func (f *PodSource) Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	if pods := f.pods.Load(); pods != nil {
		found, _, err := (*pods).GetByKey(key.String())
		pod, _ := found.(*corev1.Pod)
		return pod, err
	}
	pod := &corev1.Pod{}
	if err := f.Cache.Get(ctx, key, pod); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return pod, nil
}

func (f *PodSource) follow(ctx context.Context) error {
	// Without owners and profiles every pod would appear as its own, ungoverned workload.
	if !f.Cache.WaitForCacheSync(ctx) {
		return errors.New("informer caches did not sync")
	}
	select {
	case <-f.Resolver.Built():
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.Constraints != nil {
		if err := f.Constraints.Follow(ctx, f, f.Inbox.Workloads); err != nil {
			return err
		}
	}
	if f.Snapshots != nil {
		if err := f.Snapshots.Follow(ctx, f); err != nil {
			return err
		}
	}
	pods, err := f.Cache.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	if shared, ok := pods.(toolscache.SharedIndexInformer); ok {
		f.pods.Store(new(shared.GetStore()))
	}
	registration, err := pods.AddEventHandler(f.handler(ctx))
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	// A deleted recommendation is written again.
	if _, err := informers.Watch(
		ctx, f.Cache, &v1alpha1.MemoryRecommendation{}, informers.Handler[*v1alpha1.MemoryRecommendation]{
			Gone: func(rec *v1alpha1.MemoryRecommendation) { f.enqueue(workloadOf(rec), priorityNormal) },
		},
	); err != nil {
		return err
	}
	if err := f.followOwners(ctx); err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	return nil
}

func (f *PodSource) handler(ctx context.Context) informers.Handler[*corev1.Pod] {
	return informers.Handler[*corev1.Pod]{
		Seen: func(pod *corev1.Pod) { f.seen(ctx, pod) },
		Changed: func(before, after *corev1.Pod) {
			if before.UID != after.UID { // after a gap in the watch
				f.gone(ctx, before)
			}
			f.seen(ctx, after)
		},
		Gone: func(pod *corev1.Pod) { f.gone(ctx, pod) },
	}
}

// followOwners watches the annotations of workloads and namespaces: opting in or out, and pausing, changes no pod.
func (f *PodSource) followOwners(ctx context.Context) error {
	for _, obj := range policy.Informers() {
		kind := obj.GetObjectKind().GroupVersionKind()
		if _, err := informers.Watch(ctx, f.Cache, obj, informers.Handler[client.Object]{
			Changed: func(before, after client.Object) { f.ownerChanged(kind, before, after) },
			Gone:    func(last client.Object) { f.vanished(kind, last) },
		}); err != nil {
			return fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
	return nil
}

// ownerChanged queues the workloads that a change of an owner or namespace affects: of annotations, or of the owner's
// own controller, as after `kubectl delete --cascade=orphan`.
func (f *PodSource) ownerChanged(kind schema.GroupVersionKind, before, after client.Object) {
	if !maps.Equal(
		informers.MemfitAnnotations(before.GetAnnotations()), informers.MemfitAnnotations(after.GetAnnotations()),
	) || !maps.Equal(before.GetLabels(), after.GetLabels()) { // the cache keeps only the labels of namespaces
		f.Enqueue(f.workloadsAffectedBy(kind, after)...)
	}
	was, is := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)
	switch {
	case was == nil && is != nil: // adopted: until now, it was the workload of its pods
		f.Enqueue(refOf(kind, after))
	case was != nil && (is == nil || is.UID != was.UID):
		f.Enqueue(memory.WorkloadRef{
			APIVersion: was.APIVersion, Kind: was.Kind, Namespace: before.GetNamespace(), Name: was.Name,
		})
	}
}

// vanished queues a deleted workload, so that its records are deleted, and records the deletion, so that the reconcile
// need not ask the API server.
func (f *PodSource) vanished(kind schema.GroupVersionKind, last client.Object) {
	if last.GetNamespace() != "" {
		f.Resolver.OwnerDeleted(refOf(kind, last), last.GetUID())
		f.Enqueue(refOf(kind, last))
	}
}

func refOf(kind schema.GroupVersionKind, obj client.Object) memory.WorkloadRef {
	return memory.WorkloadRef{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
	}
}

func (f *PodSource) workloadsAffectedBy(kind schema.GroupVersionKind, obj client.Object) []memory.WorkloadRef {
	var all []memory.WorkloadRef
	for _, w := range f.Inbox.Workloads() {
		inNamespace := kind.Kind == "Namespace" && kind.Group == "" &&
			(w.Namespace == obj.GetName() || f.Resolver.OwnNamespace() == obj.GetName())
		if inNamespace || w.Whole() == refOf(kind, obj) {
			all = append(all, w)
		}
	}
	return all
}

// seen adds a pod, and the observations in its status, to the inbox.
func (f *PodSource) seen(ctx context.Context, pod *corev1.Pod) {
	before, known := f.Inbox.Workload(pod.UID)
	resolved, err := f.resolve(ctx, pod)
	ref, kept := f.place(pod, &resolved, err)
	if known && before != ref { // adopted, orphaned, or its owner was not in the cache when it was added
		f.enqueue(before, priorityNormal)
	}
	if kept && f.ignored(ref, &resolved) {
		return
	}
	observations := oom.Observe(pod)
	f.Inbox.Observe(ref, observations)
	f.enqueue(ref, priorityOf(observations))
}

// place assigns a pod to its workload. kept is false if the result is preliminary because an owner is missing.
func (f *PodSource) place(pod *corev1.Pod, resolved *policy.Resolution, err error) (ref memory.WorkloadRef, kept bool) {
	key := client.ObjectKeyFromObject(pod)
	if k, complete := resolved.Remember(pod); complete && err == nil {
		f.Inbox.Keep(pod.UID, key, k)
		return k.Workload, true
	}
	if ref, known := f.Inbox.Workload(pod.UID); known {
		return ref, err == nil
	}
	f.Inbox.AddPod(pod.UID, key, resolved.Ref)
	return resolved.Ref, false
}

// resolve resolves a pod from caches only; the workload's reconcile reads missing objects from the API server.
func (f *PodSource) resolve(ctx context.Context, pod *corev1.Pod) (policy.Resolution, error) {
	resolved, err := f.Resolver.ResolveCached(ctx, pod, f.Inbox.Kept(pod.UID))
	if err != nil && !errors.Is(err, owners.ErrNotSeen) {
		logf.FromContext(ctx).Error(err, "Could not resolve a pod; the reconcile of its workload retries",
			"pod", client.ObjectKeyFromObject(pod))
	}
	return resolved, err
}

// ignored reports whether an event may be ignored, because no profile governed any of the workload's pods at its last
// reconcile, and none governs this pod.
func (f *PodSource) ignored(ref memory.WorkloadRef, resolved *policy.Resolution) bool {
	return resolved.Profile == nil && f.Inbox.Released(ref, inbox.NoProfile{Problem: resolved.Problem, Why: resolved.Why})
}

// gone adds the last known state of a deleted pod to the inbox. After missed events, this is the state in the cache.
func (f *PodSource) gone(ctx context.Context, pod *corev1.Pod) {
	ref, known := f.Inbox.Workload(pod.UID)
	resolved, err := f.resolve(ctx, pod)
	if !known {
		ref = resolved.Ref
	}
	ignored := err == nil && f.ignored(ref, &resolved)
	var observations []oom.Observation
	if !ignored {
		observations = oom.Observe(pod)
	}
	f.Inbox.RemovePod(ref, resolved.UID, pod, observations, resolved.Profile)
	if !ignored || resolved.Problem.EventReason() != "" { // a reported problem ends with the last pod
		f.enqueue(ref, priorityOf(observations))
	}
}

// Enqueue queues workloads, with all of their node classes, after workloads with urgent events.
func (f *PodSource) Enqueue(workloads ...memory.WorkloadRef) {
	for _, w := range workloads {
		f.enqueue(w, priorityRefresh)
		for _, of := range f.Inbox.NodeClasses(w) {
			f.enqueue(of, priorityRefresh)
		}
	}
}

// Sampled queues workloads with new samples. Their states absorb the samples immediately; a step follows later.
func (f *PodSource) Sampled(workloads ...memory.WorkloadRef) {
	for _, w := range workloads {
		f.addToQueue(w, priorityRefresh)
	}
}

// ProfilesChanged queues the workloads that changes of profiles affect.
func (f *PodSource) ProfilesChanged(changes []policy.Change) {
	f.Enqueue(f.Inbox.Concerned(changes)...)
}

// enqueue queues a workload for an unconditional step. A nil PodSource queues nothing.
func (f *PodSource) enqueue(w memory.WorkloadRef, priority int) {
	if f == nil {
		return
	}
	f.Inbox.Request(w)
	f.addToQueue(w, priority)
}

func (f *PodSource) addToQueue(w memory.WorkloadRef, priority int) {
	queue := f.queue.Load()
	if queue == nil {
		return // not the leader, or not started; the start reconciles everything
	}
	if pq, ok := (*queue).(priorityqueue.PriorityQueue[memory.WorkloadRef]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, w)
		return
	}
	(*queue).Add(w)
}

func priorityOf(observations []oom.Observation) int {
	if slices.ContainsFunc(observations, func(o oom.Observation) bool { return len(o.Ended) > 0 }) {
		return priorityKill
	}
	return priorityNormal
}

func workloadOf(rec *v1alpha1.MemoryRecommendation) memory.WorkloadRef {
	w := rec.Status.Workload
	ref := memory.WorkloadRef{APIVersion: w.APIVersion, Kind: w.Kind, Namespace: rec.Namespace, Name: w.Name}
	if is := rec.Status.Identity; is != nil {
		ref.NodeClass = identity.NodeClassOf(is.Platform, is.Values)
	}
	return ref
}
