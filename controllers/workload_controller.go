// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	Past *HistoryBackfill

	// Problems are the workloads whose profile cannot be had; OnProblem is called with the profiles that claim one when that changes.
	// Both may be nil.
	Problems  *Problems
	OnProblem func(...ProfileKey)

	// Watchdog is told what workers are on. Nil: nobody is.
	Watchdog *Watchdog
	// LookBudget is how long one look may take; 0: ten seconds.
	LookBudget time.Duration

	memory  memories
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

// look collects the mail of one workload, decides, and writes: checkpoint, recommendation, events.
func (r *WorkloadReconciler) look(ctx context.Context, workload memory.WorkloadRef) (reconcile.Result, error) {
	now := r.Clock.Now()
	mail, keys := r.Inbox.Collect(workload)
	if wait := r.rateLimit(workload, &mail, len(keys), now); wait > 0 {
		r.Inbox.Return(workload, mail)
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if wait := r.absorbSamples(workload, &mail, now); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if len(keys) == 0 && mail.Profile == nil && r.unheardOf(ctx, workload) {
		return reconcile.Result{}, nil
	}
	scene, err := r.gather(ctx, workload, mail, keys)
	if err != nil {
		r.Inbox.Return(workload, mail)
		return reconcile.Result{}, fmt.Errorf("gathering %s: %w", workload, err)
	}
	if mail = scene.mail; scene.presence.State == records.Gone || scene.presence.State == records.Leaving {
		return reconcile.Result{}, r.leave(ctx, scene)
	}
	if scene.profile == nil {
		return reconcile.Result{}, r.release(ctx, scene)
	}
	m, err := r.recall(ctx, scene)
	if errors.Is(err, errNotYet) {
		r.Inbox.Return(workload, mail)
		return reconcile.Result{RequeueAfter: notYet}, nil
	}
	if err != nil {
		r.Inbox.Return(workload, mail)
		return reconcile.Result{}, fmt.Errorf("remembering %s: %w", workload, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restUntil, m.owner = time.Time{}, or(m.owner, scene.owner.UID)
	r.Inbox.Govern(workload, scene.placed(), keyOfProfile(scene.profile))
	r.warn(scene)

	if m.measuredSince.IsZero() && !r.Unmeasured {
		m.measuredSince = now
	}
	if m.lookedAt.IsZero() {
		// What the pods showed before anybody governed them was not kept, and they may not change for a long time.
		mail.Observations = append(mail.Observations, scene.observations()...)
	}
	complete(scene, m, mail.Observations)
	kills := append(m.look(mail.Observations, now), m.ledger.UpdateCounters(mail.Counters, m.peak, now)...)
	m.watchStalls(mail.Observations, mail.Samples)
	stalls := m.fileStalls(scene.live(), now)
	m.forgetGone(scene.live(), now)
	m.forgetNames(scene.governed)
	if err := r.save(ctx, scene.owner, m, now); err != nil {
		if r.vanished(ctx, scene, err) {
			return reconcile.Result{}, r.leave(ctx, scene)
		}
		r.Inbox.Return(workload, mail)
		return reconcile.Result{}, err
	}
	m.settle(mail.Observations, now)
	r.backfill(workload, m)
	m.measure(mail.Samples, now)
	m.lookedAt = now
	m.profile, m.template, m.source = scene.profile, or(scene.template, m.template), or(mail.Source, m.source)
	r.Metrics.killed(workload, kills)
	r.Metrics.stalled(workload, stalls.began, m.ledger.AllStalls())

	m.knowCaps(scene.governed)
	verdict := decide(scene, m, now)
	m.judged, m.liveSets = verdict.judged, standing(verdict.alive)
	r.Metrics.shaped(workload, verdict.shapes)
	err = r.publish(ctx, scene, m, verdict, now)
	if err != nil && r.vanished(ctx, scene, err) {
		return reconcile.Result{}, r.leave(ctx, scene)
	}
	r.recordEvents(scene, m, kills, stalls, verdict, err == nil)
	if errors.Is(err, errNotYet) {
		return reconcile.Result{RequeueAfter: notYet}, nil
	}
	if err == nil {
		err = r.apply(ctx, scene, m, &verdict, now)
	}
	if err == nil {
		m.restUntil = now.Add(min(r.LookEvery, verdict.nextLook, m.youngest()/4))
	}
	return reconcile.Result{RequeueAfter: verdict.nextLook}, err
}

// restPerPod is the time a workload rests after a look, for each of its pods. A look compares every pod with its profile, which takes
// some 20 us each: without a rest, rolling out 1000 replicas would be 3000 events of 1000 comparisons.
const restPerPod = 2 * time.Millisecond

// rateLimit is how long a large workload still rests. Kills do not wait.
func (r *WorkloadReconciler) rateLimit(workload memory.WorkloadRef, mail *PendingEvents, pods int, now time.Time) time.Duration {
	m, known := r.memory.get(workload)
	if !known || pods < 50 {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.news(mail) {
		return 0
	}
	return m.lookedAt.Add(time.Duration(pods) * restPerPod).Sub(now)
}

// absorbSamples takes in mail that is nothing but samples, and returns how long the workload may wait for a look at them; 0: not at all. What
// decisions rest on grows by a sample a minute at most, and a look takes a hundred times as long as taking in. An instance that is close
// to its limit and uses more and more does not wait, nor does a stall that begins or ends.
func (r *WorkloadReconciler) absorbSamples(workload memory.WorkloadRef, mail *PendingEvents, now time.Time) time.Duration {
	m, known := r.memory.get(workload)
	if !known || mail.Look || len(mail.Samples) == 0 || len(mail.Observations)+len(mail.Counters) > 0 || mail.Last != nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	wait := m.restUntil.Sub(now)
	if wait <= 0 || m.suspect {
		return 0
	}
	found := m.watchStalls(nil, mail.Samples)
	m.measure(mail.Samples, now)
	m.source = or(mail.Source, m.source)
	pressing := found || slices.ContainsFunc(mail.Samples, func(s memory.Sample) bool { return m.instances[s.Container].nearLimit() })
	mail.Samples = nil
	if pressing {
		return 0
	}
	return wait
}

// unheardOf: nothing is remembered of a workload, and nothing recorded that could be out of date.
func (r *WorkloadReconciler) unheardOf(ctx context.Context, workload memory.WorkloadRef) bool {
	if _, known := r.memory.get(workload); known {
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
	r.Inbox.Govern(s.owner.Ref, nil, ProfileKey{})
	m, known := r.memory.get(s.owner.Ref)
	if len(s.pods) == 0 { // scaled to nothing: the recommendation still stands
		if !known {
			return nil
		}
		r.memory.drop(s.owner.Ref)
		r.Metrics.forget(s.owner.Ref)
		if err := r.flush(ctx, s, m); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
		return nil
	}
	r.warn(s)
	if !known {
		return r.withdraw(ctx, s.owner.Ref)
	}
	r.memory.drop(s.owner.Ref)
	r.Metrics.forget(s.owner.Ref)
	return errors.Join(r.withdraw(ctx, s.owner.Ref), r.flush(ctx, s, m))
}

// flush writes the history before it is forgotten.
func (r *WorkloadReconciler) flush(ctx context.Context, s *snapshot, m *remembered) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.checkpoint.ResourceVersion == "" {
		return nil
	}
	m.savedAt = time.Time{}
	return r.save(ctx, s.owner, m, r.Clock.Now())
}

// Flush writes every history that is newer than its checkpoint. It runs when memfit stops, so that a rolling update loses nothing;
// a crash loses at most CheckpointEvery of samples and no kill.
func (r *WorkloadReconciler) Flush(ctx context.Context) {
	log := logf.FromContext(ctx)
	r.memory.each(func(workload memory.WorkloadRef, m *remembered) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.suspect || m.checkpoint.ResourceVersion == "" {
			return ctx.Err() == nil
		}
		status, err := m.pack()
		if err == nil {
			err = m.packHistories(&status)
		}
		if err == nil {
			c := m.checkpoint.DeepCopy()
			c.Status = status
			err = r.Status().Update(ctx, c)
		}
		if err != nil {
			log.Error(err, "Could not write the latest history", "workload", workload.String())
		}
		return ctx.Err() == nil
	})
}

// memories holds what is remembered, by workload. A workload is only ever in one worker's hands.
type memories struct{ sync.Map }

func (m *memories) get(w memory.WorkloadRef) (*remembered, bool) {
	v, found := m.Load(w)
	if !found {
		return nil, false
	}
	return v.(*remembered), true
}

func (m *memories) put(w memory.WorkloadRef, r *remembered) { m.Store(w, r) }

func (m *memories) drop(w memory.WorkloadRef) { m.Delete(w) }

func (m *memories) each(f func(memory.WorkloadRef, *remembered) bool) {
	m.Range(func(k, v any) bool { return f(k.(memory.WorkloadRef), v.(*remembered)) })
}

func or[T comparable](first, second T) T {
	var zero T
	if first != zero {
		return first
	}
	return second
}
