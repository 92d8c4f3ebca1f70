// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	workloadctl "github.com/memfit/memfit/controllers/workload"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	lending "github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/suite"
)

var (
	suiteContext context.Context
	config       *rest.Config
	scheme       *runtime.Scheme
	start        = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	worlds       int
)

func TestRescues(t *testing.T) {
	config, scheme = suite.Start(t)
	suiteContext = t.Context()
	RunSpecs(t, "rescues")
}

// world is a namespace of a real API server with one governed pod, and a clock that stands still.
type world struct {
	ctx       context.Context
	namespace string
	clock     *clocktesting.FakePassiveClock
	client    client.Client
	pod       *corev1.Pod
	facts     constraints.Facts
	process
}

// process is one memfit.
type process struct {
	reconciler *workloadctl.Reconciler
	controller *Controller
	events     *events
	registry   *prometheus.Registry
	// resize is called instead of the API server where it is set.
	resize func(context.Context, *corev1.Pod, map[string]memory.Size) error
}

func newWorld(edits ...func(*v1alpha1.MemoryProfileSpec)) *world {
	GinkgoHelper()
	direct, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	worlds++
	w := &world{
		ctx: suiteContext, namespace: fmt.Sprintf("rescue-%d", worlds), clock: clocktesting.NewFakePassiveClock(start),
		client: direct,
	}
	size := corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourceCPU: resource.MustParse("16"),
	}
	node := fmt.Sprintf("node-%d", worlds)
	expect.Applied(w.ctx, w.client, build.Namespace(w.namespace),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: corev1.NodeStatus{Allocatable: size, Capacity: size}},
		build.Profile(w.namespace, "web", v1alpha1.RuntimeNative,
			append([]func(*v1alpha1.MemoryProfileSpec){enabled}, edits...)...),
	)
	w.pod = w.runs("web", node)
	w.process = w.begin()
	return w
}

// runs is a pod of its own that the profile governs.
func (w *world) runs(name, node string) *corev1.Pod {
	GinkgoHelper()
	pod := build.Pod(w.namespace, name).Annotate(v1alpha1.ProfileAnnotation, "web").On(node).Container(
		"app", build.Limit("256Mi"), build.Request("128Mi"), build.Started(start.Add(-time.Hour)),
	).Obj()
	expect.Applied(w.ctx, w.client, pod)
	return pod
}

func enabled(spec *v1alpha1.MemoryProfileSpec) {
	spec.Sizing.Mode, spec.Sizing.Rescue = v1alpha1.SizingInPlace, v1alpha1.RescueEnabled
}

// begin starts a memfit that knows nothing but what the API server has.
func (w *world) begin() process {
	GinkgoHelper()
	resolver := policy.New(w.client, w.client)
	Expect(resolver.Rebuild(w.ctx)).To(Succeed())
	box, registry := inbox.NewInbox(), prometheus.NewRegistry()
	p := process{events: &events{}, registry: registry}
	send := workloadctl.Resizer(kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient())
	p.reconciler = &workloadctl.Reconciler{
		Client: w.client, APIReader: w.client, Resolver: resolver, Inbox: box, Recorder: p.events,
		Metrics: workloadctl.NewMetrics(registry), Clock: w.clock,
		Totals:   workloadctl.ClusterTotals{APIReader: w.client, Clock: w.clock},
		Settings: workloadctl.Settings{CheckpointEvery: workloadctl.DefaultCheckpointEvery},
		Problems: &policy.Problems{}, Sources: workloadctl.Sources{Pods: pods{w.client}},
		Executor: workloadctl.Executor{Resize: func(
			ctx context.Context, pod *corev1.Pod, sizes map[string]memory.Size,
		) error {
			if w.resize != nil {
				return w.resize(ctx, pod, sizes)
			}
			return send(ctx, pod, sizes)
		}},
	}
	Expect(p.reconciler.Totals.Load(w.ctx)).To(Succeed())
	p.controller = &Controller{
		Reader: w.client, Pods: pods{w.client}, Resolver: resolver, Inbox: box, Constraints: w, Lender: p.reconciler,
		Recorder: p.events, Metrics: NewMetrics(registry), Clock: w.clock,
	}
	box.AddPod(w.pod.UID, client.ObjectKeyFromObject(w.pod), w.ref())
	_, err := p.reconciler.Reconcile(w.ctx, w.ref())
	Expect(err).NotTo(HaveOccurred())
	return p
}

// Facts are what bounds the pod, as the test has set it.
func (w *world) Facts(
	context.Context, memory.WorkloadRef, []string, *corev1.Pod,
) (constraints.Facts, error) {
	return w.facts, nil
}

// ranged has a LimitRange bound the pod.
func (w *world) ranged(item corev1.LimitRangeItem) {
	bounds := corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "bounds"}}
	bounds.Spec.Limits = []corev1.LimitRangeItem{item}
	w.facts = constraints.FactsOf(w.ref(), nil, w.pod, constraints.Objects{LimitRanges: []corev1.LimitRange{bounds}})
}

// name is that of the workload's records.
func (w *world) name() string { return policy.RecordName(w.ref()) }

func (w *world) ref() memory.WorkloadRef {
	return memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: w.namespace, Name: "web"}
}

// alarmed is a snapshot as the agent writes it.
func (w *world) alarmed(sequence int64, edits ...func(*v1alpha1.MemorySnapshot)) *v1alpha1.MemorySnapshot {
	_, id, _ := strings.Cut(w.pod.Status.ContainerStatuses[0].ContainerID, "://")
	limit := w.limit()
	demand := limit - 20*memory.MiB
	s := &v1alpha1.MemorySnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "web",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: w.pod.UID}},
		},
		Status: v1alpha1.MemorySnapshotStatus{NodeName: w.pod.Spec.NodeName, Alarm: &v1alpha1.Alarm{
			Container: "app", ContainerID: id, Sequence: sequence, Time: metav1.NewMicroTime(w.clock.Now()),
			Demand: demand.Quantity(), Limit: limit.Quantity(), GrowthPerSecond: resource.MustParse("10Mi"),
			TimeToLimitMilliseconds: 2000,
		}},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func (w *world) handled(sequence int64, edits ...func(*v1alpha1.MemorySnapshot)) {
	GinkgoHelper()
	Expect(w.controller.Handle(w.ctx, w.alarmed(sequence, edits...))).To(Succeed())
}

// atOnce handles the alarms of n more pods of the node, each a workload of its own. What decides about them is gathered
// for all before the first is decided.
func (w *world) atOnce(n int) {
	GinkgoHelper()
	var gathered, done sync.WaitGroup
	gathered.Add(n)
	w.controller.Lender = afterAll{w.reconciler, &gathered}
	var alarms []*v1alpha1.MemorySnapshot
	for i := range n {
		pod := w.runs(burst(i), w.pod.Spec.NodeName)
		ref := w.ref()
		ref.Name = pod.Name
		w.controller.Inbox.AddPod(pod.UID, client.ObjectKeyFromObject(pod), ref)
		_, err := w.reconciler.Reconcile(w.ctx, ref)
		Expect(err).NotTo(HaveOccurred())
		alarms = append(alarms, w.alarmed(1, func(s *v1alpha1.MemorySnapshot) {
			s.Name, s.OwnerReferences[0].Name, s.OwnerReferences[0].UID = pod.Name, pod.Name, pod.UID
			_, s.Status.Alarm.ContainerID, _ = strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
		}))
	}
	for _, s := range alarms {
		done.Go(func() {
			defer GinkgoRecover()
			Expect(w.controller.Handle(w.ctx, s)).To(Succeed())
		})
	}
	done.Wait()
	w.controller.Lender = w.reconciler
}

// burst is the name of one of the pods of [world.atOnce].
func burst(i int) string { return fmt.Sprintf("burst-%d", i) }

// afterAll lends when all alarms have come.
type afterAll struct {
	Lender
	come *sync.WaitGroup
}

func (l afterAll) Lend(
	ctx context.Context, ref memory.WorkloadRef, pod *corev1.Pod, container string,
	decide func(workloadctl.LoanFacts) (*lending.Loan, string),
) error {
	l.come.Done()
	l.come.Wait()
	return l.Lender.Lend(ctx, ref, pod, container, decide)
}

// limit is what the pod asks for.
func (w *world) limit() memory.Bytes {
	GinkgoHelper()
	return w.limitOf("web")
}

func (w *world) limitOf(name string) memory.Bytes {
	GinkgoHelper()
	pod := expect.Exists(w.ctx, w.client, w.namespace, name, &corev1.Pod{})
	return memory.FromQuantity(*pod.Spec.Containers[0].Resources.Limits.Memory())
}

// actuated: the kubelet reports what the pod asks for.
func (w *world) actuated() {
	GinkgoHelper()
	pod := expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
	pod.Status.ContainerStatuses[0].Resources = &pod.Spec.Containers[0].Resources
	Expect(w.client.Status().Update(w.ctx, pod)).To(Succeed())
}

// outcomes is how many alarms had an outcome.
func (w *world) outcomes(outcome string) int {
	var m dto.Metric
	Expect(w.controller.Metrics.rescues.WithLabelValues(w.namespace, outcome).Write(&m)).To(Succeed())
	return int(m.GetCounter().GetValue())
}

// shown is what a gauge of the only container shows; 0: it is absent.
func (w *world) shown(gauge string) memory.Bytes {
	GinkgoHelper()
	families, err := w.registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == gauge {
			return memory.Bytes(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return 0
}

// loans are those in the checkpoint.
func (w *world) loans() []lending.Loan {
	GinkgoHelper()
	c := expect.Exists(w.ctx, w.client, w.namespace, w.name(), &v1alpha1.MemoryCheckpoint{})
	state := workload.NewState()
	_, err := state.Unpack(c)
	Expect(err).NotTo(HaveOccurred())
	return state.Rollout().Loans
}

// remembers writes loans into a checkpoint, which the next process reads.
func (w *world) remembers(name string, loans int64, edit func(*lending.Loan)) {
	GinkgoHelper()
	c := &v1alpha1.MemoryCheckpoint{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	Expect(client.IgnoreAlreadyExists(w.client.Create(w.ctx, c))).To(Succeed())
	c = expect.Exists(w.ctx, w.client, w.namespace, name, c)
	var state rollout.State
	for i := range loans {
		l := lending.Loan{At: start, Sequence: i}
		edit(&l)
		state.Loans = append(state.Loans, l)
	}
	sizing, err := json.Marshal(&state)
	Expect(err).NotTo(HaveOccurred())
	c.Status.Version, c.Status.Sizing = v1alpha1.CheckpointVersion, sizing
	Expect(w.client.Status().Update(w.ctx, c)).To(Succeed())
}

// refuses: an alarm is answered by no loan, for one cause, and people are told where they can act on it.
func (w *world) refuses(sequence int64, cause lending.Cause, edits ...func(*v1alpha1.MemorySnapshot)) {
	GinkgoHelper()
	before, n := w.limit(), w.outcomes(string(cause))
	w.handled(sequence, edits...)
	Expect(w.outcomes(string(cause))).To(Equal(n+1), "events: %v", w.events.all())
	Expect(w.limit()).To(Equal(before))
	expected := ContainElement(ContainSubstring(v1alpha1.EventOOMExpected))
	if (&lending.Refusal{Cause: cause}).Reported() {
		Expect(w.events.all()).To(expected)
	} else {
		Expect(w.events.all()).NotTo(expected)
	}
}

// pods are those of the API server, as the cache keeps them.
type pods struct{ client.Client }

func (p pods) Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := p.Get(ctx, key, pod); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	slim, err := informers.SlimPod(pod)
	return slim.(*corev1.Pod), err
}

// events keeps Events in words.
type events struct {
	mu  sync.Mutex
	has []string
}

func (e *events) Record(_ memory.Workload, event workload.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.has = append(e.has, event.Reason+": "+event.Note)
}

func (e *events) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.has...)
}
