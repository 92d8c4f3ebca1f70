// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/owners"
)

var namespaceKind = metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}

// Watcher keeps a [Resolver] current. It is a manager Runnable for every replica, because all serve the webhook.
type Watcher struct {
	Resolver *Resolver
	Cache    cache.Cache
	// OnChange is called after each change of the effective profiles. It must not block. nil: no call.
	OnChange func([]Change)

	ready atomic.Bool
}

// NeedLeaderElection returns false: every replica needs the profiles.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Start reads the profiles and watches their changes until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	dirty := make(chan struct{}, 1)
	for _, obj := range []client.Object{&v1alpha1.MemoryProfile{}, &v1alpha1.ClusterMemoryProfile{}} {
		informer, err := w.Cache.GetInformer(ctx, obj)
		if err != nil {
			return fmt.Errorf("watching profiles: %w", err)
		}
		registration, err := informer.AddEventHandler(onSpecChange(func() {
			select {
			case dirty <- struct{}{}:
			default: // a rebuild is due anyway
			}
		}))
		if err != nil {
			return fmt.Errorf("watching profiles: %w", err)
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return ctx.Err()
		}
	}
	w.rebuild(ctx)
	for {
		var profiles int
		select {
		case <-ctx.Done():
			return nil
		case <-dirty:
			profiles = w.rebuild(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(profiles) * restPerProfile):
		}
	}
}

// restPerProfile is the pause after a rebuild, for each profile. Reading one takes about 5 us, so a client that edits
// profiles in a loop uses at most a fifth of a processor. With a fixed 200 ms, two of three pods created right after
// their profile by `kubectl apply` lacked its settings.
const restPerProfile = 20 * time.Microsecond

// Ready is a readiness check. It fails until profiles are read: pods would be admitted without their settings.
func (w *Watcher) Ready(req *http.Request) error {
	if w.ready.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), time.Second)
	defer cancel()
	if !w.Cache.WaitForCacheSync(ctx) {
		return errors.New("informer caches are not synced")
	}
	select {
	case <-w.Resolver.Built():
		w.ready.Store(true)
		return nil
	default:
		return errors.New("profiles are not read yet")
	}
}

// rebuild rebuilds the Resolver, and returns the number of profiles.
func (w *Watcher) rebuild(ctx context.Context) int {
	changes, profiles, err := w.Resolver.rebuild(ctx)
	if err != nil {
		// The old snapshot remains effective; the next profile event retries.
		logf.FromContext(ctx).Error(err, "Could not read profiles")
		return profiles
	}
	if w.OnChange != nil && len(changes) > 0 {
		w.OnChange(changes)
	}
	return profiles
}

// Informers returns the kinds that a Resolver reads besides profiles, metadata only. If their informers start early,
// readiness waits for them, so that no pod is resolved from an empty cache.
func Informers() []client.Object {
	return append(owners.Objects(), &metav1.PartialObjectMetadata{TypeMeta: namespaceKind})
}

// onSpecChange calls f when a profile is created, deleted, or its spec changes. It ignores the frequent status writes.
func onSpecChange(f func()) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { f() },
		DeleteFunc: func(any) { f() },
		UpdateFunc: func(before, after any) {
			a, okA := before.(client.Object)
			b, okB := after.(client.Object)
			if !okA || !okB || a.GetGeneration() != b.GetGeneration() || a.GetUID() != b.GetUID() {
				f()
			}
		},
	}
}
