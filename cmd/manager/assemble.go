// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/memfit/memfit/controllers"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/govern"
	"github.com/memfit/memfit/webhooks"
)

// assemble puts the parts together.
func assemble(ctx context.Context, mgr ctrl.Manager, server webhook.Server, o options) error {
	for _, obj := range controllers.Informed() {
		if _, err := mgr.GetCache().GetInformer(ctx, obj); err != nil {
			return fmt.Errorf("preparing the cache for %T: %w", obj, err)
		}
	}
	straight, err := govern.NewInformerReader(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	governor := govern.New(straight, mgr.GetAPIReader()).Without(o.excluded()...).At(o.namespace)
	inbox := controllers.NewInbox()
	feed := &controllers.PodSource{Cache: mgr.GetCache(), Governor: governor, Inbox: inbox}
	watcher := &govern.Watcher{Governor: governor, Cache: mgr.GetCache(), OnChange: feed.ProfilesChanged}
	if err := mgr.Add(watcher); err != nil {
		return fmt.Errorf("adding the profile watcher: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", watcher.Ready); err != nil {
		return fmt.Errorf("adding the cache readiness check: %w", err)
	}
	if o.webhooks {
		if err := serve(ctx, mgr, server, governor, straight, o); err != nil {
			return err
		}
	}
	return control(mgr, governor, inbox, feed, o)
}

// control adds what runs on the leader.
func control(mgr ctrl.Manager, governor *govern.Governor, inbox *controllers.Inbox, feed *controllers.PodSource, o options) error {
	measures := controllers.NewMetrics(metrics.Registry)
	watchdog := controllers.NewWatchdog(clock.RealClock{})
	if err := mgr.AddHealthzCheck("workers", watchdog.Check); err != nil {
		return fmt.Errorf("adding the liveness check: %w", err)
	}
	problems := &controllers.Problems{}
	typed, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("preparing to evict and resize pods: %w", err)
	}
	constraints := &controllers.Neighbourhood{
		Cache: mgr.GetCache(), ServesVertical: controllers.ServesVertical(discovery.ToDiscoveryInterfaceWithContext(typed.Discovery())), Clock: clock.RealClock{},
	}
	feed.Constraints = constraints
	profiles := &controllers.ProfileReconciler{Client: mgr.GetClient(), Problems: problems, Bell: &controllers.Bell[controllers.ProfileKey]{}, Watchdog: watchdog, Clock: clock.RealClock{}}
	workloads := &controllers.WorkloadReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Governor: governor, Inbox: inbox, PodSource: feed,
		Recorder: mgr.GetEventRecorder("memfit"), Metrics: measures, Clock: clock.RealClock{}, CheckpointEvery: o.checkpointInterval,
		LookEvery:  samplesPerLook * o.usageInterval,
		Unmeasured: o.usageInterval == 0, Problems: problems, OnProblem: profiles.Bell.Ring,
		Evict: controllers.Evictor(typed.CoreV1().RESTClient()), Resize: controllers.Resizer(typed.CoreV1().RESTClient()), Neighbours: constraints,
		Watchdog: watchdog,
	}
	if o.usageInterval > 0 {
		collector, err := watchUsage(mgr, &controllers.UsageCollector{
			Reader: mgr.GetClient(), Inbox: inbox, Queue: feed, Metrics: controllers.NewUsageMetrics(metrics.Registry), Interval: o.usageInterval, Clock: clock.RealClock{},
			OnGaps: profiles.RingAll,
		}, o)
		if err != nil {
			return err
		}
		profiles.Usage = collector
	}
	past, err := readPast(mgr, feed, o)
	if err != nil {
		return err
	}
	if past != nil {
		workloads.Past = past
	}
	if err := workloads.Setup(mgr); err != nil {
		return fmt.Errorf("adding the workload controller: %w", err)
	}
	if err := profiles.Setup(mgr); err != nil {
		return fmt.Errorf("adding the profile controller: %w", err)
	}
	if err := mgr.Add(controllers.Sweeper{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}); err != nil {
		return fmt.Errorf("adding what deletes records of workloads that do not exist: %w", err)
	}
	return mgr.Add(atEnd(func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		workloads.Flush(ctx)
	}))
}

// samplesPerLook: a workload of which there is nothing but samples is looked at every fourth time, which is once a minute.
const samplesPerLook = 4

// flushTimeout is well below the 30 s of graceful termination.
const flushTimeout = 10 * time.Second

// atEnd runs f on the leader when the manager stops.
func atEnd(f func()) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		f()
		return nil
	})
}

// serve adds the webhooks. They start when their certificate is there.
func serve(ctx context.Context, mgr ctrl.Manager, server webhook.Server, governor *govern.Governor, reader client.Reader, o options) error {
	if err := mgr.AddReadyzCheck("webhook", func(r *http.Request) error { return server.StartedChecker()(r) }); err != nil {
		return fmt.Errorf("adding the webhook readiness check: %w", err)
	}
	room := &constraints.Index{}
	if err := room.Follow(ctx, mgr.GetCache()); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("constraints", room.Ready); err != nil {
		return fmt.Errorf("adding the readiness check of what bounds new pods: %w", err)
	}
	injector := &webhooks.PodInjector{Governor: governor, Reader: reader, Constraints: room, Metrics: webhooks.NewMetrics(metrics.Registry), Clock: clock.RealClock{}}
	if o.configMapKeys {
		if _, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{}); err != nil {
			return fmt.Errorf("preparing the cache for ConfigMaps: %w", err)
		}
		injector.ConfigMaps = mgr.GetCache()
	}
	register := func() error {
		injector.Register(mgr.GetWebhookServer()) // asking for the server is what makes the manager start it
		return webhooks.SetupProfileValidators(mgr)
	}
	if o.certMode == selfManaged {
		return whenCertified(mgr, o, register)
	}
	return register()
}
