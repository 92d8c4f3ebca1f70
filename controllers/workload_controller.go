// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memfit/memfit/internal/govern"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/neighbours"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/records"
)

// What memfit reads to know which pods exist, who owns them and what their containers did.
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// Namespaces carry opt-in, opt-out and pause annotations.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// The owner chain of a pod, metadata only.
// +kubebuilder:rbac:groups=apps,resources=replicasets;deployments;statefulsets;daemonsets,verbs=get;list;watch
// The owner chain of a batch pod, metadata only.
// +kubebuilder:rbac:groups=batch,resources=jobs;cronjobs,verbs=get;list;watch
// The owner of pods from before Deployments, metadata only.
// +kubebuilder:rbac:groups="",resources=replicationcontrollers,verbs=get;list;watch
// What memfit found is written into objects of its own, and only there.
// +kubebuilder:rbac:groups=memfit.dev,resources=memoryrecommendations,verbs=get;list;watch;create;update;patch;delete
// Its memory across restarts: read once per start, never watched.
// +kubebuilder:rbac:groups=memfit.dev,resources=memorycheckpoints,verbs=get;list;create;patch;delete
// What memfit found, and its memory across restarts.
// +kubebuilder:rbac:groups=memfit.dev,resources=memoryrecommendations/status;memorycheckpoints/status,verbs=update
// Events tell the story on the pod and on its workload, where people look first.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// The lease of leader election and the reviews of who reads metrics are in config/rbac, where the lease can be named.

// WorkloadReconciler looks at one workload: what happened to its pods, what its memory does, and what should change.
type WorkloadReconciler struct {
	// Client reads from the cache and writes to the API server.
	client.Client
	// Live reads from the API server, for records that are read once per start.
	Live client.Reader
	// Governor knows profiles and owners.
	Governor *govern.Governor
	// Inbox has the mail.
	Inbox *Inbox
	// PodSource queues workloads whose pods turned out to belong elsewhere. Nil in tests that reconcile by hand.
	PodSource *PodSource
	// Recorder writes events.
	Recorder events.EventRecorder
	// Metrics for the workload.
	Metrics *Metrics
	// Clock tells the time.
	Clock clock.PassiveClock
	// CheckpointEvery is how old the stored history may be. Default 10m: one write per workload and ten minutes.
	CheckpointEvery time.Duration
	// LookEvery is the least time between two looks at a workload of which there is nothing but samples. 0: each is looked at.
	LookEvery time.Duration

	// Unmeasured: nobody takes samples, so a kill without one says nothing about when it was.
	Unmeasured bool

	// Evict evicts one pod, with its UID as a precondition (see [Evictor]). Nil: drift.action: Restart reports only.
	Evict func(context.Context, *corev1.Pod) error
	// Neighbours say what else in the cluster has a say in a workload's memory. Nil: nobody has, as in tests of other things.
	Neighbours interface {
		Facts(ctx context.Context, w memory.WorkloadRef, containers []string, pod *corev1.Pod) (neighbours.Facts, error)
	}
	// Resize gives the containers of one pod new sizes (see [Resizer]). Nil: running pods are never resized.
	Resize func(context.Context, *corev1.Pod, map[string]recommend.Size) error
	// Past reads what workloads used before memfit saw them. Nil: nobody knows.
	Past interface {
		Get(w memory.WorkloadRef) (containers map[string]*history.Container, there bool)
		Forget(w memory.WorkloadRef)
		Source() string
	}

	// Problems are the workloads whose profile cannot be had; OnProblem is called with the profiles that claim one when that changes.
	// Both may be nil.
	Problems  *Problems
	OnProblem func(...ProfileKey)

	// Watchdog is told what workers are on. Nil: nobody is.
	Watchdog *Watchdog
	// LookBudget is how long one look may take; 0: ten seconds.
	LookBudget time.Duration

	states  states
	overdue overdue
}

// Defaults of the workload reconciler.
const (
	DefaultCheckpointEvery = 10 * time.Minute
	// workers is the number of workloads looked at in parallel. A look takes well under a millisecond of CPU; the rest is waiting
	// for writes.
	workers = 8
)

// Setup starts the reconciler with the manager.
func (r *WorkloadReconciler) Setup(mgr ctrl.Manager) error {
	return builder.TypedControllerManagedBy[memory.WorkloadRef](mgr).
		Named("workload").
		WatchesRawSource(r.PodSource).
		WithOptions(controller.TypedOptions[memory.WorkloadRef]{MaxConcurrentReconciles: workers}).
		WithLogConstructor(func(w *memory.WorkloadRef) logr.Logger {
			log := mgr.GetLogger().WithName("workload")
			if w != nil {
				log = log.WithValues("workload", w.String())
			}
			return log
		}).
		Complete(r)
}

// reconcile reads what happened to one workload, decides, and writes: checkpoint, recommendation, events, changes of pods.
func (r *WorkloadReconciler) reconcile(ctx context.Context, workload memory.WorkloadRef) (reconcile.Result, error) {
	now := r.Clock.Now()
	events, pods := r.Inbox.Pending(workload)
	if wait := r.postpone(workload, &events, len(pods), now); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if len(pods) == 0 && events.Profile == nil && r.unheardOf(ctx, workload) {
		r.Inbox.Done(workload)
		return reconcile.Result{}, nil
	}
	s, err := r.gather(ctx, workload, events, pods)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("gathering %s: %w", workload, err)
	}
	if s.presence.State == records.Gone || s.presence.State == records.Leaving {
		return reconcile.Result{}, r.leave(ctx, s)
	}
	if s.profile == nil {
		return reconcile.Result{}, r.release(ctx, s)
	}
	e, err := r.load(ctx, s)
	if errors.Is(err, errNotYet) {
		return reconcile.Result{RequeueAfter: notYet}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("remembering %s: %w", workload, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restUntil, e.owner = time.Time{}, cmp.Or(e.owner, s.owner.UID)
	r.Inbox.Govern(workload, placed(s), keyOfProfile(s.profile))
	r.warn(s)
	s.events.Past = r.past(workload, e.state)

	next, f := step(e.state, s, now)
	if err := r.save(ctx, s.owner, e, next, now); err != nil {
		return reconcile.Result{}, r.unlessVanished(ctx, s, err)
	}
	r.done(workload, e, &f)
	err = r.publish(ctx, s, e, &f, now)
	if err != nil && r.vanished(ctx, s, err) {
		return reconcile.Result{}, r.leave(ctx, s)
	}
	r.recordEvents(f.events)
	if err != nil {
		e.state.notDone(f.actions)
		if errors.Is(err, errNotYet) {
			return reconcile.Result{RequeueAfter: notYet}, nil
		}
		return reconcile.Result{}, err
	}
	r.recordEvents(f.published)
	e.state.told = f.told
	if err := r.act(ctx, s, e.state, f.actions, now); err != nil {
		return reconcile.Result{}, err
	}
	e.restUntil = now.Add(min(r.LookEvery, f.rest))
	return reconcile.Result{RequeueAfter: f.requeueAfter}, nil
}

// done is what follows from a checkpoint that is safe: its events need not come again, and are counted.
func (r *WorkloadReconciler) done(workload memory.WorkloadRef, e *entry, f *effects) {
	r.Inbox.Done(workload)
	if r.Past != nil && e.state.pastKnown {
		r.Past.Forget(workload)
	}
	r.Metrics.killed(workload, f.kills)
	r.Metrics.stalled(workload, f.newStalls, f.stalls)
	r.Metrics.shaped(workload, f.shapes)
	for _, found := range f.findings {
		r.Metrics.applied(workload, string(found.Kind))
	}
}

// unlessVanished forgets the workload when an error only says that it has gone meanwhile.
func (r *WorkloadReconciler) unlessVanished(ctx context.Context, s *snapshot, err error) error {
	if r.vanished(ctx, s, err) {
		return r.leave(ctx, s)
	}
	return err
}

// unheardOf: nothing is remembered of a workload, and nothing recorded that could be out of date.
func (r *WorkloadReconciler) unheardOf(ctx context.Context, workload memory.WorkloadRef) bool {
	if _, known := r.states.get(workload); known {
		return false
	}
	recommended, err := r.exists(ctx, workload)
	return err == nil && !recommended
}

// namespaceGone: nothing can be created in a namespace that is being deleted, or is.
func namespaceGone(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) && details != nil && details.Kind == "namespaces"
}

// release stops watching a workload that nobody governs. Its checkpoint stays, so that opting out and in again forgets nothing.
func (r *WorkloadReconciler) release(ctx context.Context, s *snapshot) error {
	workload := s.owner.Ref
	r.Inbox.Done(workload)
	r.Inbox.Govern(workload, nil, ProfileKey{})
	e, known := r.states.get(workload)
	scaledToNothing := len(s.pods) == 0 // the recommendation still stands
	if !scaledToNothing {
		r.warn(s)
	}
	if known {
		r.states.drop(workload)
		r.Metrics.forget(workload)
	}
	var failed error
	if !scaledToNothing {
		failed = r.withdraw(ctx, workload)
	}
	if !known {
		return failed
	}
	err := r.flush(ctx, s, e)
	if scaledToNothing && (apierrors.IsNotFound(err) || apierrors.IsConflict(err)) {
		return nil
	}
	return errors.Join(failed, err)
}

// flush writes the history before it is forgotten.
func (r *WorkloadReconciler) flush(ctx context.Context, s *snapshot, e *entry) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.checkpoint.ResourceVersion == "" {
		return nil
	}
	e.savedAt = time.Time{}
	return r.save(ctx, s.owner, e, e.state, r.Clock.Now())
}

// Flush writes every history that is newer than its checkpoint. It runs when memfit stops, so that a rolling update loses nothing;
// a crash loses at most CheckpointEvery of samples and no kill.
func (r *WorkloadReconciler) Flush(ctx context.Context) {
	log := logf.FromContext(ctx)
	r.states.each(func(workload memory.WorkloadRef, e *entry) bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.suspect || e.checkpoint.ResourceVersion == "" {
			return ctx.Err() == nil
		}
		e.savedAt = time.Time{}
		if err := r.save(ctx, memory.Workload{Ref: workload, UID: e.owner}, e, e.state, r.Clock.Now()); err != nil {
			log.Error(err, "Could not write the latest history", "workload", workload.String())
		}
		return ctx.Err() == nil
	})
}

func or[T comparable](first, second T) T {
	var zero T
	if first != zero {
		return first
	}
	return second
}
