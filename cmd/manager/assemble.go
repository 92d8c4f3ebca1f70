// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/memfit/memfit/api/v1alpha1"
	constraintsctl "github.com/memfit/memfit/controllers/constraints"
	profilectl "github.com/memfit/memfit/controllers/profile"
	rescuectl "github.com/memfit/memfit/controllers/rescue"
	snapshotsctl "github.com/memfit/memfit/controllers/snapshots"
	"github.com/memfit/memfit/controllers/sweeper"
	usagectl "github.com/memfit/memfit/controllers/usage"
	workloadctl "github.com/memfit/memfit/controllers/workload"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/liveness"
	"github.com/memfit/memfit/internal/policy"
	podwebhook "github.com/memfit/memfit/webhooks/pod"
	profilewebhook "github.com/memfit/memfit/webhooks/profile"
)

// assemble adds all components to the manager.
func assemble(ctx context.Context, mgr ctrl.Manager, server webhook.Server, o options) error {
	for _, obj := range append(policy.Informers(), &v1alpha1.MemoryRecommendation{}) {
		if _, err := mgr.GetCache().GetInformer(ctx, obj); err != nil {
			return fmt.Errorf("preparing the cache of owners, namespaces and recommendations: %w", err)
		}
	}
	resolver := policy.New(mgr.GetCache(), mgr.GetAPIReader()).Excluding(o.excluded()...).WithOwnNamespace(o.namespace)
	events := inbox.NewInbox()
	feed := &workloadctl.PodSource{Cache: mgr.GetCache(), Resolver: resolver, Inbox: events}
	profiles := &profilectl.Reconciler{
		Client: mgr.GetClient(), Profiles: resolver, NoWebhook: !o.webhooks, Clock: clock.RealClock{},
	}
	watcher := &policy.Watcher{Resolver: resolver, Cache: mgr.GetCache(), OnChange: func(changes []policy.Change) {
		feed.ProfilesChanged(changes)
		profiles.ProfilesChanged(changes)
	}}
	if err := errors.Join(mgr.Add(watcher), mgr.AddReadyzCheck("caches", watcher.Ready)); err != nil {
		return fmt.Errorf("adding the profile watcher: %w", err)
	}
	bounds := &constraintindex.Index{Reader: mgr.GetCache()}
	if err := bounds.Follow(ctx, mgr.GetCache()); err != nil {
		return err
	}
	if o.webhooks {
		if err := serve(ctx, mgr, server, resolver, bounds, o); err != nil {
			return err
		}
	}
	return control(mgr, resolver, bounds, events, feed, profiles, o)
}

// control adds the components that run on the leader.
func control(
	mgr ctrl.Manager, resolver *policy.Resolver, bounds *constraintindex.Index, events *inbox.Inbox,
	feed *workloadctl.PodSource, profiles *profilectl.Reconciler, o options,
) error {
	workloadMetrics := workloadctl.NewMetrics(metrics.Registry)
	watchdog := liveness.NewWatchdog(clock.RealClock{})
	if err := mgr.AddHealthzCheck("workers", watchdog.Check); err != nil {
		return fmt.Errorf("adding the liveness check: %w", err)
	}
	problems := &policy.Problems{OnChange: profiles.Enqueue}
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("preparing to evict and resize pods: %w", err)
	}
	core := clientset.CoreV1().RESTClient()
	constraints := &constraintsctl.Watcher{
		Cache:      mgr.GetCache(),
		Bounds:     bounds,
		ServesVPAs: constraintsctl.ServesVPAs(discovery.ToDiscoveryInterfaceWithContext(clientset.Discovery())),
		Clock:      clock.RealClock{},
	}
	snapshots := &snapshotsctl.Watcher{Cache: mgr.GetCache(), Workload: events.Workload}
	feed.Constraints, feed.Snapshots = constraints, snapshots
	profiles.Problems, profiles.Watchdog = problems, watchdog
	recorder := workloadctl.NewEventWriter(mgr.GetClient(), replica(), clock.RealClock{})
	workloads := &workloadctl.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), PodSource: feed, Inbox: events, Resolver: resolver,
		Sources: workloadctl.Sources{Pods: feed, Constraints: constraints, Snapshots: snapshots},
		Executor: workloadctl.Executor{
			Evict: workloadctl.Evictor(core), Resize: workloadctl.Resizer(core),
			MayEvict: workloadctl.Evictor(core, metav1.DryRunAll), HasRight: workloadctl.Rights(clientset.AuthorizationV1()),
		},
		Settings: workloadctl.Settings{
			CheckpointEvery: o.checkpointInterval, StepInterval: samplesPerStep * o.usageInterval,
			Unmeasured: o.usageInterval == 0, NoWebhook: !o.webhooks, Replica: replica(),
		},
		Problems: problems,
		Totals:   workloadctl.ClusterTotals{Budget: o.changeBudget, APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}},
		Recorder: recorder, Metrics: workloadMetrics, Watchdog: watchdog, Clock: clock.RealClock{},
	}
	if o.usageInterval > 0 {
		collector, err := watchUsage(mgr, &usagectl.Collector{
			Reader: mgr.GetClient(), Inbox: events, Queue: feed, Metrics: usagectl.NewMetrics(metrics.Registry),
			Interval: o.usageInterval, Clock: clock.RealClock{},
			OnGaps: profiles.EnqueueAll,
		}, o)
		if err != nil {
			return err
		}
		profiles.Usage, workloads.Sources.Usage = collector, collector
	}
	history, err := readHistory(mgr, feed, o)
	if err != nil {
		return err
	}
	if history != nil {
		workloads.Sources.History = history
	}
	if o.sources.rollbackQueries {
		workloads.Sources.Queries = &workloadctl.RollbackQueries{Count: o.sources.prometheus.Count, Clock: clock.RealClock{}}
	}
	if o.learnPriors && o.namespace != "" {
		workloads.Priors = &workloadctl.Priors{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Namespace: o.namespace, Every: o.checkpointInterval,
			Clock: clock.RealClock{},
		}
		if err := mgr.Add(workloads.Priors); err != nil {
			return fmt.Errorf("adding the priors: %w", err)
		}
	}
	if o.changeBudget.Limited() {
		workloads.Totals.Register(metrics.Registry)
	}
	alarms := &rescuectl.Controller{
		Reader: mgr.GetCache(), Indexer: mgr.GetCache(), Pods: feed, Resolver: resolver, Inbox: events,
		Constraints: constraints, Lender: workloads, Recorder: recorder,
		Metrics: rescuectl.NewMetrics(metrics.Registry), Clock: clock.RealClock{},
	}
	snapshots.OnAlarm = alarms.OnAlarm
	if err := errors.Join(workloads.Setup(mgr), profiles.Setup(mgr)); err != nil {
		return fmt.Errorf("adding the controllers: %w", err)
	}
	serverClock := &sweeper.ServerClock{Local: time.Now}
	sweepReader, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: serverClock.Client(mgr.GetHTTPClient()), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("preparing to sweep: %w", err)
	}
	return errors.Join(mgr.Add(recorder), mgr.Add(&workloads.Totals), mgr.Add(alarms),
		mgr.Add(sweeper.Sweeper{Client: mgr.GetClient(), APIReader: sweepReader, Clock: serverClock}),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			workloads.Flush(ctx)
			return nil
		})))
}

// replica returns the name of this process's pod, for Events and for canaries (MemoryRecommendation status.canary);
// empty: unknown, and this replica creates no canary.
func replica() string {
	name, _ := os.Hostname()
	return name
}

// samplesPerStep is the number of samples per reconcile of a workload without other news: one reconcile a minute.
const samplesPerStep = 4

// flushTimeout bounds the last writes at shutdown. It is well below the 30 s of graceful termination.
const flushTimeout = 10 * time.Second

// serve adds the webhooks. They start when their certificate exists.
func serve(
	ctx context.Context, mgr ctrl.Manager, server webhook.Server, resolver *policy.Resolver,
	bounds *constraintindex.Index, o options,
) error {
	if err := mgr.AddReadyzCheck("webhook", server.StartedChecker()); err != nil {
		return fmt.Errorf("adding the webhook readiness check: %w", err)
	}
	recorder := workloadctl.NewEventWriter(mgr.GetClient(), replica(), clock.RealClock{})
	injector := &podwebhook.Injector{
		Resolver: resolver, Reader: mgr.GetCache(), Constraints: bounds, Metrics: podwebhook.NewMetrics(metrics.Registry),
		Clock: clock.RealClock{}, Canaries: &podwebhook.Canaries{Replica: replica()},
		Kills: &podwebhook.PendingKills{
			Resolver: resolver, APIReader: mgr.GetAPIReader(), NodePressureSince: bounds.NodePressureSince,
			Clock: clock.RealClock{},
		},
		Trials: &podwebhook.Trials{Report: recorder.PodsNotCreated},
	}
	if err := errors.Join(injector.Follow(mgr), mgr.Add(informers.EveryReplica(recorder.Start))); err != nil {
		return err
	}
	if o.configMapKeys {
		if _, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{}); err != nil {
			return fmt.Errorf("preparing the cache for ConfigMaps: %w", err)
		}
		injector.ConfigMaps = mgr.GetCache()
	}
	register := func() {
		// GetWebhookServer makes the manager start the server
		mgr.GetWebhookServer().Register(podwebhook.Path, injector)
		profilewebhook.SetupValidators(mgr, resolver)
	}
	if o.certMode == selfManaged {
		return whenCertified(mgr, o, register)
	}
	register()
	return nil
}
