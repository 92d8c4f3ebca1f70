// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// limitOf is the limit that the pod's spec asks for.
func (f *fleet) limitOf(i int) string {
	GinkgoHelper()
	pod := expect.Exists(f.ctx, f.client, f.namespace, f.pods[i].Name, &corev1.Pod{})
	return pod.Spec.Containers[0].Resources.Limits.Memory().String()
}

// actuated makes effective what the specs ask for, as a kubelet would, and lets memfit see it.
func (f *fleet) actuated() {
	GinkgoHelper()
	for _, p := range f.pods {
		pod := expect.Exists(f.ctx, f.client, f.namespace, p.Name, &corev1.Pod{})
		status, spec := &pod.Status.ContainerStatuses[0], &pod.Spec.Containers[0]
		if !equality.Semantic.DeepEqual(status.Resources, &spec.Resources) {
			status.Resources = &spec.Resources
			Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())
		}
		f.delivered(pod)
	}
}

// killed ends the container of the first pod as the kernel would, at the effective limit, and lets memfit see it.
func (f *fleet) killed() {
	GinkgoHelper()
	pod := expect.Exists(f.ctx, f.client, f.namespace, f.pods[0].Name, &corev1.Pod{})
	status := &pod.Status.ContainerStatuses[0]
	status.RestartCount++
	status.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "OOMKilled", ExitCode: 137, StartedAt: metav1.NewTime(f.clock.Now().Add(-time.Minute)),
		FinishedAt: metav1.NewTime(f.clock.Now()), ContainerID: "containerd://" + pod.Name + status.ContainerID,
	}}
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(f.clock.Now())}}
	status.ContainerID += "x"
	Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())
	f.seen(f.pods[0])
}

// looks reconciles the workload, what the kubelet makes of it included, until nothing is left to do now. This kubelet
// does not say what a pod's cgroup has, so that each raise takes 3 s until it is told as done.
func (f *fleet) looks() *v1alpha1.MemoryRecommendation {
	GinkgoHelper()
	for range 7 {
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.actuated()
		f.passes(2 * time.Second)
	}
	return f.reconciled(f.ref)
}

// livesFor a time on 40 MiB in each pod, a look every half hour.
func (f *fleet) livesFor(d time.Duration) {
	GinkgoHelper()
	for range d / (30 * time.Minute) {
		f.actuated()
		f.passes(30 * time.Minute)
		for _, p := range f.pods {
			f.sampledSince(p, 40*memory.MiB, f.born)
		}
		Expect(f.reconcile(f.ref)).To(Succeed())
	}
}

func inPlace(edits ...func(*v1alpha1.SizingSpec)) func(*v1alpha1.MemoryProfileSpec) {
	return func(spec *v1alpha1.MemoryProfileSpec) {
		spec.Sizing.Mode = v1alpha1.SizingInPlace
		for _, edit := range edits {
			edit(&spec.Sizing)
		}
	}
}

// onNode makes the node of all pods. The API server takes no resize without one, nor beyond what it can hold.
func onNode(w *world) {
	room := corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourceCPU: resource.MustParse("16"),
	}
	expect.Applied(
		w.ctx, w.client,
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Allocatable: room, Capacity: room},
		},
	)
	DeferCleanup(func() { expect.Deleted(w.ctx, w.client, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}) })
}

// answersOf is a Prometheus that answers at once: how many series a query has.
type answersOf map[string]int

func (a answersOf) Result(_ context.Context, query string, now time.Time) rollout.QueryResult {
	return rollout.QueryResult{At: now, Series: a[query]}
}

func orEvict(s *v1alpha1.SizingSpec) { s.Mode = v1alpha1.SizingInPlaceOrEvict }

var _ = Describe("A recommendation that is applied", func() {
	var w *world
	BeforeEach(func() {
		w = newWorld()
		onNode(w)
	})
	profiled := func(edits ...func(*v1alpha1.SizingSpec)) {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace(edits...)))
	}
	applied := func(status metav1.ConditionStatus, reason string, message any) gomegatypes.GomegaMatcher {
		return expect.HaveCondition(v1alpha1.ConditionApplied, status, reason, message)
	}

	It("raises the limit of every pod after a kill in one, and touches nothing else", func() {
		profiled()
		f := newFleet(w, 2)
		Expect(f.reconcile(f.ref)).To(Succeed())
		before := expect.Exists(w.ctx, w.client, w.namespace, "web-0", &corev1.Pod{})
		f.killed()
		rec := f.looks()
		for i := range f.pods {
			limit := resource.MustParse(f.limitOf(i))
			Expect(limit.Cmp(*rec.Status.Containers[0].Recommended.Limit)).To(BeZero())
			Expect(limit.Cmp(resource.MustParse("256Mi"))).To(BeNumerically(">", 0))
		}
		after := expect.Exists(w.ctx, w.client, w.namespace, "web-0", &corev1.Pod{})
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Spec.Containers[0].Env).To(Equal(before.Spec.Containers[0].Env))
		Expect(rec.Status.Conditions).To(applied(metav1.ConditionTrue, "UpToDate", ContainSubstring("Every running pod")))
		Expect(w.recorder.about("Resized")).To(HaveLen(4), "on both pods, and on the workload for each")
		Expect(rec.Status.RecentChanges).To(HaveLen(1))
		change := rec.Status.RecentChanges[0]
		Expect(change.Kind).To(Equal("Resized"))
		Expect(change.Pods).To(BeEquivalentTo(2))
		Expect(change.Change).To(HavePrefix("limit of container app 256Mi to "))
		Expect(change.Why).To(ContainSubstring("OOM-killed at 256Mi"))
	})

	It("lowers the limit of one pod first, and rolls it back after a kill", func() {
		profiled()
		f := newFleet(w, 3)
		f.livesFor(25 * time.Hour)
		rec := f.looks()
		Expect([]string{f.limitOf(1), f.limitOf(2)}).To(HaveEach("256Mi"), "web-0 is the canary")
		Expect(f.limitOf(0)).NotTo(Equal("256Mi"), "%v", rec.Status.Conditions)
		Expect(rec.Status.Conditions).To(
			applied(metav1.ConditionFalse, "Watching", ContainSubstring("web-0, the first of 3")),
		)

		By("losing everything that is not on the API server")
		w.restart()
		w.profiled()
		f.seen(f.pods...)
		f.killed()
		rec = f.looks()
		Expect([]string{f.limitOf(0), f.limitOf(1), f.limitOf(2)}).To(HaveEach("256Mi"))
		Expect(w.recorder.about("Reverted")).To(ConsistOf(
			And(
				HavePrefix("Warning Pod/web-0"),
				ContainSubstring("back from every pod that has it, to 256Mi, because pod web-0 was OOM-killed at that limit"),
			),
			HavePrefix("Warning Deployment/web")))
		Expect(rec.Status.Containers[0].Summary).To(ContainSubstring("256Mi is kept until"))
		Expect(rec.Status.Containers[0].Recommended.Limit.String()).To(Equal("256Mi"), "new pods get it, too")
		f.livesFor(48 * time.Hour)
		Expect([]string{f.limitOf(0), f.limitOf(1), f.limitOf(2)}).To(HaveEach("256Mi"))
	})

	It("rolls a lower limit back when its pod is not ready any more", func() {
		profiled()
		f := newFleet(w, 2)
		f.livesFor(25 * time.Hour)
		f.looks()
		Expect(f.limitOf(0)).NotTo(Equal("256Mi"))
		pod := expect.Exists(w.ctx, w.client, w.namespace, "web-0", &corev1.Pod{})
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
				c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
			}
		}
		pod.Status.ContainerStatuses[0].Ready = false
		Expect(w.client.Status().Update(w.ctx, pod)).To(Succeed())
		f.looks()
		Expect(f.limitOf(0)).NotTo(Equal("256Mi"), "a minute has not passed")
		w.passes(time.Minute)
		rec := f.looks()
		Expect([]string{f.limitOf(0), f.limitOf(1)}).To(HaveEach("256Mi"))
		Expect(w.recorder.about("Reverted")).To(ContainElement(And(
			HavePrefix("Warning Pod/web-0"), ContainSubstring("because pod web-0 has not been ready since"),
		)))
		Expect(rec.Status.RecentChanges).To(ContainElement(HaveField("Kind", "Reverted")))
	})

	It("waits for an answer to the owner's query, and rolls a lower limit back when it has a series", func() {
		profiled(func(s *v1alpha1.SizingSpec) { s.Disruption = &v1alpha1.DisruptionSpec{RollbackQuery: "errors > 1"} })
		f := newFleet(w, 2)
		f.livesFor(25 * time.Hour)
		Expect(f.looks().Status.Conditions).To(applied(
			metav1.ConditionFalse, v1alpha1.ReasonWaitingForQuery, ContainSubstring("without --rollback-queries"),
		))
		Expect([]string{f.limitOf(0), f.limitOf(1)}).To(HaveEach("256Mi"))
		answers := answersOf{}
		w.reconciler.Sources.Queries = answers
		f.looks()
		Expect(f.limitOf(0)).NotTo(Equal("256Mi"))
		answers["errors > 1"] = 3
		f.looks()
		Expect([]string{f.limitOf(0), f.limitOf(1)}).To(HaveEach("256Mi"))
		Expect(w.recorder.about("Reverted")).To(ContainElement(And(
			HavePrefix("Warning Pod/web-0"), ContainSubstring("because rollbackQuery returned 3 series at"),
		)))
	})

	It("lowers the others when the first has been watched", func() {
		profiled()
		f := newFleet(w, 2)
		f.livesFor(25 * time.Hour)
		f.looks()
		w.passes(11 * time.Minute)
		f.sampledSince(f.pods[1], 40*memory.MiB, f.born)
		rec := f.looks()
		Expect([]string{f.limitOf(0), f.limitOf(1)}).NotTo(ContainElement("256Mi"))
		Expect(rec.Status.Conditions).To(applied(metav1.ConditionTrue, "Watching", ContainSubstring("web-1")))
	})

	It("does nothing while memfit's own namespace is annotated with a pause, and says so", func() {
		profiled()
		expect.Applied(w.ctx, w.client, build.Namespace(w.namespace+"-home", v1alpha1.PauseAnnotation, "true"))
		w.reconciler.Resolver.WithOwnNamespace(w.namespace + "-home")
		f := newFleet(w, 1)
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.killed()
		rec := f.looks()
		Expect(f.limitOf(0)).To(Equal("256Mi"))
		Expect(rec.Status.Conditions).To(
			applied(
				metav1.ConditionFalse, "Paused", ContainSubstring("Namespace "+w.namespace+"-home, which stops every change"),
			),
		)
	})

	It("is done by a memfit that finds it written down and not done", func() {
		profiled()
		f := newFleet(w, 1)
		Expect(f.reconcile(f.ref)).To(Succeed())
		w.reconciler.Executor.Resize = func(
			context.Context, *corev1.Pod, map[string]memory.Size,
		) error {
			return errors.New("killed")
		}
		f.killed()
		Expect(f.reconcile(f.ref)).To(MatchError(ContainSubstring("killed")))
		Expect(f.limitOf(0)).To(Equal("256Mi"))
		w.restart()
		w.profiled()
		f.seen(f.pods...)
		f.looks()
		Expect(f.limitOf(0)).NotTo(Equal("256Mi"))
	})

	It("is an error of its own when it panics, and other pods are resized", func() {
		profiled()
		f := newFleet(w, 2)
		Expect(f.reconcile(f.ref)).To(Succeed())
		resize := w.reconciler.Executor.Resize
		w.reconciler.Executor.Resize = func(ctx context.Context, pod *corev1.Pod, sizes map[string]memory.Size) error {
			if pod.Name == f.pods[0].Name {
				panic("a nil map")
			}
			return resize(ctx, pod, sizes)
		}
		f.killed()
		Expect(f.reconcile(f.ref)).To(MatchError(And(
			ContainSubstring("resizing a pod of Deployment"), ContainSubstring("panic: a nil map"),
		)))
		Expect(f.limitOf(0)).To(Equal("256Mi"))
		Expect(f.limitOf(1)).NotTo(Equal("256Mi"))
		w.reconciler.Executor.Resize = resize
		f.looks()
		Expect(f.limitOf(0)).NotTo(Equal("256Mi"))
	})

	It("keeps its size when the API server refuses the resize, reports why, and does not retry immediately", func() {
		profiled()
		f := newFleet(w, 1)
		Expect(f.reconcile(f.ref)).To(Succeed())
		resize, asked := w.reconciler.Executor.Resize, 0
		w.reconciler.Executor.Resize = func(ctx context.Context, pod *corev1.Pod, _ map[string]memory.Size) error {
			asked++
			return resize(ctx, pod, map[string]memory.Size{"app": {Limit: memory.MiB, Request: memory.GiB}})
		}
		f.killed()
		f.looks()
		rec := f.looks()
		Expect(asked).To(Equal(1))
		Expect(rec.Status.Conditions).To(
			applied(metav1.ConditionFalse, "Refused", ContainSubstring("must be less than or equal to memory limit")),
		)
		Expect(w.recorder.about("ResizeRefused")).To(HaveLen(1))
	})

	It("is not asked for hot of an API server that is too old to resize, and says so", func() {
		profiled()
		f := newFleet(w, 1)
		Expect(f.reconcile(f.ref)).To(Succeed())
		asked := 0
		w.reconciler.Executor.Resize = func(_ context.Context, pod *corev1.Pod, _ map[string]memory.Size) error {
			asked++
			return apierrors.NewGenericServerResponse(
				http.StatusNotFound, "patch", corev1.Resource("pods"), pod.Name, "404 page not found", 0, true,
			)
		}
		f.killed()
		rec := f.looks()
		Expect(asked).To(Equal(1))
		Expect(rec.Status.Conditions).To(
			applied(metav1.ConditionFalse, "Refused", ContainSubstring("InPlacePodVerticalScaling")),
		)
	})

	It("restarts no container in place that a PodDisruptionBudget keeps", func() {
		profiled()
		none := intstr.FromInt32(0)
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
		}
		expect.Applied(w.ctx, w.client, budget)
		f := newFleet(w, 0)
		set := expect.Exists(w.ctx, w.client, w.namespace, "web-5d4f8c7b9", &appsv1.ReplicaSet{})
		for _, name := range []string{"web-0", "web-1"} {
			f.addWith(set, name, func(c *corev1.Container, _ *corev1.ContainerStatus) {
				c.ResizePolicy = []corev1.ContainerResizePolicy{
					{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
				}
			})
		}
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.killed()
		rec := f.looks()
		Expect([]string{f.limitOf(0), f.limitOf(1)}).To(Equal([]string{"256Mi", "256Mi"}))
		Expect(rec.Status.Conditions).To(
			applied(metav1.ConditionFalse, "DisruptionBudget", ContainSubstring("PodDisruptionBudget")),
		)
		expect.Deleted(w.ctx, w.client, budget)
		f.passes(2 * time.Minute)
		f.looks()
		f.looks()
		Expect(f.left()).To(HaveLen(2))
		Expect([]string{f.limitOf(0), f.limitOf(1)}).NotTo(ContainElement("256Mi"))
	})

	It("evicts what cannot be resized in place, when the budget allows it, and nothing else", func() {
		profiled(orEvict)
		two := intstr.FromInt32(2)
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &two, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
		}
		expect.Applied(w.ctx, w.client, budget)
		f := newFleet(w, 2)
		Expect(f.reconcile(f.ref)).To(Succeed())
		w.reconciler.Executor.Resize = func(context.Context, *corev1.Pod, map[string]memory.Size) error {
			return apierrors.NewBadRequest("Pod QOS Class may not change as a result of resizing")
		}
		f.killed()
		rec := f.looks()
		Expect(f.left()).To(HaveLen(2))
		Expect(rec.Status.Conditions).To(
			applied(metav1.ConditionFalse, "DisruptionBudget", ContainSubstring("PodDisruptionBudget")),
		)
		expect.Deleted(w.ctx, w.client, budget)
		f.passes(2 * time.Minute)
		Expect(f.reconcile(f.ref)).To(Succeed())
		Expect(f.left()).To(HaveLen(1))
		Expect(w.recorder.about("EvictedForResize")).To(HaveLen(1))
	})

	It("takes no pod away while others are not there, find no node, or nobody says how many there are to be", func() {
		profiled(orEvict)
		f := newFleet(w, 2)
		f.scaled(3)
		Expect(f.reconcile(f.ref)).To(Succeed())
		w.reconciler.Executor.Resize = func(context.Context, *corev1.Pod, map[string]memory.Size) error {
			return apierrors.NewBadRequest("Pod QOS Class may not change as a result of resizing")
		}
		f.killed()
		keeps := func(message string) {
			GinkgoHelper()
			f.passes(2 * time.Minute)
			Expect(f.looks().Status.Conditions).To(applied(metav1.ConditionFalse, "DisruptionBudget", ContainSubstring(message)))
			Expect(w.recorder.about("EvictedForResize")).To(BeEmpty())
		}
		keeps("is not evicted: 1 of 3 pods unavailable or missing, 0 of them updating: maxUnavailable is 1")

		set := expect.Exists(w.ctx, w.client, w.namespace, "web-5d4f8c7b9", &appsv1.ReplicaSet{})
		pending := build.Pod(w.namespace, "web-2").Annotate(v1alpha1.ProfileAnnotation, "web").
			OwnedBy(set, "apps/v1", "ReplicaSet").Container("app", build.Limit("256Mi"), build.Request("128Mi")).Obj()
		pending.Status.ContainerStatuses = nil
		f.applied(pending)
		keeps("1 of 3 pods unavailable")

		f.deleted(pending)
		f.scaled(2)
		w.faults.reading = func(obj client.Object) error {
			if _, asked := obj.(*unstructured.Unstructured); asked {
				return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
			}
			return nil
		}
		keeps("reading the replica count")

		w.faults.reading = nil
		f.passes(2 * time.Minute)
		Expect(f.reconcile(f.ref)).To(Succeed())
		Expect(f.left()).To(HaveLen(1))
		Expect(w.recorder.about("EvictedForResize")).To(HaveLen(1))
	})
})

var _ = Describe("An action that the API server forbids", func() {
	It("says which right is missing, and only then", func() {
		w := newWorld()
		onNode(w)
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace()))
		f := newFleet(w, 1)
		Expect(f.reconcile(f.ref)).To(Succeed())
		unprivileged := rest.CopyConfig(config)
		unprivileged.Impersonate = rest.ImpersonationConfig{UserName: "memfit", Groups: []string{"system:authenticated"}}
		typed := kubernetes.NewForConfigOrDie(unprivileged)
		w.reconciler.Executor.Resize = Resizer(typed.CoreV1().RESTClient())
		w.reconciler.Executor.HasRight = Rights(typed.AuthorizationV1())
		f.killed()
		Expect(f.looks().Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRefused,
				ContainSubstring("config/rbac/resize-pods grants the right"),
			),
		)
		for _, a := range []rollout.Action{{}, {Evict: true}, {Restart: true}} {
			has, err := Rights(typed.AuthorizationV1())(w.ctx, f.pods[0], a)
			Expect(err).NotTo(HaveOccurred())
			Expect(has).To(BeFalse())
			has, err = Rights(clientset.AuthorizationV1())(w.ctx, f.pods[0], a)
			Expect(err).NotTo(HaveOccurred())
			Expect(has).To(BeTrue())
		}
	})
})

var _ = Describe("A question whether a pod may be evicted", func() {
	It("evicts nothing, and admission webhooks know that", func() {
		w := newWorld()
		onNode(w)
		f := newFleet(w, 1)
		var asked string
		spied := rest.CopyConfig(config)
		spied.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				asked = r.URL.RawQuery
				return next.RoundTrip(r)
			})
		})
		core := kubernetes.NewForConfigOrDie(spied).CoreV1().RESTClient()
		Expect(Evictor(core, metav1.DryRunAll)(w.ctx, f.pods[0])).To(Succeed())
		Expect(asked).To(Equal("dryRun=All"))
		Expect(expect.Exists(w.ctx, w.client, w.namespace, f.pods[0].Name, &corev1.Pod{}).DeletionTimestamp).To(BeNil())

		Expect(Evictor(core)(w.ctx, f.pods[0])).To(Succeed())
		Expect(asked).To(BeEmpty())
		Expect(f.left()).To(BeEmpty())
	})
})

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

var _ = Describe("A pod that no node takes", func() {
	It("gets the request of its template back, of an API server that resizes what is not scheduled", func() {
		w := newWorld()
		onNode(w)
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingOnCreate)))
		f := newFleet(w, 1)
		set := expect.Exists(w.ctx, w.client, w.namespace, "web-5d4f8c7b9", &appsv1.ReplicaSet{})
		pending := build.Pod(w.namespace, "web-1").Annotate(v1alpha1.ProfileAnnotation, "web").
			Annotate(v1alpha1.InjectedAnnotation, `{"v":1,"profile":"MemoryProfile/web","containers":{"app":{"program":"a1",`+
				`"owner":{"request":"128Mi","limit":"256Mi"},`+
				`"size":{"request":"192Mi","wasRequest":"128Mi","limit":"512Mi","wasLimit":"256Mi"}}}}`).
			OwnedBy(set, "apps/v1", "ReplicaSet").Container("app", build.Limit("512Mi"), build.Request("192Mi")).Obj()
		pending.Status.Phase, pending.Status.ContainerStatuses = corev1.PodPending, nil
		pending.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/1 nodes are available: 1 Insufficient memory.",
		}}
		f.applied(pending)
		created := expect.Exists(w.ctx, w.client, w.namespace, "web-1", &corev1.Pod{}).CreationTimestamp
		w.clock.SetTime(created.Add(11 * time.Minute))
		f.seen(pending)
		rec := f.reconciled(f.ref)
		Expect(rec.Status.RefusedRequest.String()).To(Equal("192Mi"))
		Expect(rec.Status.Conditions).To(expect.HaveCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse,
			"Unschedulable", ContainSubstring("the request is restored, request of container app 192Mi to 128Mi")))
		now := expect.Exists(w.ctx, w.client, w.namespace, "web-1", &corev1.Pod{})
		Expect(now.Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal("128Mi"))
		Expect(now.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("512Mi"), "the limit is memfit's")
	})
})

var _ = Describe("The resize of a pod", func() {
	It("does not touch another pod of the same name", func() {
		w := newWorld()
		onNode(w)
		pod := w.pod("web").Obj()
		expect.Applied(w.ctx, w.client, pod)
		stranger := expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
		stranger.UID = types.UID("the-one-before")
		resize := Resizer(clientset.CoreV1().RESTClient())
		sizes := map[string]memory.Size{"app": {Limit: 512 * memory.MiB}}
		Expect(resize(w.ctx, stranger, sizes)).NotTo(Succeed())
		now := expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
		Expect(now.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("256Mi"))

		Expect(resize(w.ctx, now, sizes)).To(Succeed())
		now = expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
		Expect(now.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("512Mi"))
		Expect(now.Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal("128Mi"), "what is not asked for stays")
		writer, _ := workload.ResizedBy(now)
		Expect(writer).To(BeEmpty(), "memfit itself")

		By("changing its CPU, which is not memfit's business")
		resizedBy := func(resources string) (string, time.Time) {
			time.Sleep(1100 * time.Millisecond) // managed fields know seconds
			patch := client.RawPatch(types.StrategicMergePatchType,
				[]byte(`{"spec":{"containers":[{"name":"app","resources":`+resources+`}]}}`))
			Expect(w.client.SubResource("resize").Patch(w.ctx, now, patch, client.FieldOwner("vpa-updater"))).To(Succeed())
			now = expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
			slim, err := informers.SlimPod(now.DeepCopy())
			Expect(err).NotTo(HaveOccurred())
			return workload.ResizedBy(slim.(*corev1.Pod))
		}
		writer, _ = resizedBy(`{"requests":{"cpu":"20m"}}`)
		Expect(writer).To(BeEmpty(), "who changes the CPU")

		By("changing its memory")
		writer, at := resizedBy(`{"limits":{"memory":"600Mi"}}`)
		Expect(writer).To(Equal("vpa-updater"))
		Expect(at).To(BeTemporally("~", time.Now(), time.Minute))
	})
})
