// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/suite"
	"github.com/memfit/memfit/test/tree"
	podwebhook "github.com/memfit/memfit/webhooks/pod"
	profilewebhook "github.com/memfit/memfit/webhooks/profile"
	"github.com/memfit/memfit/webhooks/server"
)

var (
	ctx      context.Context
	scheme   *runtime.Scheme
	api      client.Client // the API server, as a user's kubectl with warnings taken down
	warnings = &warningLog{}
	replicas = [2]*replica{{}, {}}
	registry = prometheus.NewRegistry()
	metrics  = podwebhook.NewMetrics(registry)
	lookups  = &fault{}
	later    = &laterClock{}
	reports  = make(chan string, 16) // Events about pods that were not created
)

// replica is one of the managers; the second one does not lead.
type replica struct {
	resolver *policy.Resolver
	room     constraintindex.Index
	changes  atomic.Int64 // how often profiles changed
}

// changes are the changes of profiles that both replicas know.
func changes() int64 { return min(replicas[0].changes.Load(), replicas[1].changes.Load()) }

func TestWebhooks(t *testing.T) {
	var options *envtest.WebhookInstallOptions
	var config *rest.Config
	config, scheme = suite.Start(t, func(env *envtest.Environment) {
		env.WebhookInstallOptions.Paths = []string{filepath.Join(tree.Root(), "config", "webhook", "manifests.yaml")}
		options = &env.WebhookInstallOptions
	})
	running, stop := context.WithCancel(t.Context())
	ctx = running
	stopped := serve(config, options)
	t.Cleanup(func() {
		stop()
		for range replicas {
			if err := <-stopped; err != nil {
				t.Errorf("a manager: %v", err)
			}
		}
	})
	RunSpecs(t, "webhooks")
}

// serve runs two managers with memfit's webhooks, whose lookups can be made to fail, and sends each request of the API
// server to the other one than the request before, as a Service may.
func serve(config *rest.Config, options *envtest.WebhookInstallOptions) <-chan error {
	stopped := make(chan error, len(replicas))
	var inTurn [len(replicas)]*httputil.ReverseProxy
	for i, r := range replicas {
		free, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(options.LocalServingHost, "0"))
		Expect(err).NotTo(HaveOccurred())
		Expect(free.Close()).To(Succeed())
		r.start(config, options, free.Addr(), stopped)
		at := &url.URL{Scheme: "https", Host: free.Addr().String()}
		inTurn[i] = httputil.NewSingleHostReverseProxy(at)
		ofTest := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the manager of a test signs for itself
		inTurn[i].Transport = &http.Transport{TLSClientConfig: ofTest}
	}
	var requests atomic.Int64
	front := &http.Server{
		Addr:              net.JoinHostPort(options.LocalServingHost, strconv.Itoa(options.LocalServingPort)),
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inTurn[requests.Add(1)%int64(len(inTurn))].ServeHTTP(w, r)
		}),
	}
	certificate := func(file string) string { return filepath.Join(options.LocalServingCertDir, file) }
	go func() { _ = front.ListenAndServeTLS(certificate("tls.crt"), certificate("tls.key")) }()
	context.AfterFunc(ctx, func() { _ = front.Close() })

	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = warnings
	var err error
	api, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	for _, r := range replicas {
		Eventually(r.resolver.Built()).WithTimeout(30 * time.Second).Should(BeClosed())
	}
	return stopped
}

// start runs a manager, assembled as cmd/manager assembles it.
func (r *replica) start(
	config *rest.Config, options *envtest.WebhookInstallOptions, at net.Addr, stopped chan<- error,
) {
	of, _ := at.(*net.TCPAddr)
	server := server.New(server.Options{
		Host: options.LocalServingHost, Port: of.Port, CertDir: options.LocalServingCertDir,
		Metrics: server.NewMetrics(prometheus.NewRegistry()),
	})
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "memfit", LeaderElectionNamespace: "default",
	})
	Expect(err).NotTo(HaveOccurred())
	faulty := interceptor.NewClient(mustWatch(mgr.GetClient()), lookups.funcs())
	r.resolver = policy.New(faulty, mgr.GetAPIReader())
	Expect(mgr.Add(&policy.Watcher{
		Resolver: r.resolver, Cache: mgr.GetCache(), OnChange: func([]policy.Change) { r.changes.Add(1) },
	})).To(Succeed())
	for _, obj := range append(policy.Informers(), &v1alpha1.MemoryRecommendation{}) {
		_, err := mgr.GetCache().GetInformer(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
	}
	r.room.Reader = mgr.GetCache()
	Expect(r.room.Follow(ctx, mgr.GetCache())).To(Succeed())
	injector := &podwebhook.Injector{
		Resolver: r.resolver, Reader: faulty, Constraints: &r.room, Metrics: metrics,
		Clock: later, Trials: &podwebhook.Trials{Report: func(of memory.Workload, note string) {
			reports <- string(of.UID) + ": " + note
		}},
		Kills: &podwebhook.PendingKills{
			Resolver: r.resolver, APIReader: mgr.GetAPIReader(), NodePressureSince: r.room.NodePressureSince,
			Clock: clock.RealClock{},
		},
	}
	Expect(injector.Follow(mgr)).To(Succeed())
	mgr.GetWebhookServer().Register(podwebhook.Path, injector)
	profilewebhook.SetupValidators(mgr, r.resolver)
	go func() { stopped <- mgr.Start(ctx) }()
	Eventually(func() error { return server.StartedChecker()(nil) }).WithTimeout(30 * time.Second).Should(Succeed())
	leads := r == replicas[0]
	Eventually(func() bool {
		select {
		case <-mgr.Elected():
			return true
		default:
			return false
		}
	}).WithTimeout(30 * time.Second).Should(Equal(leads))
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
	before := changes()
	expect.Applied(ctx, api, profile)
	DeferCleanup(func() { expect.Deleted(ctx, api, profile) })
	Eventually(changes).WithTimeout(10 * time.Second).Should(BeNumerically(">", before))
}
