// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/suite"
	podwebhook "github.com/memfit/memfit/webhooks/pod"
	profilewebhook "github.com/memfit/memfit/webhooks/profile"
	"github.com/memfit/memfit/webhooks/server"
)

var (
	ctx      context.Context
	scheme   *runtime.Scheme
	api      client.Client // the API server, as a user's kubectl with warnings taken down
	warnings = &warningLog{}
	watcher  *policy.Watcher
	changes  atomic.Int64 // how often profiles changed
	registry = prometheus.NewRegistry()
	lookups  = &fault{}
	room     = &constraintindex.Index{}
	later    = &laterClock{}
	reports  = make(chan string, 16) // Events about pods that were not created
)

func TestWebhooks(t *testing.T) {
	var options *envtest.WebhookInstallOptions
	var config *rest.Config
	config, scheme = suite.Start(t, func(env *envtest.Environment) {
		env.WebhookInstallOptions.Paths = []string{filepath.Join(expect.Root(), "config", "webhook", "manifests.yaml")}
		options = &env.WebhookInstallOptions
	})
	running, stop := context.WithCancel(t.Context())
	ctx = running
	stopped := serve(config, options)
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("the manager: %v", err)
		}
	})
	RunSpecs(t, "webhooks")
}

// serve runs a manager with memfit's webhooks, whose lookups can be made to fail.
func serve(config *rest.Config, options *envtest.WebhookInstallOptions) <-chan error {
	server := server.New(server.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
		Metrics: server.NewMetrics(prometheus.NewRegistry()),
	})
	mgr, err := ctrl.NewManager(
		config, ctrl.Options{Scheme: scheme, WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"}},
	)
	Expect(err).NotTo(HaveOccurred())
	faulty := interceptor.NewClient(mustWatch(mgr.GetClient()), lookups.funcs())
	resolver := policy.New(faulty, mgr.GetAPIReader())
	watcher = &policy.Watcher{
		Resolver: resolver, Cache: mgr.GetCache(), OnChange: func([]policy.Change) { changes.Add(1) },
	}
	Expect(mgr.Add(watcher)).To(Succeed())
	for _, obj := range append(policy.Informers(), &v1alpha1.MemoryRecommendation{}) {
		_, err := mgr.GetCache().GetInformer(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
	}
	room.Reader = mgr.GetCache()
	Expect(room.Follow(ctx, mgr.GetCache())).To(Succeed())
	injector := &podwebhook.Injector{
		Resolver: resolver, Reader: faulty, Constraints: room, Metrics: podwebhook.NewMetrics(registry),
		Clock: later, Trials: &podwebhook.Trials{Report: func(of memory.Workload, note string) {
			reports <- string(of.UID) + ": " + note
		}},
		Kills: &podwebhook.PendingKills{ // which follow no informer
			Resolver: resolver, APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{},
		},
	}
	mgr.GetWebhookServer().Register(podwebhook.Path, injector)
	profilewebhook.SetupValidators(mgr, resolver)
	pending, err := cache.New(config, informers.PendingPods(scheme))
	Expect(err).NotTo(HaveOccurred())
	Expect(mgr.Add(pending)).To(Succeed())
	watched := make(chan error, 1)
	Expect(mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		watched <- injector.WatchNewPods(ctx, pending)
		return nil
	}))).To(Succeed())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()

	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = warnings
	api, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { return server.StartedChecker()(nil) }).WithTimeout(30 * time.Second).Should(Succeed())
	Eventually(watched).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
	Eventually(resolver.Built()).WithTimeout(30 * time.Second).Should(BeClosed())
	return stopped
}

// laterClock is ahead of the clock by a time that only grows.
type laterClock struct{ by atomic.Int64 }

func (c *laterClock) Now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

func (c *laterClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *laterClock) advance(by time.Duration) { c.by.Add(int64(by)) }

// mustWatch: the interceptor wants a client that can watch; the manager's cannot, and nobody here does.
func mustWatch(c client.Client) client.WithWatch { return noWatch{c} }

type noWatch struct{ client.Client }

func (noWatch) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("nobody watches here")
}

// fault makes lookups of one kind fail, panic or hang.
type fault struct {
	do atomic.Pointer[func(ctx context.Context, obj client.Object) error]
}

func (f *fault) funcs() interceptor.Funcs {
	return interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
	) error {
		if do := f.do.Load(); do != nil {
			if err := (*do)(ctx, obj); err != nil {
				return err
			}
		}
		return c.Get(ctx, key, obj, opts...)
	}}
}

// during makes every lookup do something until the spec ends.
func (f *fault) during(do func(ctx context.Context, obj client.Object) error) {
	f.do.Store(&do)
	DeferCleanup(func() { f.do.Store(nil) })
}

// warningLog keeps the warnings that come with answers.
type warningLog struct {
	mu    sync.Mutex
	texts []string
}

func (l *warningLog) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, text)
}

// taken are the warnings since the last time.
func (l *warningLog) taken() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	texts := l.texts
	l.texts = nil
	return texts
}

var namespaces int

// namespace makes a namespace with annotations and waits until memfit knows it.
func namespace(annotations ...string) string {
	GinkgoHelper()
	namespaces++
	name := fmt.Sprintf("ns-%d", namespaces)
	expect.Applied(ctx, api, build.Namespace(name, annotations...))
	return name
}

// profiled writes one profile and waits until memfit knows it.
func profiled(profile client.Object) {
	GinkgoHelper()
	before := changes.Load()
	expect.Applied(ctx, api, profile)
	DeferCleanup(func() { expect.Deleted(ctx, api, profile) })
	Eventually(changes.Load).WithTimeout(10 * time.Second).Should(BeNumerically(">", before))
}
