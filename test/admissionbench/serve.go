// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/policy"
	podwebhook "github.com/memfit/memfit/webhooks/pod"
	webhookserver "github.com/memfit/memfit/webhooks/server"
)

// served is a webhook server as cmd/manager configures it, but for HTTP/2: the manager does not offer it, and here the
// client chooses.
type served struct{ webhook.Server }

func webhookServer(certDir string, port int) served {
	ctrl.SetLogger(logr.Discard())
	return served{webhookserver.New(webhookserver.Options{
		Host: "127.0.0.1", Port: port, CertDir: certDir, Metrics: webhookserver.NewMetrics(metrics.Registry),
		Clock: clock.RealClock{},
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.NextProtos,
				c.DynamicRecordSizingDisabled = []string{"h2", "http/1.1"}, true
		}},
	})}
}

// noop is the floor: the same framework, certificate and transport, and a handler that allows everything.
func (s served) noop(ctx context.Context) error {
	allow := func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }
	s.Register("/", &admission.Webhook{Handler: admission.HandlerFunc(allow)})
	return s.Start(ctx)
}

// memfit is what cmd/manager runs on a replica that is not the leader: the caches with their transforms, the profiles'
// index and the webhook. Nothing is left out on the way from the socket to the patch.
func (s served) memfit(ctx context.Context, metricsAddr string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: informers.CacheOptions(), Metrics: metricsserver.Options{BindAddress: metricsAddr},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return err
	}
	reader, err := policy.NewInformerReader(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	resolver := policy.New(reader, mgr.GetAPIReader())
	if err := mgr.Add(&policy.Watcher{Resolver: resolver, Cache: mgr.GetCache()}); err != nil {
		return err
	}
	bounds := &constraintindex.Index{Reader: mgr.GetCache()}
	if err := bounds.Follow(ctx, mgr.GetCache()); err != nil {
		return err
	}
	injector := &podwebhook.Injector{
		Resolver: resolver, Reader: reader, Metrics: podwebhook.NewMetrics(metrics.Registry), Clock: clock.RealClock{},
		Constraints: bounds,
	}
	s.Register(podwebhook.Path, podwebhook.NewHandler(injector))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	select { // the port opens when profiles are known, as readiness would have it
	case <-resolver.Built():
	case err := <-stopped:
		return errors.Join(errors.New("the manager ended early"), err)
	}
	return errors.Join(s.Start(ctx), <-stopped)
}
