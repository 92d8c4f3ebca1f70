// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraints watches what else in the cluster sets or bounds a workload's memory: autoscalers, LimitRanges,
// ResourceQuotas and nodes. When one of these changes, it queues the workloads that the change affects.
package constraints

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/owners"
)

// A HorizontalPodAutoscaler on memory reacts to every change of requests; memfit then only recommends, and names it.
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list;watch
// LimitRanges and quotas: memfit sets no size that admission would refuse.
// +kubebuilder:rbac:groups="",resources=limitranges;resourcequotas,verbs=list;watch

// Watcher reads from informer caches what else in the cluster sets or bounds a workload's memory. On the leader, the
// pod source starts it before it watches pods.
type Watcher struct {
	Cache cache.Cache
	// Bounds reads LimitRanges, ResourceQuotas and nodes.
	Bounds *constraintindex.Index
	// ServesVPAs asks the API server whether it serves VerticalPodAutoscalers, see [ServesVPAs].
	ServesVPAs func(context.Context) (bool, error)
	Clock      clock.WithTicker

	vpas vpas
}

// targetIndex is the cache index of autoscalers by kind and name of their target.
const targetIndex = "memfit.target"

func targetKey(kind, name string) string { return kind + "/" + name }

// Facts returns the constraints of w. containers are the names of its managed containers; pod is its newest pod.
func (n *Watcher) Facts(
	ctx context.Context, w memory.WorkloadRef, containers []string, pod *corev1.Pod,
) (constraints.Facts, error) {
	o, failed := n.Bounds.In(ctx, w.Namespace)
	o.Controller = n.above(ctx, w)
	for _, of := range []memory.WorkloadRef{w, o.Controller} {
		if of.Kind == "" {
			continue
		}
		var hpas autoscalingv2.HorizontalPodAutoscalerList
		inNamespace := client.InNamespace(w.Namespace)
		byTarget := client.MatchingFields{targetIndex: targetKey(of.Kind, of.Name)}
		vpas, err := n.vpas.list(ctx, n.Cache, inNamespace, byTarget)
		failed = errors.Join(failed, err, n.Cache.List(ctx, &hpas, inNamespace, byTarget))
		o.VPAs = append(o.VPAs, vpas...)
		for i := range hpas.Items {
			o.HPAs = append(o.HPAs, constraints.ReadHPA(&hpas.Items[i]))
		}
	}
	if failed != nil {
		return constraints.Facts{}, fmt.Errorf("reading the constraints of %s: %w", w, failed)
	}
	return constraints.FactsOf(w, containers, pod, o), nil
}

// above returns the controller of a workload, such as a custom resource with its own scale; zero: unknown. A change of
// that controller's autoscaler does not queue the workload: the workload's next sample causes a step.
func (n *Watcher) above(ctx context.Context, w memory.WorkloadRef) memory.WorkloadRef {
	m, cached := owners.Metadata(w)
	key := client.ObjectKey{Namespace: w.Namespace, Name: w.Name}
	if !cached || n.Cache.Get(ctx, key, m, client.UnsafeDisableDeepCopy) != nil { // deleted, or not seen yet
		return memory.WorkloadRef{}
	}
	ref := metav1.GetControllerOfNoCopy(m)
	if ref == nil {
		return memory.WorkloadRef{}
	}
	return memory.WorkloadRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: w.Namespace, Name: ref.Name}
}

// Follow watches constraints until ctx ends, and queues the workloads that a change affects; known returns the
// workloads with pods. Follow returns when the caches have synced.
func (n *Watcher) Follow(
	ctx context.Context, queue interface{ Enqueue(...memory.WorkloadRef) }, known func() []memory.WorkloadRef,
) error {
	f := enqueuer{queue, known}
	byTarget := func(obj client.Object) []string {
		of := obj.(*autoscalingv2.HorizontalPodAutoscaler).Spec.ScaleTargetRef
		return []string{targetKey(of.Kind, of.Name)}
	}
	if err := n.Cache.IndexField(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, targetIndex, byTarget); err != nil {
		return fmt.Errorf("indexing HorizontalPodAutoscalers by target: %w", err)
	}
	for _, watched := range []struct {
		kind    client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&autoscalingv2.HorizontalPodAutoscaler{}, onChange(f, sameHPA, targetOfHPA)},
		{&corev1.LimitRange{}, onChange(f, sameLimitRange, inNamespaceOf[*corev1.LimitRange](f))},
		{&corev1.ResourceQuota{}, onChange(f, sameQuota, inNamespaceOf[*corev1.ResourceQuota](f))},
	} {
		registration, err := informers.Watch(ctx, n.Cache, watched.kind, watched.handler)
		if err != nil {
			return err
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return ctx.Err()
		}
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), n.Bounds.HasSynced) {
		return ctx.Err()
	}
	// Before VerticalPodAutoscalers are known, memfit might work against them.
	_ = wait.PollUntilContextTimeout(ctx, time.Second, vpaTimeout, true, func(context.Context) (bool, error) {
		return n.vpas.check(ctx, n, f), nil
	})
	go n.vpas.keepChecking(ctx, n, f)
	return nil
}

// enqueuer has the arguments of [Watcher.Follow].
type enqueuer struct {
	queue interface{ Enqueue(...memory.WorkloadRef) }
	known func() []memory.WorkloadRef
}

// onChange queues the workloads that an object affects when it is created or deleted, or a relevant field changes.
func onChange[T client.Object](
	f enqueuer, same func(before, after T) bool, targetsOf func(T) []memory.WorkloadRef,
) toolscache.ResourceEventHandler {
	enqueue := func(obj T) { f.queue.Enqueue(targetsOf(obj)...) }
	return informers.Handler[T]{Seen: enqueue, Gone: enqueue, Changed: func(before, after T) {
		if !same(before, after) {
			enqueue(before)
			enqueue(after)
		}
	}}
}

func sameHPA(a, b *autoscalingv2.HorizontalPodAutoscaler) bool {
	return reflect.DeepEqual(constraints.ReadHPA(a), constraints.ReadHPA(b))
}

func sameLimitRange(a, b *corev1.LimitRange) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// sameQuota ignores the used quota, which changes with every pod: the next sample of a workload that waits for quota
// causes a step anyway.
func sameQuota(a, b *corev1.ResourceQuota) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Status.Hard, b.Status.Hard)
}

func targetOfHPA(h *autoscalingv2.HorizontalPodAutoscaler) []memory.WorkloadRef {
	return targets(constraints.ReadHPA(h).Target)
}

// targets returns the workloads that an autoscaler may target: without an API version, one for each built-in version.
// Queueing a workload that does not exist is harmless.
func targets(t memory.WorkloadRef) []memory.WorkloadRef {
	versions := []string{t.APIVersion}
	if t.APIVersion == "" {
		versions = []string{"apps/v1", "batch/v1", "v1"}
	}
	var refs []memory.WorkloadRef
	for _, v := range versions {
		t.APIVersion = v
		refs = append(refs, t)
	}
	return refs
}

func inNamespaceOf[T client.Object](f enqueuer) func(T) []memory.WorkloadRef {
	return func(obj T) []memory.WorkloadRef {
		var all []memory.WorkloadRef
		for _, w := range f.known() {
			if w.Namespace == obj.GetNamespace() {
				all = append(all, w)
			}
		}
		return all
	}
}
