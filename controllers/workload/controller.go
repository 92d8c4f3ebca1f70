// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/liveness"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
)

// What memfit reads to know which pods exist, who owns them and what their containers did.
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// Namespaces carry opt-in, opt-out and pause annotations.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// The owner chain of a pod, metadata only; and, before a pod is kept from serving, how many there are to be.
// +kubebuilder:rbac:groups=apps,resources=replicasets;deployments;statefulsets;daemonsets,verbs=get;list;watch
// The owner chain of a batch pod, metadata only.
// +kubebuilder:rbac:groups=batch,resources=jobs;cronjobs,verbs=get;list;watch
// The owner of pods from before Deployments: the same.
// +kubebuilder:rbac:groups="",resources=replicationcontrollers,verbs=get;list;watch
// What memfit found is written into objects of its own, and only there.
// +kubebuilder:rbac:groups=memfit.dev,resources=memoryrecommendations,verbs=get;list;watch;create;delete
// Its memory across restarts: read once per start, never watched.
// +kubebuilder:rbac:groups=memfit.dev,resources=memorycheckpoints,verbs=get;list;create;delete
// What memfit found, and its memory across restarts.
// +kubebuilder:rbac:groups=memfit.dev,resources=memoryrecommendations/status;memorycheckpoints/status,verbs=update
// Events say what happened on the pod and on its workload, where people look first.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// The lease of leader election and the reviews of who reads metrics are in config/rbac, where the lease can be named.

// Reconciler reconciles workloads: what happened to its pods, what its memory does, and what should change.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	client.Client
	// APIReader reads from the API server, for records that are read once per start.
	APIReader client.Reader
	// PodSource queues workloads whose pods turned out to belong elsewhere. Nil in tests that reconcile by hand.
	PodSource *PodSource
	// Inbox has what happened since the last step.
	Inbox *inbox.Inbox
	// Resolver knows profiles and owners.
	Resolver *policy.Resolver

	// Sources tell what else a step decides from.
	Sources Sources
	// Executor does what a step decided to do to running pods.
	Executor Executor
	// Settings say how often and for how long.
	Settings Settings

	// Accounts know what all workloads take of the cluster.
	Accounts Accounts
	// Priors are what was learned of young containers; nil: nothing is learned.
	Priors *Priors
	// Problems are the workloads whose profile is unavailable.
	Problems *policy.Problems
	// Recorder writes Events.
	Recorder EventRecorder
	// Metrics for the workload.
	Metrics *Metrics
	// Watchdog is told what workers are on. Nil: nobody is.
	Watchdog *liveness.Watchdog
	// Clock tells the time.
	Clock clock.PassiveClock

	states     states
	overdue    backoffs
	identities identities
}

// Settings of a Reconciler, which the manager's flags say.
type Settings struct {
	// CheckpointEvery is how old the stored history may be. [DefaultCheckpointEvery] is one write per workload and ten
	// minutes.
	CheckpointEvery time.Duration
	// StepInterval is the least time between two steps of a workload of which there is nothing but samples. 0: each sample
	// is a reason for one.
	StepInterval time.Duration
	// Timeout is how long one reconcile may take; 0: ten seconds.
	Timeout time.Duration
	// Replica is the name of this process's pod; its webhook may be allowed to create a canary. Empty: none is created.
	Replica string
	// MaxIdentities is how many identities one profile may have; 0: [identity.MostOfProfile].
	MaxIdentities int
	// Unmeasured: nobody takes samples, so a kill without one says nothing about when it was.
	Unmeasured bool
	// NoWebhook: memfit runs without its webhook, so it sets nothing on new pods.
	NoWebhook bool
}

// Defaults of the workload reconciler.
const (
	DefaultCheckpointEvery = 10 * time.Minute
	// workers is the number of workloads reconciled in parallel. A step takes well under a millisecond of CPU; the rest is
	// waiting for writes.
	workers = 8
)

// Setup starts the reconciler with the manager.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
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

// Reconcile deals with one workload within a budget of time, so that no workload holds another back for more than
// seconds. A workload whose reconcile takes longer is retried after a backoff, and its status says so.
func (r *Reconciler) Reconcile(ctx context.Context, ref memory.WorkloadRef) (reconcile.Result, error) {
	if wait := r.overdue.wait(ref, r.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	defer r.Watchdog.Begin(ref)()
	began := r.Clock.Now()
	within, cancel := context.WithTimeout(ctx, cmp.Or(r.Settings.Timeout, reconcileTimeout))
	defer cancel()
	result, err := r.reconcile(within, ref)
	switch {
	case err != nil && errors.Is(within.Err(), context.DeadlineExceeded):
	case refused(err):
		return r.notSaved(ctx, ref, err)
	case errors.Is(err, errUnreadable):
		return r.notRead(ctx, ref, err)
	default:
		r.overdue.done(ref)
		return result, err
	}
	wait, first := r.overdue.again(ref, r.Clock.Now(), longestRest)
	logf.FromContext(ctx).Error(err, "The reconcile took too long and was given up", "again", wait)
	r.Metrics.gaveUp()
	r.stalled(ctx, ref, v1alpha1.ReasonReconcileTimedOut,
		fmt.Sprintf("A reconcile of this workload, begun at %s, did not end within %s and was given up; "+
			"the next is at %s: %s", format.Time(began), format.InWords(cmp.Or(r.Settings.Timeout, reconcileTimeout)),
			format.Time(r.Clock.Now().Add(wait)), quote.Line(err.Error())), first)
	return reconcile.Result{RequeueAfter: wait}, nil
}

// reconcile reads what happened to one workload, decides, and writes: checkpoint, recommendation, events, changes of
// pods.
func (r *Reconciler) reconcile(ctx context.Context, ref memory.WorkloadRef) (reconcile.Result, error) {
	now := r.Clock.Now()
	events, pods := r.Inbox.Pending(ref)
	if wait := r.postpone(ref, &events, len(pods), now); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if !r.Priors.Ready() {
		return reconcile.Result{RequeueAfter: notYet}, nil
	}
	if len(pods) == 0 && events.Profile == nil && r.unknown(ctx, ref) {
		r.Inbox.Done(ref)
		r.Problems.Clear(ref)
		return reconcile.Result{}, nil
	}
	s, err := r.gather(ctx, ref, events, pods)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("gathering %s: %w", ref, err)
	}
	switch {
	case s.Presence.State == records.Gone || s.Presence.State == records.Leaving:
		return reconcile.Result{}, r.leave(ctx, s)
	case s.Profile == nil:
		return reconcile.Result{}, r.release(ctx, s)
	}
	if full, err := r.beyond(ctx, s); err != nil || full {
		r.Inbox.Done(ref)
		return reconcile.Result{RequeueAfter: countAgain}, err
	}
	e, err := r.load(ctx, s)
	switch {
	case errors.Is(err, errNotYet):
		return reconcile.Result{RequeueAfter: notYet}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("loading the checkpoint of %s: %w", ref, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.carryOn(ctx, s, e, now)
}

// carryOn takes one step of a workload that exists and is governed. The checkpoint is written first: if that fails,
// nothing happened. The recommendation, events and changes of pods follow, and what fails of those is repeated by the
// next step.
func (r *Reconciler) carryOn(
	ctx context.Context, s *workload.Snapshot, e *entry, now time.Time,
) (reconcile.Result, error) {
	r.take(s, e)
	next, f := r.step(e, s, now)
	err := r.save(ctx, s.Owner, e, next, now)
	switch {
	case err != nil && r.vanished(ctx, s, err):
		return reconcile.Result{}, r.leave(ctx, s)
	case err != nil:
		return reconcile.Result{}, err
	}
	r.done(s.Owner.Ref, e, &f)
	err = r.publish(ctx, s, e, &f, now)
	if err != nil && r.vanished(ctx, s, err) {
		return reconcile.Result{}, r.leave(ctx, s)
	}
	for i := range f.Events {
		r.Recorder.Record(s.Owner, f.Events[i])
	}
	switch { // no pod is changed before people can read why: the next step decides on it again
	case errors.Is(err, errNotYet):
		return reconcile.Result{RequeueAfter: notYet}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	if err := r.act(ctx, s, e.state, f.Actions, now); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.schedule(e, f.Timing, now)}, nil
}

// take prepares a step: it tells the inbox which pods are the workload's and where they run, warns about a profile
// that is unavailable, and asks for the workload's past.
func (r *Reconciler) take(s *workload.Snapshot, e *entry) {
	e.restUntil, e.owner = time.Time{}, cmp.Or(e.owner, s.Owner.UID)
	r.Inbox.Govern(s.Owner.Ref, placed(s), s.Profile.Key())
	r.warn(s)
	s.Events.Past = r.past(s.Owner.Ref, e.state)
}

// step decides about one workload, within the change budget where there is one.
func (r *Reconciler) step(e *entry, s *workload.Snapshot, now time.Time) (next *workload.State, f workload.Effects) {
	if !s.Disturbs() {
		return workload.Step(e.state, s, now)
	}
	r.Accounts.reserve(s.Owner.Ref, func(a *rollout.Allowance) []rollout.Spent {
		s.Allowance = a
		next, f = workload.Step(e.state, s, now)
		return next.Rollout().Spent
	})
	return next, f
}

// done follows a saved checkpoint: the events that it holds leave the inbox, and the metrics count what the step found.
func (r *Reconciler) done(ref memory.WorkloadRef, e *entry, f *workload.Effects) {
	r.Inbox.Done(ref)
	if r.Sources.Past != nil && e.state.KnowsPast() {
		r.Sources.Past.Forget(ref)
	}
	loans := e.state.Rollout().Loans
	r.Accounts.lent(ref, loans)
	r.Priors.learn(f.Learned)
	r.Metrics.killed(ref, f.Kills)
	r.Metrics.stalled(ref, f.NewStalls)
	r.Metrics.show(ref, f, loans)
	for _, found := range f.Findings {
		r.Metrics.applied(ref, string(found.Kind))
	}
}

// unknown reports whether memfit has neither a state of the workload nor a MemoryRecommendation that could be out of
// date.
func (r *Reconciler) unknown(ctx context.Context, ref memory.WorkloadRef) bool {
	if _, known := r.states.get(ref); known {
		return false
	}
	rec, err := r.stored(ctx, ref)
	return err == nil && rec == nil
}
