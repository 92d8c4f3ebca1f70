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

// Watcher keeps a [Resolver] current. It is a manager Runnable that runs on every replica, leader or not: all of them
// serve the webhook.
type Watcher struct {
	Resolver *Resolver
	Cache    cache.Cache
	// OnChange is called after each change of the effective profiles. It must not block. Nil: nobody is told.
	OnChange func([]Change)

	ready atomic.Bool
}

// NeedLeaderElection is false: every replica needs to know the profiles.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Start reads the profiles and follows their changes until ctx ends.
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

// restPerProfile is how long profiles rest after they were read, for each of them: reading takes some 5 us each, so
// that a client that edits one in a loop gets at most a fifth of a processor for it. It is not a fixed time because
// `kubectl apply` sends profiles and the workloads that name them within milliseconds, and a pod that is made while
// profiles rest goes without its settings: with 200 ms two of three did.
const restPerProfile = 20 * time.Microsecond

// Ready is a readiness check: until profiles, owners and namespaces are known, pods would be admitted without what they
// should get. Once they are, they stay: a leader that starts to watch pods still answers for them.
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

// rebuild returns the number of profiles it read.
func (w *Watcher) rebuild(ctx context.Context) int {
	changes, profiles, err := w.Resolver.rebuild(ctx)
	if err != nil {
		// The old snapshot stays effective; the next profile event tries again.
		logf.FromContext(ctx).Error(err, "Could not read profiles")
		return profiles
	}
	if w.OnChange != nil && len(changes) > 0 {
		w.OnChange(changes)
	}
	return profiles
}

// Informers are the objects a Resolver reads besides profiles, metadata only. Asking the cache for them before it
// starts makes readiness wait for them, so that the first pod is not judged by an empty cache.
func Informers() []client.Object {
	return append(owners.Objects(), &metav1.PartialObjectMetadata{TypeMeta: namespaceKind})
}

// onSpecChange calls f when a profile appears, goes, or changes its spec. Status writes, of which there are many,
// change nothing here.
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
