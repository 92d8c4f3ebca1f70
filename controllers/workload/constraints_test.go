// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/memfit/memfit/api/v1alpha1"
	constraintwatch "github.com/memfit/memfit/controllers/constraints"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// namespaceWatch is one namespace that a Watcher of its own follows, and the queue that it fills.
type namespaceWatch struct {
	*constraintwatch.Watcher
	clock  *clocktesting.FakeClock
	asked  int // whether VerticalPodAutoscalers are served; the first time fails
	feed   *PodSource
	queued workqueue.TypedRateLimitingInterface[memory.WorkloadRef]
}

// startWatch follows the objects, as a leader does, until the spec ends.
func startWatch() *namespaceWatch {
	ctx, cancel := context.WithCancel(suiteContext)
	DeferCleanup(cancel)
	options := informers.CacheOptions()
	options.Scheme = scheme
	informers, err := cache.New(config, options)
	Expect(err).NotTo(HaveOccurred())
	go func() {
		defer GinkgoRecover()
		Expect(informers.Start(ctx)).To(Succeed())
	}()
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	Expect(err).NotTo(HaveOccurred())

	s := &namespaceWatch{
		clock: clocktesting.NewFakeClock(start), feed: &PodSource{Cache: informers, Inbox: inbox.NewInbox()},
	}
	s.queued = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[memory.WorkloadRef]())
	DeferCleanup(s.queued.ShutDown)
	s.feed.queue.Store(&s.queued)
	bounds := &constraintindex.Index{Reader: informers}
	Expect(bounds.Follow(ctx, informers)).To(Succeed())
	s.Watcher = &constraintwatch.Watcher{Cache: informers, Bounds: bounds, Clock: s.clock}
	serves := constraintwatch.ServesVPAs(asked)
	s.ServesVPAs = func(ctx context.Context) (bool, error) {
		if s.asked++; s.asked == 1 {
			return false, errors.New("the API server has just started")
		}
		return serves(ctx)
	}
	Expect(s.Follow(ctx, s.feed, s.feed.Inbox.Workloads)).To(Succeed())
	return s
}

// conflict is asked for until the cache knows.
func (s *namespaceWatch) conflict(w memory.WorkloadRef) func(Gomega) string {
	return func(g Gomega) string { return s.facts(g, w).Conflict }
}

func (s *namespaceWatch) facts(g Gomega, w memory.WorkloadRef) constraints.Facts {
	facts, err := s.Facts(suiteContext, w, []string{"app"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	return facts
}

// next is the workload that is queued next.
func (s *namespaceWatch) next() memory.WorkloadRef {
	GinkgoHelper()
	Eventually(s.queued.Len).Should(BeNumerically(">", 0))
	w, _ := s.queued.Get()
	s.queued.Done(w)
	return w
}

func (w *world) deployment() memory.WorkloadRef {
	return memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.namespace, Name: "web"}
}

func (w *world) vertical(mode string) *unstructured.Unstructured {
	u := informers.NewVPA()
	u.SetNamespace(w.namespace)
	u.SetName("web")
	u.Object["spec"] = map[string]any{
		"targetRef":    map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
		"updatePolicy": map[string]any{"updateMode": mode},
	}
	return u
}

func (w *world) horizontal(resource corev1.ResourceName) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
	h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Name: "web",
	}
	h.Spec.MaxReplicas = 3
	h.Spec.Metrics = []autoscalingv2.MetricSpec{{
		Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name:   resource,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
		},
	}}
	return h
}

var _ = Describe("What constrains a workload", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })

	It("knows what a namespace allows, what its quota leaves and how large nodes are", func() {
		amount := func(name corev1.ResourceName, q string) corev1.ResourceList {
			return corev1.ResourceList{name: resource.MustParse(q)}
		}
		ranges := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "bounds"}}
		ranges.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: amount("memory", "512Mi")}}
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "team"},
			Spec:       corev1.ResourceQuotaSpec{Hard: amount("limits.memory", "4Gi")},
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Status: corev1.NodeStatus{Allocatable: amount("memory", "7Gi")},
		}
		expect.Applied(w.ctx, w.client, ranges, quota, node)
		quota.Status = corev1.ResourceQuotaStatus{Hard: amount("limits.memory", "4Gi"), Used: amount("limits.memory", "3Gi")}
		Expect(w.client.Status().Update(w.ctx, quota)).To(Succeed(), "nobody counts on an API server alone")

		s := startWatch()
		facts := s.facts(Default, w.deployment())
		Expect(facts.Range).To(Equal(constraints.Range{Name: "bounds", Max: 512 * memory.MiB}))
		Expect(facts.Quota).To(Equal(constraints.Quota{Name: "team", Limits: memory.GiB}))
		Expect(facts.NodeSize).To(HaveKeyWithValue(w.namespace, 7*memory.GiB))
		Expect(facts.LargestNode).To(Equal(slices.Max(slices.Collect(maps.Values(facts.NodeSize)))))
		Expect(facts.Conflict).To(BeEmpty())
		Expect(
			s.facts(Default, memory.WorkloadRef{Kind: "Deployment", Namespace: "default", Name: "web"}).Range,
		).To(Equal(constraints.Range{}), "another namespace")

		s.feed.Inbox.AddPod("1", types.NamespacedName{Namespace: w.namespace, Name: "web-1"}, w.deployment())
		ranges.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: amount("memory", "256Mi")}}
		Expect(w.client.Update(w.ctx, ranges)).To(Succeed())
		Expect(s.next()).To(Equal(w.deployment()), "a LimitRange speaks to all in its namespace")
		Eventually(
			func(g Gomega) memory.Bytes { return s.facts(g, w.deployment()).Range.Max },
		).Should(Equal(256 * memory.MiB))

		expect.Deleted(w.ctx, w.client, node)
		Eventually(
			func(g Gomega) map[string]memory.Bytes { return s.facts(g, w.deployment()).NodeSize },
		).ShouldNot(HaveKey(w.namespace))
	})

	It("agrees with the API server about what a LimitRange refuses", func() {
		amount := func(q string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(q)}
		}
		ranges := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "bounds"}}
		ranges.Spec.Limits = []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Min: amount("64Mi"), Max: amount("512Mi"), MaxLimitRequestRatio: amount("2")},
			{Type: corev1.LimitTypePod, Max: amount("600Mi")},
		}
		expect.Applied(w.ctx, w.client, ranges)
		pod := build.Pod(w.namespace, "web").Container("app", build.Request("128Mi"), build.Limit("256Mi")).
			InitContainer("proxy", build.Sidecar(), build.Request("64Mi"), build.Limit("128Mi")).
			InitContainer("setup", build.Request("200Mi"), build.Limit("256Mi")).Obj()
		Expect(w.client.Create(w.ctx, pod.DeepCopy(), client.DryRunAll)).To(Succeed())

		facts := constraints.FactsOf(
			w.alone("web"), []string{"app"}, pod, constraints.Objects{LimitRanges: []corev1.LimitRange{*ranges}},
		)
		admitted, refused := 0, 0
		for _, request := range []memory.Bytes{0, 32, 64, 200, 256, 300, 472, 513} {
			for _, limit := range []memory.Bytes{64, 128, 256, 400, 472, 473, 512, 600} {
				size := memory.Size{Request: request * memory.MiB, Limit: limit * memory.MiB}
				if size.Request > size.Limit {
					continue // refused by everybody
				}
				changed := pod.DeepCopy()
				changed.Spec.Containers[0].Resources = corev1.ResourceRequirements{
					Limits: corev1.ResourceList{corev1.ResourceMemory: size.Limit.Quantity()},
				}
				if size.Request > 0 {
					changed.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: size.Request.Quantity()}
				}
				err := w.client.Create(w.ctx, changed, client.DryRunAll)
				if err == nil {
					admitted++
				} else {
					Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
					refused++
				}
				why := facts.Refusal(pod, map[string]memory.Size{"app": size})
				refuses := why != ""
				Expect(refuses).To(
					Equal(err != nil), "request %s and limit %s: memfit says %q, the API server %v", size.Request, size.Limit, why,
					err,
				)
			}
		}
		Expect(min(admitted, refused)).To(BeNumerically(">", 5), "%d admitted, %d refused", admitted, refused)
	})

	It("looks at a workload again when an autoscaler begins to scale on its memory, and when it ends", func() {
		h := w.horizontal(corev1.ResourceCPU)
		expect.Applied(w.ctx, w.client, h)
		s := startWatch()
		Expect(s.next()).To(Equal(w.deployment()), "what was there at the start")
		Expect(s.facts(Default, w.deployment()).Conflict).To(BeEmpty(), "CPU is not memory")

		h.Spec.Metrics[0].Resource.Name = corev1.ResourceMemory
		Expect(w.client.Update(w.ctx, h)).To(Succeed())
		Expect(s.next()).To(Equal(w.deployment()))
		Eventually(s.conflict(w.deployment())).Should(
			Equal("HorizontalPodAutoscaler " + w.namespace + "/web (scales on memory)"),
		)

		h.Status.CurrentReplicas = 2
		Expect(w.client.Status().Update(w.ctx, h)).To(Succeed())
		expect.Deleted(w.ctx, w.client, h)
		Expect(s.next()).To(Equal(w.deployment()))
		Eventually(s.conflict(w.deployment())).Should(BeEmpty())
		Expect(s.queued.Len()).To(BeZero(), "its status is no news")
	})

	It("takes an autoscaler of the custom resource that owns a workload for one of the workload", func() {
		d := build.Deployment(w.namespace, "web")
		d.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "opentelemetry.io/v1beta1", Kind: "OpenTelemetryCollector", Name: "gateway", UID: "1",
			Controller: new(true),
		}}
		h := w.horizontal(corev1.ResourceMemory)
		h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{
			APIVersion: "opentelemetry.io/v1beta1", Kind: "OpenTelemetryCollector", Name: "gateway",
		}
		expect.Applied(w.ctx, w.client, d, h)
		s := startWatch()
		metadata, _ := owners.Metadata(w.deployment())
		_, err := s.Cache.GetInformer(w.ctx, metadata)
		Expect(err).NotTo(HaveOccurred())
		Eventually(s.conflict(w.deployment())).Should(
			Equal("HorizontalPodAutoscaler " + w.namespace + "/web (scales on memory)"),
		)
		Expect(s.facts(Default, memory.WorkloadRef{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.namespace, Name: "api",
		}).Conflict).To(BeEmpty(), "another workload")
		expect.Deleted(w.ctx, w.client, h, d)
	})

	It("hears of VerticalPodAutoscalers once they exist, and forgets them when they are gone", func() {
		s := startWatch()
		Expect(s.asked).To(Equal(2), "until it is known whether there are any")
		Expect(s.facts(Default, w.deployment()).Conflict).To(BeEmpty(), "the API server has never heard of them")

		definition := envtest.CRDInstallOptions{
			Paths: []string{filepath.Join("testdata", "verticalpodautoscaler.yaml")}, ErrorIfPathMissing: true,
			MaxTime: 20 * time.Second, PollInterval: 50 * time.Millisecond,
		}
		_, err := envtest.InstallCRDs(config, definition)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(envtest.UninstallCRDs(config, definition)).To(Succeed()) })
		Eventually(func() error { return w.client.Create(w.ctx, w.vertical("Recreate")) }).Should(Succeed())

		s.clock.Step(constraintwatch.VPAInterval)
		Expect(s.next()).To(Equal(w.deployment()))
		Eventually(s.conflict(w.deployment())).Should(
			Equal("VerticalPodAutoscaler " + w.namespace + "/web (updateMode Recreate, controls memory)"),
		)

		off := expect.Exists(w.ctx, w.client, w.namespace, "web", informers.NewVPA())
		Expect(unstructured.SetNestedField(off.Object, "Off", "spec", "updatePolicy", "updateMode")).To(Succeed())
		Expect(w.client.Update(w.ctx, off)).To(Succeed())
		Expect(s.next()).To(Equal(w.deployment()))
		Eventually(s.conflict(w.deployment())).Should(BeEmpty())
		Expect(unstructured.SetNestedField(off.Object, "Initial", "spec", "updatePolicy", "updateMode")).To(Succeed())
		Expect(w.client.Update(w.ctx, off)).To(Succeed())
		Eventually(s.conflict(w.deployment())).Should(ContainSubstring("Initial"))

		Expect(envtest.UninstallCRDs(config, definition)).To(Succeed())
		Eventually(func() (bool, error) { return s.ServesVPAs(w.ctx) }).Should(BeFalse())
		s.clock.Step(constraintwatch.VPAInterval)
		Eventually(s.WatchesVPAs).Should(BeFalse())
		Expect(s.facts(Default, w.deployment()).Conflict).To(BeEmpty())
	})
})

// said are facts that somebody else gathered.
type said struct{ all constraints.Facts }

func (s *said) Facts(context.Context, memory.WorkloadRef, []string, *corev1.Pod) (constraints.Facts, error) {
	return s.all, nil
}

var _ = Describe("A conflict with another autoscaler", func() {
	It("stands in the recommendation until it ends, and is told once", func() {
		w := newWorld()
		w.profiled(
			build.Profile(
				w.namespace, "web", v1alpha1.RuntimeNative,
				func(s *v1alpha1.MemoryProfileSpec) { s.Sizing.Mode = v1alpha1.SizingOnCreate },
			),
		)
		facts := &said{
			all: constraints.Facts{
				Conflict: "VerticalPodAutoscaler shop/web (updateMode Recreate, controls memory)",
				Remedy:   `set its updateMode to "Off"`,
			},
		}
		w.reconciler.Sources.Constraints = facts
		pod := w.pod("web").Obj()
		w.applied(pod)

		applied := func(reason string, message any) {
			GinkgoHelper()
			w.passes(time.Minute)
			w.seen(pod)
			Expect(w.reconciled(w.alone("web")).Status.Conditions).To(
				expect.HaveCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, reason, message),
			)
		}
		applied(
			v1alpha1.ReasonConflict,
			And(ContainSubstring("managed by VerticalPodAutoscaler shop/web"), ContainSubstring(`set its updateMode to "Off"`)),
		)
		told := ContainElement(
			And(HavePrefix("Warning Pod/web Conflict: "), ContainSubstring("VerticalPodAutoscaler shop/web")),
		)
		Expect(w.recorder.all()).To(told)
		w.recorder.events = nil

		w.restart()
		w.reconciler.Sources.Constraints = facts
		facts.all.Conflict = "HorizontalPodAutoscaler shop/web (scales on memory)"
		applied(v1alpha1.ReasonConflict, ContainSubstring("HorizontalPodAutoscaler shop/web"))
		Expect(w.recorder.all()).NotTo(
			ContainElement(ContainSubstring("Conflict")), "neither a restart nor another autoscaler is a new conflict",
		)

		facts.all = constraints.Facts{}
		applied(v1alpha1.ReasonNotEnoughEvidence, Not(BeEmpty()))
		facts.all.Conflict = "VerticalPodAutoscaler shop/web (updateMode Recreate, controls memory)"
		applied(v1alpha1.ReasonConflict, Not(BeEmpty()))
		Expect(w.recorder.all()).To(told, "it is back")
	})
})

var _ = Describe("A raise after a kill", func() {
	ofPods := func(most string) constraints.Facts { // the most that a pod may have
		return constraints.FactsOf(memory.WorkloadRef{}, nil, nil, constraints.Objects{LimitRanges: []corev1.LimitRange{{
			ObjectMeta: metav1.ObjectMeta{Name: "bounds"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(most)},
			}}},
		}}})
	}
	for name, facts := range map[string]constraints.Facts{
		v1alpha1.ReasonConflict: {
			Conflict: "VerticalPodAutoscaler shop/web (updateMode Recreate, controls memory)",
			Remedy:   `set its updateMode to "Off"`,
		},
		"LimitRange":    ofPods("256Mi"),
		"ResourceQuota": {Quota: constraints.Quota{Name: "team", Limits: constraints.Exhausted}},
		"NodeTooSmall":  {Nodes: constraints.Nodes{NodeSize: map[string]memory.Bytes{"node-1": 128 * memory.MiB}}},
	} {
		It("is not tried, and says why: "+name, func() {
			w := newWorld()
			onNode(w)
			w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace()))
			w.reconciler.Sources.Constraints = &said{all: facts}
			f := newFleet(w, 1)
			Expect(f.reconcile(f.ref)).To(Succeed())
			f.killed()
			rec := f.looks()
			Expect(rec.Status.Conditions).To(
				expect.HaveCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, name, Not(BeEmpty())),
			)
			Expect(rec.Status.Containers[0].Decision).To(Equal("Increase"))
			Expect(f.limitOf(0)).To(Equal("256Mi"))
		})
	}

	It("is as large as a LimitRange allows its pod", func() {
		w := newWorld()
		onNode(w)
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace()))
		w.reconciler.Sources.Constraints = &said{all: ofPods("300Mi")}
		f := newFleet(w, 1)
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.killed()
		f.looks()
		Expect(f.limitOf(0)).To(Equal("300Mi"))
	})
})
