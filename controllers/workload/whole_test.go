// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// wholeFleet is a pod with 300Mi as a whole, of two containers. reported: the kubelet reports the size of the pod.
type wholeFleet struct {
	*fleet
	reported bool
}

func newWholeFleet(w *world, sizes ...build.ContainerOption) *wholeFleet {
	f := &wholeFleet{fleet: newFleet(w, 0), reported: true}
	set := build.ReplicaSet(build.Deployment(w.namespace, "web"), "5d4f8c7b9")
	set = expect.Exists(w.ctx, w.client, w.namespace, set.Name, set)
	pod := w.pod("web-0").Container("side", sizes...).OwnedBy(set, "apps/v1", "ReplicaSet").Label("app", "web").
		Whole(corev1.ResourceRequirements{
			Limits: corev1.ResourceList{
				corev1.ResourceMemory: resource.MustParse("300Mi"), corev1.ResourceCPU: resource.MustParse("2"),
			},
			Requests: corev1.ResourceList{
				corev1.ResourceMemory: resource.MustParse("300Mi"), corev1.ResourceCPU: resource.MustParse("1"),
			},
		}).Obj()
	ready(pod)
	w.applied(pod)
	f.pods = append(f.pods, pod)
	f.syncs()
	return f
}

func (f *wholeFleet) live() *corev1.Pod {
	GinkgoHelper()
	return expect.Exists(f.ctx, f.client, f.namespace, "web-0", &corev1.Pod{})
}

// syncs makes effective what the spec asks for. As in 1.36.3, the reported request of the pod stays what it was.
func (f *wholeFleet) syncs() {
	GinkgoHelper()
	pod := f.live()
	for i := range pod.Spec.Containers {
		for j := range pod.Status.ContainerStatuses {
			if s := &pod.Status.ContainerStatuses[j]; s.Name == pod.Spec.Containers[i].Name {
				s.Resources = &pod.Spec.Containers[i].Resources
			}
		}
	}
	if pod.Status.Resources = nil; f.reported {
		pod.Status.Resources = &corev1.ResourceRequirements{
			Limits:   pod.Spec.Resources.Limits,
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("300Mi")},
		}
	}
	Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())
	f.seen(pod)
}

func (f *wholeFleet) looks() *v1alpha1.MemoryRecommendation {
	GinkgoHelper()
	for range 4 {
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.syncs()
		f.passes(2 * time.Second)
	}
	return f.reconciled(f.ref)
}

// declares is what the kubelet of the node reports that it can do, without which the API server takes no such change.
func declares(w *world, features ...string) {
	node := expect.Exists(w.ctx, w.client, "", "node-1", &corev1.Node{})
	node.Status.DeclaredFeatures = features
	Expect(w.client.Status().Update(w.ctx, node)).To(Succeed())
}

func memoryOf(r *corev1.ResourceRequirements) (limit, request memory.Bytes) {
	return memory.FromQuantity(*r.Limits.Memory()), memory.FromQuantity(*r.Requests.Memory())
}

var _ = Describe("A running pod with a size as a whole", func() {
	var w *world
	BeforeEach(func() {
		w = newWorld()
		onNode(w)
		declares(w, "InPlacePodLevelResourcesVerticalScaling")
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace()))
	})
	applied := func(status metav1.ConditionStatus, reason, message string) gomegatypes.GomegaMatcher {
		return expect.HaveCondition(v1alpha1.ConditionApplied, status, reason, ContainSubstring(message))
	}

	It("grows with its containers, in one patch that a real API server takes", func() {
		f := newWholeFleet(w, build.Limit("64Mi"), build.Request("64Mi"), build.Started(start.Add(-time.Hour)))
		f.looks()
		resize, asked := w.reconciler.Executor.Resize, []map[string]memory.Size{}
		w.reconciler.Executor.Resize = func(ctx context.Context, pod *corev1.Pod, sizes map[string]memory.Size) error {
			asked = append(asked, sizes)
			return resize(ctx, pod, sizes)
		}
		f.killed()
		rec := f.looks()
		Expect(rec.Status.Conditions).To(applied(metav1.ConditionTrue, "UpToDate", ""))
		Expect(asked).To(HaveLen(1))
		Expect(asked[0]).To(And(HaveKey("app"), HaveKey("")))
		pod := f.live()
		app, _ := memoryOf(&pod.Spec.Containers[0].Resources)
		limit, request := memoryOf(pod.Spec.Resources)
		Expect(app).To(BeNumerically(">", 300*memory.MiB))
		Expect(limit).To(Equal((300-256)*memory.MiB+app), "by as much as its containers")
		Expect(request).To(BeNumerically(">=", 300*memory.MiB))
		Expect(pod.Spec.Resources.Limits.Cpu().String()).To(Equal("2"), "touched nothing else")
		Expect(w.recorder.about("Resized")).To(
			ContainElement(ContainSubstring("limit of the whole pod 300Mi to " + limit.String())),
		)
	})

	It("is not overwritten where its owner changes it at the same time", func() {
		f := newWholeFleet(w, build.Limit("64Mi"), build.Request("64Mi"))
		pod := f.live()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"limits":{"memory":"1Gi"}}}}`))
		Expect(w.client.SubResource("resize").Patch(w.ctx, f.live(), patch)).To(Succeed())
		Expect(w.reconciler.Executor.Resize(w.ctx, pod, map[string]memory.Size{
			"app": {Limit: 400 * memory.MiB}, "": {Limit: 464 * memory.MiB},
		})).To(MatchError(ErrPodChanged))
		Expect(f.live().Spec.Resources.Limits.Memory().String()).To(Equal("1Gi"))
		Expect(f.limitOf(0)).To(Equal("256Mi"))
	})

	It("gets memory where a container has none, beside the CPU of the pod", func() {
		f := newWholeFleet(w)
		Expect(w.reconciler.Executor.Resize(w.ctx, f.live(), map[string]memory.Size{
			"side": {Limit: 64 * memory.MiB, Request: 32 * memory.MiB},
			"":     {Limit: 400 * memory.MiB, Request: 350 * memory.MiB},
		})).To(Succeed())
		limit, request := memoryOf(f.live().Spec.Resources)
		Expect([]memory.Bytes{limit, request}).To(Equal([]memory.Bytes{400 * memory.MiB, 350 * memory.MiB}))
		Expect(f.live().Spec.Resources.Limits.Cpu().String()).To(Equal("2"))
	})

	It("stays as it is where nobody reports it, and so do its containers beyond it, with what to do", func() {
		f := newWholeFleet(w, build.Limit("64Mi"), build.Request("64Mi"))
		f.reported = false
		f.syncs()
		f.looks()
		f.killed()
		rec := f.looks()
		Expect(f.limitOf(0)).To(Equal("300Mi"))
		Expect(f.live().Spec.Resources.Limits.Memory().String()).To(Equal("300Mi"))
		Expect(rec.Status.Conditions).To(
			applied(metav1.ConditionFalse, "PodLimit", "InPlacePodLevelResourcesVerticalScaling"),
		)
	})

	It("is refused by an API server with the gate off, which is said with what to do", func() {
		f := newWholeFleet(w, build.Limit("64Mi"), build.Request("64Mi"))
		f.reported = false
		f.syncs()
		f.looks()
		asked := 0
		w.reconciler.Executor.Resize = func(_ context.Context, pod *corev1.Pod, _ map[string]memory.Size) error {
			asked++
			return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), pod.Name, field.ErrorList{
				field.Forbidden(field.NewPath("spec"), "resize of pods with pod-level resources is forbidden"),
			})
		}
		f.killed()
		rec := f.looks()
		Expect(rec.Status.Conditions).To(applied(metav1.ConditionFalse, "Refused", "or restart the workload"))
		Expect(asked).To(Equal(1), "not asked for hot")
	})

	It("is refused for a node that cannot, in the API server's words and without advice that leads astray", func() {
		f := newWholeFleet(w, build.Limit("64Mi"), build.Request("64Mi"))
		declares(w)
		f.looks()
		f.killed()
		rec := f.looks()
		Expect(rec.Status.Conditions).To(applied(metav1.ConditionFalse, "Refused", "requires features InPlacePodLevel"))
		Expect(rec.Status.Conditions).NotTo(applied(metav1.ConditionFalse, "Refused", "config/rbac"))
		Expect(f.limitOf(0)).To(Equal("256Mi"))
	})

	It("holds a container of which nobody knows what it needs, and stays", func() {
		f := newWholeFleet(w)
		Expect(workload.PodSizeHint(f.live())).To(BeEmpty())
		f.looks()
		f.killed()
		rec := f.looks()
		Expect(f.limitOf(0)).To(Equal("256Mi"))
		Expect(rec.Status.Conditions).To(applied(metav1.ConditionFalse, "PodLimit", "container side"))
	})
})
