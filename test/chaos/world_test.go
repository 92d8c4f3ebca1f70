// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/kubelet"
	"github.com/memfit/memfit/test/tree"
)

const (
	shop    = "shop"
	control = "kube-system" // not covered by memfit's webhook
	// highestLimit is limit.max of every profile.
	highestLimit = memory.GiB
)

// workload is a Deployment with a profile of the same name.
type workload struct {
	name     string
	replicas int32
	runtime  v1alpha1.RuntimeType
	mode     v1alpha1.SizingMode
	limit    memory.Bytes
	// cause is how its containers end.
	cause kubelet.Cause
	// infeasible: its nodes refuse to resize in place.
	infeasible bool
	// every is how often one of its containers ends; 0: only on request.
	every time.Duration
	// rescue: its profile enables sizing.rescue.
	rescue bool
}

// usual are the workloads of every fault without its own.
var usual = []workload{
	{
		name: "web", replicas: 3, runtime: v1alpha1.RuntimeNative, mode: v1alpha1.SizingInPlace, limit: 128 * memory.MiB,
		cause: kubelet.KernelOOM, every: 1500 * time.Millisecond,
	},
	{
		name: "heap", replicas: 2, runtime: v1alpha1.RuntimeNodeJS, mode: v1alpha1.SizingRecommend,
		limit: 256 * memory.MiB, cause: kubelet.HeapAbort, every: 4 * time.Second,
	},
	{
		name: "moved", replicas: 3, runtime: v1alpha1.RuntimeNative, mode: v1alpha1.SizingInPlaceOrEvict,
		limit: 128 * memory.MiB, cause: kubelet.KernelOOM, infeasible: true, every: 12 * time.Second,
	},
	{
		name: "faulty", replicas: 1, runtime: v1alpha1.RuntimeNative, mode: v1alpha1.SizingInPlace,
		limit: 128 * memory.MiB, cause: kubelet.OwnError, every: 3 * time.Second,
	},
}

// world is a cluster with memfit.
type world struct {
	plane        *controlPlane
	client       client.Client
	nodes        *nodes
	replicas     []*replica
	service      *link
	certificates string
	workloads    []workload

	probes
	load load
	// before holds, by workload, the earlier kills that memfit cannot count because its records were deleted.
	before map[string]int64
	// lastLed is when a replica last led, in nanoseconds since 1970.
	lastLed atomic.Int64
	// doubled is the maximum by which memfit's count exceeded the actual kills.
	doubled atomic.Int64
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// newWorld starts a cluster with two replicas of memfit, and waits until memfit knows every workload.
func newWorld(t *testing.T, f *fault) *world {
	t.Helper()
	w := &world{plane: startControlPlane(t, f.etcd...), workloads: f.workloads, before: map[string]int64{}}
	if w.workloads == nil {
		w.workloads = usual
	}
	var err error
	if w.client, err = client.New(w.plane.config, client.Options{Scheme: scheme()}); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	w.certificates = w.plane.sub(t, "webhook")
	w.plane.authority.signed(t, w.certificates, time.Now().Add(24*time.Hour))
	w.service = newLink(t, w.endpoint)
	w.installCRDs(t)
	w.installWebhooks(t)
	for _, ns := range []string{shop, "memfit-system"} {
		create(t, w.client, build.Namespace(ns))
	}
	w.nodes = newNodes(t, w.client, w.plane.authority.pair(t), w.workloads)
	w.nodes.lastLed = func() time.Time { return time.Unix(0, w.lastLed.Load()) }
	if err := w.nodes.register(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		r := w.newReplica(t, fmt.Sprintf("manager-%d", i+1), f.flags...)
		r.start(t)
		w.replicas = append(w.replicas, r)
	}
	within(t, 2*time.Minute, "memfit to be ready", func() error {
		for _, r := range w.replicas {
			if !r.ready() {
				return fmt.Errorf("%s is not ready", r.name)
			}
		}
		return nil
	})
	w.createProfiles(t)
	within(t, time.Minute, "pods to be injected", w.injects)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	all.Go(func() { w.nodes.run(running) })
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
	w.createWorkloads(t)
	all.Go(func() { w.load.run(running, w) })
	all.Go(func() { w.watchLeader(running) })
	all.Go(func() { w.probe(running) })
	return w
}

func (w *world) createWorkloads(t *testing.T) {
	t.Helper()
	for _, one := range w.workloads {
		create(t, w.client, one.deployment())
	}
	within(t, 5*time.Minute, "every workload to run and have a recommendation", func() error {
		for _, one := range w.workloads {
			if n := w.nodes.running(one.name); n < int(one.replicas) {
				return fmt.Errorf("%d of %d pods of %s run", n, one.replicas, one.name)
			}
		}
		return w.counted()
	})
}

func (w *workload) deployment() *appsv1.Deployment {
	d := build.Deployment(shop, w.name, v1alpha1.ProfileAnnotation, w.name)
	d.Spec.Replicas = &w.replicas
	amount := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(w.limit), resource.BinarySI)}
	half := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(w.limit/2), resource.BinarySI)}
	d.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: amount, Requests: half}
	return d
}

// profile returns a profile with a short watch, so that a run is short.
func (w *workload) profile() *v1alpha1.MemoryProfile {
	return build.Profile(shop, w.name, w.runtime, build.Sizing(w.mode), func(s *v1alpha1.MemoryProfileSpec) {
		s.Sizing.Limit = &v1alpha1.Bounds{Max: v1alpha1.NewMemoryQuantity(highestLimit.Quantity())}
		s.Sizing.Disruption = &v1alpha1.DisruptionSpec{Watch: &metav1.Duration{Duration: 20 * time.Second}}
		if w.rescue {
			s.Sizing.Rescue = v1alpha1.RescueEnabled
		}
	})
}

func (w *world) createProfiles(t *testing.T) {
	t.Helper()
	for _, one := range w.workloads {
		within(t, time.Minute, "the profile to be created", func() error {
			return w.client.Create(t.Context(), one.profile())
		})
	}
}

func create(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

// crds returns memfit's CRDs.
func crds(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tree.Root(), "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		all = append(all, decode(t, file, 0, &apiextensionsv1.CustomResourceDefinition{}))
	}
	return all
}

func (w *world) installCRDs(t *testing.T) {
	t.Helper()
	for _, crd := range crds(t) {
		create(t, w.client, crd)
	}
	for _, crd := range crds(t) {
		within(t, time.Minute, crd.Name+" to be served", func() error {
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			for _, c := range crd.Status.Conditions {
				if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
					return nil
				}
			}
			return errors.New("it is not established")
		})
	}
}

// decode reads one document of a YAML file.
func decode[T any](t *testing.T, path string, document int, into *T) *T {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(strings.TrimPrefix(string(text), "---\n"), "\n---\n")
	if err := yaml.Unmarshal([]byte(documents[document]), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return into
}

// installWebhooks registers memfit's webhooks like its manifests, but the API server calls them through w.service.
func (w *world) installWebhooks(t *testing.T) {
	t.Helper()
	dir := filepath.Join(tree.Root(), "config", "webhook")
	manifests := filepath.Join(dir, "manifests.yaml")
	pods := decode(t, manifests, 0, &admissionregistrationv1.MutatingWebhookConfiguration{})
	patch := decode(t, filepath.Join(dir, "pod_webhook_patch.yaml"), 0,
		&admissionregistrationv1.MutatingWebhookConfiguration{})
	p := &patch.Webhooks[0]
	pods.Webhooks[0].NamespaceSelector, pods.Webhooks[0].MatchConditions = p.NamespaceSelector, p.MatchConditions
	pods.Webhooks[0].TimeoutSeconds, pods.Webhooks[0].FailurePolicy = p.TimeoutSeconds, p.FailurePolicy
	for i := range pods.Webhooks {
		w.serveFromLink(&pods.Webhooks[i].ClientConfig)
	}
	create(t, w.client, pods)
	profiles := decode(t, manifests, 1, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	for i := range profiles.Webhooks {
		w.serveFromLink(&profiles.Webhooks[i].ClientConfig)
	}
	create(t, w.client, profiles)
}

func (w *world) serveFromLink(c *admissionregistrationv1.WebhookClientConfig) {
	url := "https://" + w.service.Addr().String() + *c.Service.Path
	c.URL, c.Service, c.CABundle = &url, nil, w.plane.authority.pem
}

// endpoint returns the webhook address of a ready replica, as a Service does.
func (w *world) endpoint() string {
	for _, r := range w.replicas {
		if r.ready() {
			return r.webhook
		}
	}
	return "127.0.0.1:1" // no server
}

// leader returns the replica that leads, or nil if none or both do.
func (w *world) leader() *replica {
	var found *replica
	for _, r := range w.replicas {
		if r.leads() {
			if found != nil {
				return nil
			}
			found = r
		}
	}
	return found
}

// watchLeader records when a replica last led.
func (w *world) watchLeader(ctx context.Context) {
	for ctx.Err() == nil {
		if slices.ContainsFunc(w.replicas, (*replica).leads) {
			w.lastLed.Store(time.Now().UnixNano())
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// other returns the other replica.
func (w *world) other(than *replica) *replica {
	for _, r := range w.replicas {
		if r != than {
			return r
		}
	}
	return nil
}

func (w *world) awaitLeader(t *testing.T) *replica {
	t.Helper()
	var found *replica
	within(t, 2*time.Minute, "one leader", func() error {
		if found = w.leader(); found == nil {
			return errors.New("none, or more than one")
		}
		return nil
	})
	return found
}

func recommendationOf(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: shop, Name: "deployment-" + name}
}

// counted returns an error unless memfit has counted every kill exactly once.
func (w *world) counted() error {
	for _, one := range w.workloads {
		counted, err := w.count(one.name)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		if truth := w.truth(one.name); counted > truth || counted < truth-w.nodes.unknown(one.name) {
			return fmt.Errorf("%s: %d kills counted of %d", one.name, counted, truth)
		}
	}
	return nil
}

// truth returns how many kills memfit should have counted by now.
func (w *world) truth(name string) int64 { return w.nodes.kills(name) - w.before[name] }

// count returns the kills that memfit reports for a workload, and records any excess in doubled.
func (w *world) count(name string) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var rec v1alpha1.MemoryRecommendation
	if err := w.client.Get(ctx, recommendationOf(name), &rec); err != nil {
		return 0, err
	}
	if over := rec.Status.OOMKills - w.truth(name); over > w.doubled.Load() {
		w.doubled.Store(over)
	}
	return rec.Status.OOMKills, nil
}

// load ends containers, at each workload's interval.
type load struct {
	paused atomic.Bool
	// excluded is a workload whose containers are not ended; nil: none.
	excluded atomic.Pointer[string]
}

func (l *load) run(ctx context.Context, w *world) {
	next := map[string]time.Time{}
	for _, one := range w.workloads {
		if one.every > 0 {
			next[one.name] = time.Now()
		}
	}
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		for _, one := range w.workloads {
			at, regular := next[one.name]
			if excluded := l.excluded.Load(); !regular || l.paused.Load() || excluded != nil && *excluded == one.name {
				continue
			}
			if time.Now().After(at) && w.nodes.endOne(one.name) {
				next[one.name] = time.Now().Add(one.every)
			}
		}
	}
}

// probes holds the results of creating pods continuously.
type probes struct {
	mu sync.Mutex
	// blocked counts the pods whose creation failed because of memfit; tried counts all attempts.
	blocked, tried int
	why            string
	slowest        time.Duration
}

// probe creates a pod as a dry run every 250 ms. If that fails, it tries a namespace without memfit's webhook, to
// exclude failures of the API server.
func (w *world) probe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(250 * time.Millisecond):
		}
		began := time.Now()
		err := w.dryRun(ctx, shop)
		took := time.Since(began)
		if err != nil {
			// Repeats both, because the API server may have stopped or started in between.
			if w.dryRun(ctx, control) != nil {
				continue
			}
			if err = w.dryRun(ctx, shop); err != nil && w.dryRun(ctx, control) != nil {
				continue
			}
		}
		w.mu.Lock()
		w.tried++
		if err != nil && ctx.Err() == nil && !noNamespace(err) {
			w.blocked++
			w.why = err.Error()
		} else {
			w.slowest = max(w.slowest, took)
		}
		w.mu.Unlock()
	}
}

// noNamespace reports whether the error is due to a namespace that is terminating or deleted.
func noNamespace(err error) bool {
	return strings.Contains(err.Error(), "being terminated") ||
		strings.Contains(err.Error(), `namespaces "shop" not found`)
}

// dryRun creates a pod as a dry run.
func (w *world) dryRun(ctx context.Context, namespace string) error {
	return w.client.Create(ctx, w.probePod(namespace), client.DryRunAll)
}

func (w *world) probePod(namespace string) *corev1.Pod {
	return build.Pod(namespace, "probe").Annotate(v1alpha1.ProfileAnnotation, w.workloads[0].name).
		Container("app", build.Limit("256Mi"), build.Request("128Mi")).Obj()
}

// injects returns an error unless the webhook injects a new pod.
func (w *world) injects() error {
	pod := w.probePod(shop)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := w.client.Create(ctx, pod, client.DryRunAll); err != nil {
		return err
	}
	if pod.Annotations[v1alpha1.InjectedAnnotation] == "" {
		return errors.New("a new pod would not be injected")
	}
	return nil
}
