// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// bounding is something that would keep a pod of the recommended size out.
type bounding struct {
	what string
	// objects keep it out; whole is what the pod says of all its containers together.
	objects func(ns string) []client.Object
	whole   *corev1.ResourceRequirements
	// beside: there is another container, which has no limit.
	beside bool
	// template and recommended are sizes as limit, request; want is what new pods get.
	template, recommended, want [2]string
	// why is part of the reason; heap the cap that follows from the limit.
	why, heap string
	// admitted: the API server admits it, but no node could take it.
	admitted bool
}

func limitRange(kind corev1.LimitType, edit func(item *corev1.LimitRangeItem)) func(string) []client.Object {
	return func(ns string) []client.Object {
		item := corev1.LimitRangeItem{Type: kind}
		edit(&item)
		return []client.Object{
			&corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "bounds"},
				Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
			},
		}
	}
}

func ofMemory(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(q)}
}

// quota has its status from the start: no controller counts here, but the API server holds pods to it and counts them.
func quota(name corev1.ResourceName, hard, used string) func(string) []client.Object {
	return func(ns string) []client.Object {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "q"}}
		q.Spec.Hard = corev1.ResourceList{name: resource.MustParse(hard)}
		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{name: resource.MustParse(used)}}
		return []client.Object{q}
	}
}

var boundings = []bounding{
	{
		what:        "the maximum of a LimitRange",
		objects:     limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Max = ofMemory("600Mi") }),
		recommended: [2]string{"999Mi", "500Mi"}, want: [2]string{"600Mi", "500Mi"},
		why:  "limit 600Mi instead of 999Mi: LimitRange bounds has a maximum of 600Mi for a container",
		heap: "--max-old-space-size=402",
	},
	{
		what:     "its minimum",
		objects:  limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Min = ofMemory("200Mi") }),
		template: [2]string{"400Mi", "220Mi"}, recommended: [2]string{"100Mi", "50Mi"}, want: [2]string{"200Mi", "200Mi"},
		why: "LimitRange bounds has a minimum of 200Mi for a container", heap: "--max-old-space-size=147",
	},
	{
		what: "its maxLimitRequestRatio",
		objects: limitRange(
			corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.MaxLimitRequestRatio = ofMemory("2") },
		), recommended: [2]string{"900Mi", "300Mi"}, want: [2]string{"900Mi", "450Mi"},
		why:  "request 450Mi instead of 300Mi: LimitRange bounds has a maxLimitRequestRatio of 2",
		heap: "--max-old-space-size=627",
	},
	{
		what:        "the maximum of a LimitRange for pods",
		objects:     limitRange(corev1.LimitTypePod, func(i *corev1.LimitRangeItem) { i.Max = ofMemory("700Mi") }),
		recommended: [2]string{"999Mi", "500Mi"}, want: [2]string{"700Mi", "500Mi"},
		why: "LimitRange bounds has a maximum of 700Mi for a pod", heap: "--max-old-space-size=477",
	},
	{
		what:    "a quota of limits",
		objects: quota(corev1.ResourceLimitsMemory, "4Gi", "3500Mi"), recommended: [2]string{"999Mi", "500Mi"},
		want: [2]string{"256Mi", "128Mi"},
		why: "limit 256Mi instead of 999Mi, request 128Mi instead of 500Mi: ResourceQuota q leaves 596Mi of limits.memory, " +
			"but the pod would need 999Mi", heap: "--max-old-space-size=189",
	},
	{
		what:    "a quota of requests",
		objects: quota(corev1.ResourceRequestsMemory, "1Gi", "800Mi"), recommended: [2]string{"999Mi", "500Mi"},
		want: [2]string{"999Mi", "128Mi"},
		why:  "request 128Mi instead of 500Mi: ResourceQuota q leaves 224Mi of requests.memory",
		heap: "--max-old-space-size=701",
	},
	{
		what: "the size of nodes",
		objects: func(string) []client.Object {
			return []client.Object{
				&corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: "small"},
					Status:     corev1.NodeStatus{Capacity: ofMemory("1000Mi"), Allocatable: ofMemory("900Mi")},
				},
			}
		},
		recommended: [2]string{"2000Mi", "1500Mi"}, want: [2]string{"2000Mi", "128Mi"}, admitted: true,
		why:  "request 128Mi instead of 1.5Gi: the pod would request 1.5Gi, but the largest node has only 900Mi allocatable",
		heap: "--max-old-space-size=1404",
	},
	{
		what:        "the limit of the whole pod, which a container without one shares",
		whole:       &corev1.ResourceRequirements{Limits: ofMemory("512Mi"), Requests: ofMemory("300Mi")},
		beside:      true,
		recommended: [2]string{"999Mi", "500Mi"}, want: [2]string{"512Mi", "300Mi"},
		why: "the whole pod keeps its limit of 512Mi (spec.resources.limits.memory): the limit of the whole pod is " +
			"the only limit of container beside, whose need is unknown",
		heap: "--max-old-space-size=381",
	},
}

var _ = Describe("A pod whose recommended size cannot be had", func() {
	for _, mode := range []v1alpha1.SizingMode{
		v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace, v1alpha1.SizingInPlaceOrEvict,
	} {
		for _, b := range boundings {
			It("because of "+b.what+" is admitted with sizing.mode "+string(mode)+", and says why", func() { b.check(mode) })
		}
	}

	It("is planned for anew when a LimitRange changes, although its template is known", func() {
		b := boundings[0]
		set := b.workload(v1alpha1.SizingOnCreate)
		b.eventually(set, "600Mi")
		bounds := expect.Exists(ctx, api, set.Namespace, "bounds", &corev1.LimitRange{})
		bounds.Spec.Limits[0].Max = ofMemory("700Mi")
		Expect(api.Update(ctx, bounds)).To(Succeed())
		b.eventually(set, "700Mi")
		expect.Deleted(ctx, api, bounds)
		b.eventually(set, "999Mi")
	})

	It("has the defaults of a LimitRange before memfit is asked, and its maximum afterwards", func() {
		b := bounding{recommended: [2]string{"999Mi", "500Mi"},
			objects: limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) {
				i.Default, i.DefaultRequest, i.Max = ofMemory("300Mi"), ofMemory("100Mi"), ofMemory("600Mi")
			})}
		set := b.workload(v1alpha1.SizingOnCreate)
		Eventually(func(g Gomega) {
			pod := build.Pod(set.Namespace, "bare").OwnedBy(set, "apps/v1", "ReplicaSet").Container(
				"app", build.Command("node", "server.js"),
			).Obj()
			g.Expect(api.Create(ctx, pod, client.DryRunAll)).To(Succeed())
			g.Expect(pod.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("600Mi"))
			g.Expect(pod.Annotations[v1alpha1.InjectedAnnotation]).To(
				ContainSubstring(`"wasLimit":"300Mi","wasRequest":"100Mi"`),
			)
		}).MustPassRepeatedly(len(replicas)).WithTimeout(10 * time.Second).Should(Succeed())
	})

	It("keeps its template's size where the profile does not allow what the LimitRange asks for", func() {
		b := bounding{recommended: [2]string{"100Mi", "50Mi"}, template: [2]string{"400Mi", "300Mi"},
			objects: limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) {
				i.Min = ofMemory("200Mi")
			})}
		set := b.workload(v1alpha1.SizingOnCreate)
		b.eventually(set, "200Mi")
		spec := expect.Exists(ctx, api, set.Namespace, "web", &v1alpha1.MemoryProfile{})
		spec.Spec.Sizing.Limit = &v1alpha1.Bounds{Max: v1alpha1.NewMemoryQuantity(resource.MustParse("150Mi"))}
		Expect(api.Update(ctx, spec)).To(Succeed())
		b.eventually(set, "400Mi")
	})

	It("has a size as a whole that follows its containers", func() {
		b := bounding{
			whole:       &corev1.ResourceRequirements{Limits: ofMemory("512Mi"), Requests: ofMemory("300Mi")},
			recommended: [2]string{"999Mi", "500Mi"},
		}
		set := b.workload(v1alpha1.SizingOnCreate)
		b.eventually(set, "999Mi")
		pod := created(b.pod(set, "web-1").Obj())
		Expect(pod.Spec.Resources.Limits.Memory().String()).To(Equal("1255Mi"), "256Mi are left, as before")
		Expect(pod.Spec.Resources.Requests.Memory().String()).To(Equal("672Mi"))
		Expect(pod.Annotations[v1alpha1.InjectedAnnotation]).To(
			ContainSubstring(`"pod":{"limit":"1255Mi","request":"672Mi","wasLimit":"512Mi","wasRequest":"300Mi"}`),
		)
	})

	It("gets the room that a quota has, until there is none", func() {
		b := bounding{
			objects: quota(corev1.ResourceLimitsMemory, "2560Mi", "0"), template: [2]string{"256Mi", "128Mi"},
			recommended: [2]string{"1Gi", "500Mi"},
		}
		set := b.workload(v1alpha1.SizingOnCreate)
		b.eventually(set, "1Gi") // the recommendation and the quota are known
		var got []string
		for _, name := range []string{"web-1", "web-2", "web-3", "web-4"} {
			var pod *corev1.Pod
			Eventually(func() error { // what a quota has left reaches memfit a moment later; whoever creates pods tries again
				pod = b.pod(set, name).Obj()
				return api.Create(ctx, pod)
			}).WithTimeout(5 * time.Second).Should(Succeed())
			got = append(got, pod.Spec.Containers[0].Resources.Limits.Memory().String())
			Eventually(func(g Gomega) { // the next one is created when this one is counted
				for _, r := range replicas {
					bounds, err := r.room.In(ctx, set.Namespace)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(constraints.FactsOf(memory.WorkloadRef{}, nil, pod, bounds).Quota.Limits).To(
						Equal(expected(got, 2560*memory.MiB)),
					)
				}
			}).WithTimeout(5 * time.Second).Should(Succeed())
		}
		Expect(got).To(Equal([]string{"1Gi", "1Gi", "256Mi", "256Mi"}))
	})
})

// expected is what is left of a quota after pods with these limits; a byte stands for nothing.
func expected(limits []string, hard memory.Bytes) memory.Bytes {
	for _, l := range limits {
		hard = hard.Minus(memory.FromQuantity(resource.MustParse(l)))
	}
	return max(hard, 1)
}

// check asks for a new pod until memfit knows the bounds, and creates it.
func (b bounding) check(mode v1alpha1.SizingMode) {
	GinkgoHelper()
	set := b.workload(mode)
	sized := b.pod(set, "by-hand").Annotate(v1alpha1.InjectAnnotation, "false").Container(
		"app", build.Limit(b.recommended[0]), build.Request(b.recommended[1]),
	).Obj()
	if refused := api.Create(ctx, sized, client.DryRunAll); b.admitted {
		Expect(refused).NotTo(HaveOccurred())
	} else {
		Expect(apierrors.IsForbidden(refused) || apierrors.IsInvalid(refused)).To(
			BeTrue(), "the API server takes the recommended size: %v", refused,
		)
	}
	b.eventually(set, b.want[0])
	warnings.taken()
	pod := created(b.pod(set, "web-1").Obj())
	got := pod.Spec.Containers[0].Resources
	Expect([2]string{got.Limits.Memory().String(), got.Requests.Memory().String()}).To(Equal(b.want))
	Expect(envOf(pod)).To(HaveKeyWithValue("NODE_OPTIONS", b.heap), "the heap cap follows from the limit that it has")
	Expect(pod.Annotations[v1alpha1.InjectedAnnotation]).To(ContainSubstring(b.why))
	Expect(warnings.taken()).To(
		ContainElement(And(HavePrefix("memfit: container app does not get the recommended size: "), ContainSubstring(b.why))),
	)
}

// workload is a ReplicaSet of a governed Deployment with a recommendation, in a namespace of its own with what bounds
// it.
func (b bounding) workload(mode v1alpha1.SizingMode) *appsv1.ReplicaSet {
	GinkgoHelper()
	ns := namespace()
	profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS, build.Sizing(mode)))
	deployment := build.Deployment(ns, "web", v1alpha1.ProfileAnnotation, "web")
	expect.Applied(ctx, api, deployment)
	set := build.ReplicaSet(deployment, "5d4f8c7b9")
	expect.Applied(ctx, api, set)
	if b.objects != nil {
		for _, obj := range b.objects(ns) {
			b.bind(obj)
		}
	}
	ref := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: ns, Name: "web"}
	rec := &v1alpha1.MemoryRecommendation{}
	rec.Namespace, rec.Name, rec.OwnerReferences = ns, policy.RecordName(ref), set.OwnerReferences
	rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	rec.Status.Profile = v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "web"}
	expect.Applied(ctx, api, rec)
	limit, request := resource.MustParse(b.recommended[0]), resource.MustParse(b.recommended[1])
	rec.Status.Containers = []v1alpha1.ContainerRecommendation{
		{Container: "app", Decision: "Increase", Summary: "test", NewPods: &v1alpha1.Size{Limit: &limit, Request: &request}},
	}
	Expect(api.Status().Update(ctx, rec)).To(Succeed())
	return set
}

// bind creates an object with its status.
func (b bounding) bind(obj client.Object) {
	GinkgoHelper()
	var status func()
	switch o := obj.(type) {
	case *corev1.ResourceQuota:
		wanted := o.Status
		status = func() { o.Status = wanted }
	case *corev1.Node:
		wanted := o.Status
		status = func() { o.Status = wanted }
	}
	Expect(api.Create(ctx, obj)).To(Succeed())
	if status != nil {
		status()
		Expect(api.Status().Update(ctx, obj)).To(Succeed())
	}
	if _, node := obj.(*corev1.Node); node {
		DeferCleanup(func() { expect.Deleted(ctx, api, obj) })
	}
}

func (b bounding) pod(set *appsv1.ReplicaSet, name string) *build.PodWrapper {
	size := b.template
	if size[0] == "" {
		size = [2]string{"256Mi", "128Mi"}
	}
	w := build.Pod(set.Namespace, name).OwnedBy(set, "apps/v1", "ReplicaSet").
		Container("app", build.Limit(size[0]), build.Request(size[1]), build.Command("node", "server.js"))
	if b.whole != nil {
		w.Whole(*b.whole)
	}
	if b.beside {
		w.Container("beside")
	}
	return w
}

// eventually waits until a new pod would be admitted with that limit.
func (b bounding) eventually(set *appsv1.ReplicaSet, limit string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pod := b.pod(set, "web-1").Obj()
		g.Expect(api.Create(ctx, pod, client.DryRunAll)).To(Succeed())
		g.Expect(pod.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal(limit))
		if b.want[1] != "" && limit == b.want[0] {
			g.Expect(pod.Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal(b.want[1]))
		}
	}).MustPassRepeatedly(len(replicas)).WithTimeout(10 * time.Second).Should(Succeed())
}
