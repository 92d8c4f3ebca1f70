// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile is the reconciler of profiles: it writes a summary of the recommendations of the workloads that a
// profile governs into the profile's status.
package profile

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/conditions"
	"github.com/memfit/memfit/internal/liveness"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/profilestatus"
)

// Profiles, which memfit never writes.
// +kubebuilder:rbac:groups=memfit.dev,resources=memoryprofiles;clustermemoryprofiles,verbs=list;watch
// Their status, for kubectl describe and GitOps health checks.
// +kubebuilder:rbac:groups=memfit.dev,resources=memoryprofiles/status;clustermemoryprofiles/status,verbs=update

// ProfileIndex is the cache index of MemoryRecommendations by their profile.
const ProfileIndex = "status.profile"

// Reconciler summarizes a profile's workloads in the profile's status.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	client.Client
	// Usage returns the nodes that report no usage. nil: memfit reads no usage.
	Usage interface{ Gaps() []memory.Silence }
	// Profiles returns the effective profiles, merged with their defaults.
	Profiles interface{ Profiles() *profile.Index }
	// Problems lists workloads without a profile because two profiles select them.
	Problems *policy.Problems
	// Watchdog tracks the workers; nil: no tracking.
	Watchdog *liveness.Watchdog
	// NoWebhook is true if memfit runs without its webhook, and changes no new pod.
	NoWebhook bool
	Clock     clock.PassiveClock

	queue atomic.Pointer[queue] // set when the controller starts
}

type queue = workqueue.TypedRateLimitingInterface[profile.Key]

const (
	// resync is the maximum age of a status: a node that stops reporting sends no event.
	resync = 10 * time.Minute
	// timeout bounds one reconcile, which takes milliseconds; ten seconds allow for a slow API server.
	timeout = 10 * time.Second
	// summaryDelay delays a reconcile, so that one write covers the changes of many workloads.
	summaryDelay = time.Second
)

// Setup adds the reconciler to the manager.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	if err := IndexRecommendations(context.Background(), mgr.GetFieldIndexer()); err != nil { //nolint:forbidigo // registration, before the start
		return err
	}
	return builder.TypedControllerManagedBy[profile.Key](mgr).
		Named("profile").
		Watches(
			&v1alpha1.MemoryProfile{}, handler.TypedEnqueueRequestsFromMapFunc(keyOf(profile.KindNamespaced)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}),
		).
		Watches(
			&v1alpha1.ClusterMemoryProfile{}, handler.TypedEnqueueRequestsFromMapFunc(keyOf(profile.KindCluster)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}),
		).
		Watches(&v1alpha1.MemoryRecommendation{}, debounced()).
		WatchesRawSource(source.TypedFunc[profile.Key](func(_ context.Context, q queue) error {
			r.queue.Store(&q)
			return nil
		})).
		WithOptions(controller.TypedOptions[profile.Key]{MaxConcurrentReconciles: 2}).
		WithLogConstructor(func(k *profile.Key) logr.Logger {
			log := mgr.GetLogger().WithName("profile")
			if k != nil {
				log = log.WithValues("profile", k.String())
			}
			return log
		}).
		Complete(r)
}

// IndexRecommendations lets recommendations be listed by profile.
func IndexRecommendations(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.MemoryRecommendation{}, ProfileIndex, func(obj client.Object) []string {
		p := obj.(*v1alpha1.MemoryRecommendation).Status.Profile
		return []string{p.Kind + "/" + p.Name}
	})
	if err != nil {
		return fmt.Errorf("indexing MemoryRecommendations by profile: %w", err)
	}
	return nil
}

// debounced queues the profiles of recommendations after summaryDelay.
func debounced() handler.TypedEventHandler[client.Object, profile.Key] {
	add := func(obj client.Object, q queue) {
		q.AddAfter(profileOf(obj.(*v1alpha1.MemoryRecommendation)), summaryDelay)
	}
	return handler.TypedFuncs[client.Object, profile.Key]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			add(e.ObjectOld, q) // its previous profile
			add(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
	}
}

// Enqueue queues profiles after a change that no watched object shows. It does nothing before the start, because the
// controller then reconciles every profile.
func (r *Reconciler) Enqueue(keys ...profile.Key) {
	if q := r.queue.Load(); q != nil {
		for _, k := range keys {
			(*q).AddAfter(k, 100*time.Millisecond)
		}
	}
}

// EnqueueAll queues every profile.
func (r *Reconciler) EnqueueAll(context.Context) {
	for n := range r.Profiles.Profiles().All() {
		r.Enqueue(n.Key())
	}
}

// ProfilesChanged queues the changed profiles, including profiles that inherit a change. It also queues all profiles
// with role Defaults, because their status counts the profiles that inherit from them. It does not block.
func (r *Reconciler) ProfilesChanged(changes []policy.Change) {
	for _, c := range changes {
		r.Enqueue(c.Key)
	}
	for n := range r.Profiles.Profiles().All() {
		if n.HoldsDefaults() {
			r.Enqueue(n.Key())
		}
	}
}

func keyOf(kind string) handler.TypedMapFunc[client.Object, profile.Key] {
	return func(_ context.Context, obj client.Object) []profile.Key {
		return []profile.Key{{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	}
}

func profileOf(rec *v1alpha1.MemoryRecommendation) profile.Key {
	key := profile.Key{Kind: rec.Status.Profile.Kind, Name: rec.Status.Profile.Name}
	if key.Kind == profile.KindNamespaced {
		key.Namespace = rec.Namespace
	}
	return key
}

// Reconcile writes the status of one profile if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, key profile.Key) (reconcile.Result, error) {
	defer r.Watchdog.Begin(key)()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	obj, status, err := r.read(ctx, key)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	in, err := r.gather(ctx, key, obj)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case in == nil: // the effective profiles are older than obj
		return reconcile.Result{RequeueAfter: summaryDelay}, nil
	}
	before := status.DeepCopy()
	*status = profilestatus.Summarize(*in)
	status.ObservedGeneration = obj.GetGeneration()
	status.Conditions = conditions.Settle(status.Conditions, before.Conditions, obj.GetGeneration(), r.Clock.Now())
	if equality.Semantic.DeepEqual(before, status) {
		return reconcile.Result{RequeueAfter: resync}, nil
	}
	if err := r.Status().Update(ctx, obj); err != nil {
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: summaryDelay}, nil // the cache lags behind the last write
		}
		return reconcile.Result{}, fmt.Errorf("writing the status of %s: %w", key, err)
	}
	return reconcile.Result{RequeueAfter: resync}, nil
}

// gather reads the input of a profile's status; nil while the effective profiles are older than obj.
func (r *Reconciler) gather(ctx context.Context, key profile.Key, obj client.Object) (*profilestatus.Input, error) {
	index := r.Profiles.Profiles()
	n := index.Get(key)
	if n == nil || n.UID != obj.GetUID() || n.Generation < obj.GetGeneration() {
		return nil, nil //nolint:nilnil // documented above
	}
	var recs v1alpha1.MemoryRecommendationList
	own := client.MatchingFields{ProfileIndex: key.Kind + "/" + key.Name}
	if err := r.List(ctx, &recs, client.InNamespace(key.Namespace), own); err != nil {
		return nil, fmt.Errorf("listing the recommendations of %s: %w", key, err)
	}
	in := &profilestatus.Input{
		Profile: n, Recommendations: recs.Items, Invalid: append(n.Invalid(), n.Clashes()...), NoWebhook: r.NoWebhook,
	}
	if n.HoldsDefaults() {
		in.EffectiveDefaults, in.Heirs = index.Defaults(n.Namespace), index.Heirs(n)
	}
	if r.Usage != nil {
		in.Gaps = r.Usage.Gaps()
	} else {
		in.UsageOff = true
	}
	if r.Problems != nil {
		in.Ambiguous = r.Problems.Claiming(key)
	}
	return in, nil
}

// read returns the profile, and a pointer to its status.
func (r *Reconciler) read(ctx context.Context, key profile.Key) (client.Object, *v1alpha1.MemoryProfileStatus, error) {
	name := client.ObjectKey{Namespace: key.Namespace, Name: key.Name}
	if key.Kind == profile.KindCluster {
		p := &v1alpha1.ClusterMemoryProfile{}
		return p, &p.Status, r.Get(ctx, name, p)
	}
	p := &v1alpha1.MemoryProfile{}
	return p, &p.Status, r.Get(ctx, name, p)
}
