// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command cert-manager runs the real cert-manager controllers and the real CA injector as one process on the machine,
// so that the lab needs no image of them. It serves the self-signed and the CA issuer, which is all that a webhook
// certificate asks for: no ACME, no Vault, and no validating webhook of its own (a wrong Certificate is then refused by
// the CRD's schema, or says so in its status).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	logf "github.com/cert-manager/cert-manager/pkg/logs"

	// Each of these registers one controller or one issuer.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

func main() {
	// A flag set of its own: controller-runtime has put flags of the same names into the global one.
	flags := flag.NewFlagSet("cert-manager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of the kubeconfig to run with")
	namespace := flags.String("cluster-resource-namespace", "cert-manager", "where the Secrets of ClusterIssuers live")
	health := flags.String("health-address", "127.0.0.1:9403", "where /readyz is served")
	_ = flags.Parse(os.Args[1:]) // ExitOnError

	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	ctrl.SetLogger(log)
	ctx, stop := signal.NotifyContext(logf.NewContext(context.Background(), log), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace, *health); err != nil {
		log.Error(err, "Stopped")
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace, health string) error {
	group, ctx := errgroup.WithContext(ctx)
	if err := startControllers(ctx, group, kubeconfig, namespace); err != nil {
		return fmt.Errorf("starting the cert-manager controllers: %w", err)
	}
	injector, err := newInjector(ctx, kubeconfig, health)
	if err != nil {
		return fmt.Errorf("starting the CA injector: %w", err)
	}
	group.Go(func() error { return injector.Start(ctx) })
	return group.Wait()
}

// startControllers runs every controller that the imports above registered.
func startControllers(ctx context.Context, group *errgroup.Group, kubeconfig, namespace string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   50,
		KubernetesAPIBurst: 100,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			// Upstream waits 1 h to 32 h after a failed request. A lab's certificates fail because somebody is at work on them.
			CertificateRequestMinimumBackoffDuration: 5 * time.Second,
			CertificateRequestMaximumBackoffDuration: time.Minute,
		},
	})
	if err != nil {
		return err
	}
	known := controller.Known()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		c, err := known[name](factory)
		if err != nil {
			return fmt.Errorf("building controller %s: %w", name, err)
		}
		group.Go(func() error { return c.Run(2, ctx) }) // two workers each: one slow object does not stop the others
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}

// newInjector builds the manager that copies CA bundles into webhook configurations, API services and CRDs.
func newInjector(ctx context.Context, kubeconfig, health string) (ctrl.Manager, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// The injector applies CA bundles under the name of its user agent, and without one the API server refuses every
	// patch.
	cfg.UserAgent = "cert-manager-cainjector"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, cmapi.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: health,
		// Only the metadata of Secrets is watched, so the Secrets themselves are read from the API server.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return nil, err
	}
	err = mgr.AddReadyzCheck("caches", func(req *http.Request) error {
		// Long before it is asked for the first time the controllers have either filled their caches or ended the process.
		if !mgr.GetCache().WaitForCacheSync(req.Context()) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return mgr, cainjector.RegisterAllInjectors(ctx, mgr, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName:                     true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	})
}
