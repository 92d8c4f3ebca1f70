// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is memfit's operator: the webhook on every replica, the controllers on the leader.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
	_ "time/tzdata" // time zones of maintenance windows, in case the image has none

	// root certificates, in case the image has none: for --prometheus-url without --prometheus-ca-file
	_ "golang.org/x/crypto/x509roots/fallback"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/webhooks/server"
)

// version is set by the linker.
var version = "dev"

// leaderElectionID is the Lease that elects the replica with the controllers; config/rbac names it.
const leaderElectionID = "manager.memfit.dev"

func main() {
	o, err := parse(os.Args[1:], os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.log)))
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), config, o)
	}
	if err != nil {
		ctrl.Log.WithName("setup").Error(err, "Stopped")
		os.Exit(1)
	}
}

// run builds the manager and runs it until ctx ends.
func run(ctx context.Context, config *rest.Config, o options) error {
	log := ctrl.Log.WithName("setup")
	log.Info("Starting memfit", "version", version)
	if o.kubeletInsecure {
		log.Info("INSECURE: kubelets are not verified; the token that may read node statistics goes to any server at a " +
			"node's address")
	}
	if o.usageAccount == "" && o.usageInterval != 0 {
		log.Info("INSECURE: kubelets see memfit's own identity, which may do much more than read statistics; see " +
			"--usage-service-account")
	}
	if err := awaitCluster(ctx, config, o.probeAddr); err != nil {
		return fmt.Errorf("waiting for the cluster: %w", err)
	}
	if err := compressEvidence(ctx, config, o); err != nil {
		return err
	}
	server := server.New(server.Options{
		Port: o.webhookPort, CertDir: o.webhookCertPath, ClientCA: o.clientCA, ClientNames: listed(o.clientNames),
		TLSOpts: []func(*tls.Config){withoutHTTP2, inOnePiece},
		Metrics: server.NewMetrics(metrics.Registry),
	})
	mgr, err := ctrl.NewManager(config, managerOptions(o, server))
	if err != nil {
		return fmt.Errorf("building the manager: %w", err)
	}
	if err := assemble(ctx, mgr, server, o); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

func managerOptions(o options, server webhook.Server) ctrl.Options {
	m := metricsserver.Options{
		BindAddress: o.metricsAddr, SecureServing: o.metricsSecure, CertDir: o.metricsCertPath,
		TLSOpts: []func(*tls.Config){withoutHTTP2, withoutOldTLS},
	}
	if o.metricsSecure {
		m.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return ctrl.Options{
		Scheme:                        scheme(),
		Cache:                         informers.CacheOptions(),
		WebhookServer:                 server,
		HealthProbeBindAddress:        o.probeAddr,
		PprofBindAddress:              o.pprofAddr,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       o.namespace, // empty: the namespace of this pod
		LeaderElectionReleaseOnCancel: true,        // main returns right after Start does
		Metrics:                       m,
		Controller:                    ctrlconfig.Controller{CacheSyncTimeout: syncTimeout},
	}
}

// syncTimeout is how long the leader may take to list all pods and workloads before it exits and another one starts
// over. With the default of two minutes, a large cluster or a busy API server might never get a leader.
const syncTimeout = 15 * time.Minute

// withoutHTTP2 avoids CVE-2023-44487 (stream resets). The API server keeps HTTP/1.1 connections open as well.
func withoutHTTP2(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }

// withoutOldTLS sets Go's default explicitly, in case of GODEBUG=tls10server=1.
func withoutOldTLS(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }

// inOnePiece sends a response as one TLS record. By default, Go sends one record per packet after a pause.
func inOnePiece(c *tls.Config) { c.DynamicRecordSizingDisabled = true }

// scheme registers only the kinds that memfit handles.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(metav1.AddMetaToScheme(s))
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	return s
}
