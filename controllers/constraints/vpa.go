// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
)

// A VerticalPodAutoscaler that controls memory writes the same fields as memfit; memfit then only recommends, and names
// the VerticalPodAutoscaler. The kind need not exist.
// +kubebuilder:rbac:groups=autoscaling.k8s.io,resources=verticalpodautoscalers,verbs=list;watch

const (
	// VPAInterval is how often memfit checks whether the kind exists, with one small request.
	VPAInterval = 2 * time.Minute
	// vpaTimeout is how long the start waits for the first response, and then for the first list. After that, memfit
	// decides as if there were no VerticalPodAutoscaler, and decides again when the list shows one.
	vpaTimeout = 10 * time.Second
)

// discoverer is the required part of a discovery client.
type discoverer interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// ServesVPAs asks the API server itself whether it serves VerticalPodAutoscalers: a REST mapper would still know them
// after their definition was deleted.
func ServesVPAs(d discoverer) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		list, err := d.ServerResourcesForGroupVersionWithContext(ctx, informers.VPAKind.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading the resources of %s: %w", informers.VPAKind.GroupVersion(), err)
		}
		isIt := func(r metav1.APIResource) bool { return r.Kind == informers.VPAKind.Kind }
		return slices.ContainsFunc(list.APIResources, isIt), nil
	}
}

// vpas watches VerticalPodAutoscalers while the API server serves them.
type vpas struct {
	// watched is nil while the API server does not serve them.
	watched atomic.Pointer[toolscache.ResourceEventHandlerRegistration]
}

// list returns none while the kind is not served, or its first list is not complete: a read would wait for the list.
func (v *vpas) list(ctx context.Context, c cache.Cache, options ...client.ListOption) ([]constraints.VPA, error) {
	if watched := v.watched.Load(); watched == nil || !(*watched).HasSynced() {
		return nil, nil
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(informers.VPAKind.GroupVersion().WithKind(informers.VPAKind.Kind + "List"))
	if err := c.List(ctx, &list, options...); err != nil {
		if v.watched.Load() == nil {
			return nil, nil // the kind was deleted meanwhile
		}
		return nil, err
	}
	var all []constraints.VPA
	for i := range list.Items {
		if vpa, ok := constraints.ReadVPA(list.Items[i].Object); ok {
			all = append(all, vpa)
		}
	}
	return all, nil
}

// WatchesVPAs reports whether VerticalPodAutoscalers are served and watched.
func (n *Watcher) WatchesVPAs() bool { return n.vpas.watched.Load() != nil }

func (v *vpas) keepChecking(ctx context.Context, n *Watcher, f enqueuer) {
	ticker := n.Clock.NewTicker(VPAInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			v.check(ctx, n, f)
		}
	}
}

// check starts the watch if the kind has appeared, and stops it if the kind has disappeared. After an error it returns
// false.
func (v *vpas) check(ctx context.Context, n *Watcher, f enqueuer) (known bool) {
	served, err := n.ServesVPAs(ctx)
	switch watched := n.WatchesVPAs(); {
	case err != nil:
	case served && !watched:
		err = v.startWatch(ctx, n.Cache, f)
	case !served && watched:
		err = v.stopWatch(ctx, n.Cache, f)
	}
	if err != nil && ctx.Err() == nil {
		logf.FromContext(ctx).Error(err, "Could not check for VerticalPodAutoscalers; retrying")
	}
	return err == nil
}

func (v *vpas) startWatch(ctx context.Context, c cache.Cache, f enqueuer) error {
	byTarget := func(obj client.Object) []string {
		vpa, _ := constraints.ReadVPA(obj.(*unstructured.Unstructured).Object)
		return []string{targetKey(vpa.Target.Kind, vpa.Target.Name)}
	}
	if err := c.IndexField(ctx, informers.NewVPA(), targetIndex, byTarget); err != nil {
		return fmt.Errorf("indexing VerticalPodAutoscalers by target: %w", err)
	}
	handler := onChange(f, sameVPA, targetOfVPA)
	watched, err := informers.Watch(ctx, c, informers.NewVPA(), handler, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	v.watched.Store(&watched)
	limited, cancel := context.WithTimeout(ctx, vpaTimeout)
	defer cancel()
	toolscache.WaitForCacheSync(limited.Done(), watched.HasSynced)
	return nil
}

// stopWatch stops the watch, and queues the workloads that had a VerticalPodAutoscaler.
func (v *vpas) stopWatch(ctx context.Context, c cache.Cache, f enqueuer) error {
	all, err := v.list(ctx, c)
	if err != nil {
		return err
	}
	v.watched.Store(nil)
	if err := c.RemoveInformer(ctx, informers.NewVPA()); err != nil {
		return fmt.Errorf("stopping the watch of VerticalPodAutoscalers: %w", err)
	}
	for i := range all {
		f.queue.Enqueue(targets(all[i].Target)...)
	}
	return nil
}

func sameVPA(a, b *unstructured.Unstructured) bool {
	before, okA := constraints.ReadVPA(a.Object)
	after, okB := constraints.ReadVPA(b.Object)
	return okA == okB && reflect.DeepEqual(before, after)
}

func targetOfVPA(u *unstructured.Unstructured) []memory.WorkloadRef {
	v, ok := constraints.ReadVPA(u.Object)
	if !ok {
		return nil
	}
	return targets(v.Target)
}
