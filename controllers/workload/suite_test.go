// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/workload"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/suite"
)

var (
	suiteContext context.Context // a spec's own ends with its BeforeEach
	config       *rest.Config
	scheme       *runtime.Scheme
	direct       client.WithWatch      // one for all, so that what the API server serves is discovered once
	clientset    *kubernetes.Clientset // likewise
)

func TestControllers(t *testing.T) {
	config, scheme = suite.Start(t)
	suiteContext = t.Context()
	var err error
	if direct, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	clientset = kubernetes.NewForConfigOrDie(config)
	RunSpecs(t, "controllers")
}

// world is one namespace of a real API server, a clock that stands still, and memfit's memory, which can be lost.
type world struct {
	ctx       context.Context
	namespace string
	clock     *clocktesting.FakePassiveClock
	client    client.WithWatch // what the test uses: never fails
	faulty    client.WithWatch // what memfit uses
	faults    *faults
	recorder  *recorder
	memfit
}

// memfit is one process.
type memfit struct {
	feed       *PodSource
	reconciler *Reconciler
}

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var namespaces int

func newWorld() *world {
	ctx := suiteContext
	namespaces++
	w := &world{
		ctx: ctx, namespace: fmt.Sprintf("world-%d", namespaces), clock: clocktesting.NewFakePassiveClock(start),
		client: direct, faults: &faults{},
	}
	w.recorder = &recorder{clock: w.clock, names: map[string]bool{}}
	w.faulty = interceptor.NewClient(direct, w.faults.funcs())
	expect.Applied(ctx, w.client, build.Namespace(w.namespace))
	w.restart()
	return w
}

// restart loses everything that is not on the API server.
func (w *world) restart() { w.memfit = w.process() }

// process is a memfit that knows nothing yet.
func (w *world) process() memfit {
	resolver := policy.New(w.client, w.client)
	Expect(resolver.Rebuild(w.ctx)).To(Succeed())
	inbox := inbox.NewInbox()
	return memfit{
		feed: &PodSource{Resolver: resolver, Inbox: inbox},
		reconciler: &Reconciler{
			Client: w.faulty, APIReader: w.faulty, Resolver: resolver, Inbox: inbox, Recorder: w.recorder,
			Metrics: NewMetrics(prometheus.NewRegistry()), Clock: w.clock, Totals: ClusterTotals{Clock: w.clock},
			Settings: Settings{CheckpointEvery: DefaultCheckpointEvery},
			Problems: &policy.Problems{}, Sources: Sources{Pods: podsOf{w.faulty}},
			Executor: Executor{
				Evict:    Evictor(clientset.CoreV1().RESTClient()),
				Resize:   Resizer(clientset.CoreV1().RESTClient()),
				MayEvict: Evictor(clientset.CoreV1().RESTClient(), metav1.DryRunAll),
				HasRight: Rights(clientset.AuthorizationV1()),
			},
		},
	}
}

// pod starts a pod of this world that a profile named "web" governs.
func (w *world) pod(name string, options ...build.ContainerOption) *build.PodWrapper {
	return build.Pod(w.namespace, name).Annotate(v1alpha1.ProfileAnnotation, "web").On("node-1").
		Container(
			"app",
			append(
				[]build.ContainerOption{build.Limit("256Mi"), build.Request("128Mi"), build.Started(start.Add(-time.Hour))},
				options...,
			)...,
		)
}

// applied writes pods to the API server and lets memfit see them, as its informer would.
func (w *world) applied(pods ...*corev1.Pod) {
	for _, pod := range pods {
		expect.Applied(w.ctx, w.client, pod)
	}
	w.seen(pods...)
}

// seen delivers the pods as they are on the API server.
func (w *world) seen(pods ...*corev1.Pod) {
	for _, pod := range pods {
		w.delivered(expect.Exists(w.ctx, w.client, pod.Namespace, pod.Name, &corev1.Pod{}))
	}
}

// delivered is what the informer makes of a pod that was read.
func (w *world) delivered(pod *corev1.Pod) {
	GinkgoHelper()
	slim, err := informers.SlimPod(pod)
	Expect(err).NotTo(HaveOccurred())
	w.feed.handler(w.ctx).OnAdd(slim, false)
}

// deleted removes pods from the API server and delivers their last state.
func (w *world) deleted(pods ...*corev1.Pod) {
	for _, pod := range pods {
		last := expect.Exists(w.ctx, w.client, pod.Namespace, pod.Name, &corev1.Pod{})
		expect.Deleted(w.ctx, w.client, pod)
		w.feed.gone(w.ctx, last)
	}
}

// profiled writes profiles and lets memfit know them.
func (w *world) profiled(profiles ...client.Object) {
	expect.Applied(w.ctx, w.client, profiles...)
	Expect(w.reconciler.Resolver.Rebuild(w.ctx)).To(Succeed())
}

func (w *world) reconcile(ref memory.WorkloadRef) error {
	_, err := w.reconciler.Reconcile(w.ctx, ref)
	return err
}

// reconciled looks at a workload, and again while the look fails, as the queue would.
func (w *world) reconciled(ref memory.WorkloadRef) *v1alpha1.MemoryRecommendation {
	GinkgoHelper()
	Eventually(
		func() error { return w.reconcile(ref) },
	).WithTimeout(5 * time.Second).WithPolling(time.Millisecond).Should(Succeed())
	return w.recommendation(ref)
}

func (w *world) recommendation(ref memory.WorkloadRef) *v1alpha1.MemoryRecommendation {
	GinkgoHelper()
	return expect.Exists(w.ctx, w.client, ref.Namespace, policy.RecordName(ref), &v1alpha1.MemoryRecommendation{})
}

func (w *world) checkpoint(ref memory.WorkloadRef) *v1alpha1.MemoryCheckpoint {
	GinkgoHelper()
	return expect.Exists(w.ctx, w.client, ref.Namespace, policy.RecordName(ref), &v1alpha1.MemoryCheckpoint{})
}

// alone is the workload of a pod without owner.
func (w *world) alone(pod string) memory.WorkloadRef {
	return memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: w.namespace, Name: pod}
}

// job is a Job that exists, whatever becomes of its pods.
func (w *world) job(name string) *batchv1.Job {
	job := build.Job(w.namespace, name, nil)
	expect.Applied(w.ctx, w.client, job)
	return job
}

func (w *world) jobRef(name string) memory.WorkloadRef {
	return memory.WorkloadRef{APIVersion: "batch/v1", Kind: "Job", Namespace: w.namespace, Name: name}
}

// passes lets time go by.
func (w *world) passes(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// expectNear: nobody would write one amount where the other stands.
func expectNear(is, was *resource.Quantity) {
	GinkgoHelper()
	before := was.AsApproximateFloat64()
	Expect(is.AsApproximateFloat64()).To(BeNumerically("~", before, before/20), "was %s, is %s", was, is)
}

// faults are errors that writes of memfit meet.
type faults struct {
	// before fails a status write that then does not happen, after one that has happened: the answer is lost.
	before, after func(obj client.Object) error
	// reading fails a read.
	reading func(obj client.Object) error
}

func (f *faults) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			if f.reading != nil {
				if err := f.reading(obj); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			if f.before != nil {
				if err := f.before(obj); err != nil {
					return err
				}
			}
			if err := c.SubResource(sub).Update(ctx, obj, opts...); err != nil {
				return err
			}
			if f.after != nil {
				return f.after(obj)
			}
			return nil
		},
	}
}

// once fails the first write of a kind of object.
func once[T client.Object](err error) func(client.Object) error {
	failed := false
	return func(obj client.Object) error {
		if _, ok := obj.(T); !ok || failed {
			return nil
		}
		failed = true
		return err
	}
}

// podsOf reads pods with a client.
type podsOf struct{ client.Reader }

func (p podsOf) Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := p.Get(ctx, key, pod); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return pod, nil
}

// recorder keeps Events, each name once, as the API server does.
type recorder struct {
	mu     sync.Mutex
	clock  clock.PassiveClock
	names  map[string]bool
	events []string
}

func (r *recorder) Record(_ memory.Workload, e workload.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.At.IsZero() {
		e.At = r.clock.Now()
	}
	for _, o := range eventObjects(&e, "test") {
		if r.names[o.Name] {
			continue
		}
		r.names[o.Name] = true
		r.events = append(
			r.events, fmt.Sprintf("%s %s/%s %s: %s", o.Type, o.Regarding.Kind, o.Regarding.Name, o.Reason, o.Note),
		)
	}
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}
