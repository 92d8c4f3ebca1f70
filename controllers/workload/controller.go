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

// Pods, their owners and the states of their containers.
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// Namespaces carry opt-in, opt-out and pause annotations.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// The owner chain of a pod, metadata only; and the desired number of replicas before a pod is disrupted.
// +kubebuilder:rbac:groups=apps,resources=replicasets;deployments;statefulsets;daemonsets,verbs=get;list;watch
// The owner chain of a batch pod, metadata only.
// +kubebuilder:rbac:groups=batch,resources=jobs;cronjobs,verbs=get;list;watch
// The same for ReplicationControllers.
// +kubebuilder:rbac:groups="",resources=replicationcontrollers,verbs=get;list;watch
// memfit writes its findings only into its own objects.
// +kubebuilder:rbac:groups=memfit.dev,resources=memoryrecommendations,verbs=get;list;watch;create;delete
// Checkpoints: read once per start, never watched.
// +kubebuilder:rbac:groups=memfit.dev,resources=memorycheckpoints,verbs=get;list;create;delete
// The status of recommendations and checkpoints.
// +kubebuilder:rbac:groups=memfit.dev,resources=memoryrecommendations/status;memorycheckpoints/status,verbs=update
// Events on the pod and its workload.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// The rights for leader election and for reviews of metrics clients are in config/rbac, where the lease can be named.

// Reconciler reconciles workloads: it reads events of their pods and their memory, and decides about changes.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	client.Client
	// APIReader reads from the API server, for records that are read once per start.
	APIReader client.Reader
	// PodSource queues further workloads, such as one to which a pod moved. nil in tests that call Reconcile.
	PodSource *PodSource
	Inbox     *inbox.Inbox // has the events since the last step
	Resolver  *policy.Resolver
	Sources   Sources
	// Executor carries out a step's decisions on running pods.
	Executor Executor
	Settings Settings
	Totals   ClusterTotals
	// Priors has what memfit learned about young containers of known programs; nil: learning is off.
	Priors *Priors
	// Problems are the workloads whose profile is unavailable.
	Problems *policy.Problems
	Recorder EventRecorder
	Metrics  *Metrics
	// Watchdog tracks the workers; nil: no tracking.
	Watchdog *liveness.Watchdog
	Clock    clock.PassiveClock

	states     states
	former     formers
	backoffs   backoffs
	identities identities
}

// Settings of a Reconciler, from the manager's flags.
type Settings struct {
	// CheckpointEvery is the maximum age of the stored history, and the time between writes if there is only history.
	CheckpointEvery time.Duration
	// StepInterval is the minimum time between steps that only samples cause. 0: every sample causes a step.
	StepInterval time.Duration
	// Timeout is how long one reconcile may take; 0: ten seconds.
	Timeout time.Duration
	// Replica is the name of this process's pod; its webhook may be permitted to create a canary. Empty: no canary.
	Replica string
	// MaxIdentities bounds the identities of one profile; 0: [identity.MaxPerProfile].
	MaxIdentities int
	// Unmeasured is true if memfit reads no usage, so that missing samples are not evidence about a kill.
	Unmeasured bool
	// NoWebhook is true if memfit runs without its webhook, and changes no new pod.
	NoWebhook bool
}

// DefaultCheckpointEvery is the default of [Settings.CheckpointEvery].
const DefaultCheckpointEvery = 10 * time.Minute

// workers is the number of workloads reconciled in parallel. A step takes well under a millisecond of CPU; the rest is
// waiting for writes.
const workers = 8

// Setup adds the reconciler to the manager.
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

// Reconcile reconciles one workload within a time limit, so that a workload delays others by seconds at most. After the
// limit, the reconcile is canceled, reported in the status, and retried after a backoff.
func (r *Reconciler) Reconcile(ctx context.Context, ref memory.WorkloadRef) (reconcile.Result, error) {
	if wait := r.backoffs.wait(ref, r.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	defer r.Watchdog.Begin(ref)()
	began, timeout := r.Clock.Now(), cmp.Or(r.Settings.Timeout, reconcileTimeout)
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := r.reconcile(within, ref)
	switch {
	case err != nil && errors.Is(within.Err(), context.DeadlineExceeded):
		r.Metrics.timedOut.Inc()
		return r.stalled(ctx, ref, longestBackoff, err, v1alpha1.ReasonReconcileTimedOut, func(next string) string {
			return fmt.Sprintf("The reconcile of this workload that began at %s did not end within %s and was canceled; the "+
				"next begins at %s: %s", format.Time(began), format.InWords(timeout), next, quote.Line(err.Error()))
		}), nil
	case refused(err):
		return r.notSaved(ctx, ref, err)
	case errors.Is(err, errUnreadable):
		return r.notRead(ctx, ref, err), nil
	}
	r.backoffs.done(ref)
	return result, err
}

// reconcile reads the events of one workload, decides, and writes checkpoint, recommendation, Events and changes of
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
	switch {
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("gathering %s: %w", ref, err)
	case s.Presence.State == records.Gone || s.Presence.State == records.Terminating:
		if e, known := r.states.get(ref); known {
			e.mu.Lock()
			defer e.mu.Unlock()
		}
		return reconcile.Result{}, r.leave(ctx, s)
	case s.Profile == nil:
		return reconcile.Result{}, r.release(ctx, s)
	}
	if full, err := r.tooManyIdentities(ctx, s); err != nil || full {
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
	return r.takeStep(ctx, s, e, now)
}

// takeStep takes one step of an existing, governed workload. It writes the checkpoint first: if that fails, nothing has
// happened. Recommendation, Events and changes of pods follow; the next step repeats those that fail.
func (r *Reconciler) takeStep(
	ctx context.Context, s *workload.Snapshot, e *entry, now time.Time,
) (reconcile.Result, error) {
	r.prepare(s, e)
	next, f := r.step(e, s, now)
	err := r.save(ctx, s.Owner, e, next, now)
	switch {
	case err != nil && r.vanished(ctx, s, err):
		return reconcile.Result{}, r.leave(ctx, s)
	case err != nil:
		return reconcile.Result{}, err
	}
	r.afterSave(s.Owner.Ref, e, &f)
	err = r.publish(ctx, s, e, &f, now)
	if err != nil && r.vanished(ctx, s, err) {
		return reconcile.Result{}, r.leave(ctx, s)
	}
	for i := range f.Events {
		r.Recorder.Record(s.Owner, f.Events[i])
	}
	switch { // change no pod before its reason is published; the next step decides again
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

// prepare passes the workload's pods and nodes to the inbox, warns about an unavailable profile, requests the
// workload's earlier usage, and finds the state of an earlier workload of the same name.
func (r *Reconciler) prepare(s *workload.Snapshot, e *entry) {
	e.restUntil, e.owner = time.Time{}, cmp.Or(e.owner, s.Owner.UID)
	r.Inbox.Govern(s.Owner.Ref, placed(s), s.Profile.Key())
	r.warn(s)
	s.Events.Past = r.past(s.Owner.Ref, e.state)
	s.Earlier = r.former.of(s.Owner.Ref, s.Owner.UID, e.namespace, r.Clock.Now())
}

func (r *Reconciler) step(e *entry, s *workload.Snapshot, now time.Time) (next *workload.State, f workload.Effects) {
	// a step that changes no pods needs no budget; but in every mode, a step may restore limits that memfit lowered
	if sizing := e.state.Rollout(); !s.ChangesRunningPods() && len(sizing.Lowerings)+len(sizing.Reverts) == 0 {
		return workload.Step(e.state, s, now)
	}
	r.Totals.reserve(s.Owner.Ref, func(a *rollout.Allowance) []rollout.Spent {
		s.Allowance = a
		next, f = workload.Step(e.state, s, now)
		return next.Rollout().Spent
	})
	return next, f
}

// afterSave removes the stored events from the inbox, and updates totals and metrics, after the checkpoint was saved.
func (r *Reconciler) afterSave(ref memory.WorkloadRef, e *entry, f *workload.Effects) {
	r.Inbox.Done(ref)
	if e.state.HasHistory() { // it replaces the former state
		r.former.drop(ref)
	}
	if r.Sources.History != nil && e.state.KnowsPast() {
		r.Sources.History.Forget(ref)
	}
	loans := e.state.Rollout().Loans
	r.Totals.setLoans(ref, loans)
	r.Priors.learn(f.Learned)
	r.Metrics.count(ref, f)
	r.Metrics.show(ref, f, loans)
}

// unknown reports whether memfit has neither state nor a recommendation of the workload.
func (r *Reconciler) unknown(ctx context.Context, ref memory.WorkloadRef) bool {
	if _, known := r.states.get(ref); known {
		return false
	}
	rec, err := r.stored(ctx, ref)
	return err == nil && rec == nil
}
