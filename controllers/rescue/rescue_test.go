// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	workloadctl "github.com/memfit/memfit/controllers/workload"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	lending "github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

const lent = memory.GiB // four times 256Mi

var _ = Describe("An alarm of an agent", func() {
	It("raises the limit of that pod, is written down first, and is reported", func() {
		w := newWorld()
		w.resize = func(context.Context, *corev1.Pod, map[string]memory.Size) error {
			Expect(w.loans()).To(HaveLen(1), "before it is sent")
			return errors.New("the API server does not answer")
		}
		Expect(w.controller.Handle(w.ctx, w.alarmed(1))).To(MatchError(ContainSubstring("does not answer")))
		Expect(w.limit()).To(Equal(256 * memory.MiB))
		w.resize = nil
		w.handled(1) // the same alarm again
		Expect(w.limit()).To(Equal(lent))
		Expect(w.loans()).To(HaveLen(1))
		Expect(w.outcomes(outcomeLent)).To(Equal(1))
		_, err := w.reconciler.Reconcile(w.ctx, w.ref())
		Expect(err).NotTo(HaveOccurred())
		Expect(w.shown("memfit_loaned_bytes")).To(Equal(lent - 256*memory.MiB))
		Expect(w.events.all()).To(ContainElement(ContainSubstring(v1alpha1.EventMemoryLoaned)))
		pod := expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
		Expect(pod.Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal("128Mi"))
	})

	It("is answered once: not when it is repeated, nor by a process that knows nothing", func() {
		w := newWorld()
		first := w.alarmed(1)
		Expect(w.controller.Handle(w.ctx, first)).To(Succeed())
		w.actuated()
		Expect(w.controller.Handle(w.ctx, first)).To(Succeed())
		Expect(w.outcomes(string(lending.Replayed))).To(Equal(1))
		w.process = w.begin()
		Expect(w.controller.Handle(w.ctx, first)).To(Succeed())
		Expect(w.limit()).To(Equal(lent))
		Expect(w.loans()).To(HaveLen(1))
	})

	It("is answered by one of two leaders", func() {
		w := newWorld()
		other, alarm := w.begin(), w.alarmed(1)
		before, err := w.controller.Pods.Pod(w.ctx, client.ObjectKeyFromObject(w.pod))
		Expect(err).NotTo(HaveOccurred())
		other.controller.Pods = stale{before} // its cache is behind
		Expect(w.controller.Handle(w.ctx, alarm)).To(Succeed())
		err = other.controller.Handle(w.ctx, alarm)
		Expect(errors.Is(err, workloadctl.ErrNotLoaded)).To(BeTrue(), "its checkpoint is another one: %v", err)
		_, err = other.reconciler.Reconcile(w.ctx, w.ref())
		Expect(err).NotTo(HaveOccurred())
		Expect(other.controller.Handle(w.ctx, alarm)).To(Succeed())
		Expect(w.limit()).To(Equal(lent))
		Expect(w.loans()).To(HaveLen(1))
	})

	It("is answered by the next leader where one ended before it sent the resize", func() {
		w := newWorld()
		w.resize = func(context.Context, *corev1.Pod, map[string]memory.Size) error { return context.Canceled }
		Expect(w.controller.Handle(w.ctx, w.alarmed(1))).NotTo(Succeed())
		w.process = w.begin() // resizes are sent again
		w.handled(1)
		Expect(w.limit()).To(Equal(lent))
		Expect(w.loans()).To(HaveLen(1))
	})

	It("is answered once for a leak, and the second time a kill is expected", func() {
		w := newWorld()
		w.handled(1)
		w.actuated()
		w.clock.SetTime(w.clock.Now().Add(3 * lending.Hold))
		w.refuses(2, lending.LeakSuspected)
		Expect(w.loans()).To(HaveLen(1))
	})

	It("takes at most half of what the change budget of the hour has left", func() {
		w := newWorld()
		w.reconciler.Totals.Budget.Bytes = 512 * memory.MiB
		w.handled(1)
		Expect(w.limit()).To(Equal(512 * memory.MiB))
		w.actuated()
		w.refuses(2, lending.ChangeBudget)
	})

	It("has at most half of what its node has left, also where those of several pods come at once", func() {
		w := newWorld()
		const left = memory.GiB
		const pods = 4
		expect.Applied(w.ctx, w.client, build.Pod(w.namespace, "other").On(w.pod.Spec.NodeName).Container(
			"big", build.Limit("16Gi"), build.Request("14720Mi")).Obj()) // five pods of 128Mi have a part of 16Gi, too
		w.atOnce(pods)
		var lent memory.Bytes
		for i := range pods {
			lent += w.limitOf(burst(i)) - 256*memory.MiB
		}
		Expect(w.outcomes(outcomeLent)).To(Equal(pods))
		Expect(lent).To(Equal(left/2 + left/4 + left/8 + left/16))
	})

	It("is the twelfth of the hour on its node at most, also where those of several pods come at once", func() {
		w := newWorld()
		w.remembers("others", lending.MaxNodeLoans-1, func(l *lending.Loan) { l.Node = w.pod.Spec.NodeName })
		w.process = w.begin()
		w.atOnce(3)
		Expect(w.outcomes(outcomeLent)).To(Equal(1))
		Expect(w.outcomes(string(lending.NodeBound))).To(Equal(2))
	})

	It("keeps its room while nobody knows whether it was written down, and gives it back when it was not", func() {
		w := newWorld()
		w.remembers("others", lending.MaxNodeLoans-1, func(l *lending.Loan) { l.Node = w.pod.Spec.NodeName })
		w.process = w.begin()
		w.reconciler.Client = refusing{w.reconciler.Client}
		Expect(w.controller.Handle(w.ctx, w.alarmed(1))).To(MatchError(errForbidden))
		w.reconciler.Client = w.client
		w.atOnce(1)
		Expect(w.outcomes(string(lending.NodeBound))).To(Equal(1))
		_, err := w.reconciler.Reconcile(w.ctx, w.ref()) // it reads the checkpoint
		Expect(err).NotTo(HaveOccurred())
		w.handled(1)
		Expect(w.outcomes(outcomeLent)).To(Equal(1))
	})

	It("gets as much as a LimitRange allows: its ratio to the request, or the pod as a whole", func() {
		three := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3")}
		whole := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("400Mi")}
		for _, item := range []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: three}, {Type: corev1.LimitTypePod, Max: whole},
		} {
			w := newWorld()
			w.ranged(item)
			w.handled(1)
			Expect(w.limit()).To(BeElementOf(384*memory.MiB, 400*memory.MiB))
			w.actuated()
			w.refuses(2, lending.LimitRange)
			Expect(w.events.all()).To(ContainElement(ContainSubstring("in LimitRange bounds (at most")))
		}
	})

	It("leaves the limit where it is while the loan lasts, whatever the workload controller decides", func() {
		w := newWorld()
		w.handled(1)
		w.actuated()
		for range 5 {
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
			_, err := w.reconciler.Reconcile(w.ctx, w.ref())
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(w.limit()).To(Equal(lent))
		Expect(w.events.all()).NotTo(ContainElement(ContainSubstring(v1alpha1.EventConflictingWriter)))
		rec := expect.Exists(w.ctx, w.client, w.namespace, w.name(), &v1alpha1.MemoryRecommendation{})
		Expect(rec.Status.RecentChanges).To(ContainElement(HaveField("Kind", v1alpha1.EventMemoryLoaned)))
	})

	It("outlives an agent that dies: the loan ends with the pod, and nothing more is lent", func() {
		w := newWorld()
		w.handled(1)
		w.actuated()
		w.clock.SetTime(w.clock.Now().Add(2 * time.Hour)) // no sample, no alarm
		_, err := w.reconciler.Reconcile(w.ctx, w.ref())
		Expect(err).NotTo(HaveOccurred())
		Expect(w.limit()).To(Equal(lent), "what is not measured is not lowered")
		w.refuses(1, lending.Replayed)
	})

	Context("is refused", func() {
		refused := func(cause lending.Cause, set func(*world), edits ...func(*v1alpha1.MemorySnapshot)) {
			GinkgoHelper()
			w := newWorld()
			set(w)
			w.refuses(1, cause, edits...)
		}
		nothing := func(*world) {}
		of := func(edit func(*v1alpha1.Alarm)) func(*v1alpha1.MemorySnapshot) {
			return func(s *v1alpha1.MemorySnapshot) { edit(s.Status.Alarm) }
		}
		ranged := func(item corev1.LimitRangeItem) func(*world) { return func(w *world) { w.ranged(item) } }
		facts := func(f constraints.Facts) func(*world) { return func(w *world) { w.facts = f } }

		It("for another instance", func() {
			refused(lending.OtherInstance, nothing, of(func(a *v1alpha1.Alarm) { a.ContainerID = "other" }))
		})
		It("when it is old, or from the future: a lying clock", func() {
			refused(lending.Stale, nothing, of(func(a *v1alpha1.Alarm) { a.Time.Time = a.Time.Add(-time.Minute) }))
			refused(lending.FromTheFuture, nothing, of(func(a *v1alpha1.Alarm) { a.Time.Time = a.Time.Add(time.Minute) }))
		})
		It("when it is forged: numbers that contradict one another, another limit", func() {
			refused(lending.Contradicted, nothing, of(func(a *v1alpha1.Alarm) { a.TimeToLimitMilliseconds = 3_600_000 }))
			refused(lending.Contradicted, nothing, of(func(a *v1alpha1.Alarm) { a.Limit = resource.MustParse("1Gi") }))
		})
		It("while a higher limit is on its way", func() {
			w := newWorld()
			w.handled(1) // and the kubelet does not report it yet
			w.refuses(2, lending.AlreadyRaised, of(func(a *v1alpha1.Alarm) {
				a.Limit, a.Demand = resource.MustParse("256Mi"), resource.MustParse("236Mi")
			}))
		})
		It("beyond what the namespace allows", func() {
			refused(lending.LimitRange, ranged(corev1.LimitRangeItem{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("260Mi")},
			}))
			refused(lending.ResourceQuota, facts(constraints.Facts{Quota: constraints.Quota{Name: "q", Limits: memory.MiB}}))
		})
		It("beyond limit.max", func() {
			w := newWorld(func(spec *v1alpha1.MemoryProfileSpec) {
				spec.Sizing.Limit = &v1alpha1.Bounds{Max: v1alpha1.NewMemoryQuantity(resource.MustParse("260Mi"))}
			})
			w.refuses(1, lending.LimitMax)
		})
		It("on a node that is full or short of memory", func() {
			refused(lending.NodeFull, func(w *world) {
				expect.Applied(w.ctx, w.client, build.Pod(w.namespace, "other").On(w.pod.Spec.NodeName).Container(
					"big", build.Limit("16Gi"), build.Request("16300Mi")).Obj())
			})
			refused(lending.NodeShortOfMemory, func(w *world) {
				node := expect.Exists(w.ctx, w.client, "", w.pod.Spec.NodeName, &corev1.Node{})
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}}
				Expect(w.client.Status().Update(w.ctx, node)).To(Succeed())
			})
		})
		It("beyond the change budget of the cluster", func() {
			refused(lending.ChangeBudget, func(w *world) {
				w.reconciler.Totals.Budget.Bytes = 2 * memory.MiB
			})
		})
		It("when the API server refuses the resize, which is not counted as a loan", func() {
			w := newWorld()
			w.resize = func(context.Context, *corev1.Pod, map[string]memory.Size) error {
				return errForbidden
			}
			w.handled(1)
			Expect(w.outcomes(outcomeRefused)).To(Equal(1))
			Expect(w.loans()).To(BeEmpty())
			Expect(w.events.all()).To(ContainElement(ContainSubstring(v1alpha1.EventOOMExpected)))
		})
		It("by a profile without rescue, and in mode Recommend", func() {
			disabled := newWorld(func(spec *v1alpha1.MemoryProfileSpec) { spec.Sizing.Rescue = v1alpha1.RescueDisabled })
			disabled.refuses(1, lending.NotEnabled)
			recommend := newWorld(func(spec *v1alpha1.MemoryProfileSpec) {
				spec.Sizing = v1alpha1.SizingSpec{Mode: v1alpha1.SizingRecommend}
			})
			recommend.refuses(1, lending.NotEnabled)
		})
		It("while the workload is paused, or another autoscaler manages its memory: the kill is expected", func() {
			paused := newWorld()
			namespace := expect.Exists(paused.ctx, paused.client, "", paused.namespace, &corev1.Namespace{})
			namespace.Annotations = map[string]string{v1alpha1.PauseAnnotation: "true"}
			Expect(paused.client.Update(paused.ctx, namespace)).To(Succeed())
			paused.refuses(1, lending.Paused)
			refused(lending.Conflict, facts(constraints.Facts{Conflict: "VerticalPodAutoscaler web"}))
		})
		It("of a container that would restart", func() {
			w := newWorld()
			expect.Deleted(w.ctx, w.client, w.pod)
			w.pod = build.Pod(w.namespace, "web").Annotate(v1alpha1.ProfileAnnotation, "web").On(w.pod.Spec.NodeName).Container(
				"app", build.Limit("256Mi"), build.Request("128Mi"), build.Started(start.Add(-time.Hour)), restarts,
			).Obj()
			expect.Applied(w.ctx, w.client, w.pod)
			w.process = w.begin()
			w.refuses(1, lending.RestartsOnResize)
		})
		It("of another pod, or by another node's agent", func() {
			w := newWorld()
			w.handled(1, func(s *v1alpha1.MemorySnapshot) { s.Status.NodeName = "elsewhere" })
			w.handled(1, func(s *v1alpha1.MemorySnapshot) { s.OwnerReferences[0].UID = "other" })
			Expect(w.outcomes(outcomeForeign)).To(Equal(2))
			Expect(w.limit()).To(Equal(256 * memory.MiB))
		})
		It("for the thirteenth time in an hour on one node", func() {
			w := newWorld()
			w.remembers("others", 12, func(l *lending.Loan) { l.Node = w.pod.Spec.NodeName })
			w.process = w.begin()
			w.refuses(1, lending.NodeBound)
		})
		It("beyond the loans that a checkpoint keeps: what is lent is neither forgotten nor lowered", func() {
			w := newWorld()
			w.remembers(w.name(), lending.MaxWorkloadLoans, func(l *lending.Loan) {
				l.Node, l.UID, l.Pod = "elsewhere", "other", "other"
			})
			w.process = w.begin()
			w.refuses(1, lending.WorkloadBound)
			Expect(w.loans()).To(HaveLen(lending.MaxWorkloadLoans))
		})
	})
})

// refusing is an API server that writes no status.
type refusing struct{ client.Client }

func (refusing) Status() client.SubResourceWriter { return refusingStatus{} }

type refusingStatus struct{ client.SubResourceWriter }

func (refusingStatus) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return errForbidden
}

// stale is a cache that does not know the last change of a pod.
type stale struct{ pod *corev1.Pod }

func (s stale) Pod(context.Context, client.ObjectKey) (*corev1.Pod, error) { return s.pod, nil }

func restarts(c *corev1.Container, _ *corev1.ContainerStatus) {
	c.ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	}
}

var errForbidden = &statusError{metav1.Status{
	Reason: metav1.StatusReasonForbidden, Code: 403, Message: "pods is forbidden",
}}

type statusError struct{ status metav1.Status }

func (e *statusError) Error() string         { return e.status.Message }
func (e *statusError) Status() metav1.Status { return e.status }
