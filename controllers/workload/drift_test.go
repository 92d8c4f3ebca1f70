// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/controllers/usage"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// fleet is a Deployment with ready pods.
type fleet struct {
	*world
	ref  memory.WorkloadRef
	pods []*corev1.Pod
	born time.Time
}

func newFleet(w *world, n int, annotations ...string) *fleet {
	f := &fleet{
		world: w, ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.namespace, Name: "web"},
		born: start.Add(-time.Hour),
	}
	deployment := build.Deployment(w.namespace, "web", annotations...)
	expect.Applied(w.ctx, w.client, deployment)
	set := build.ReplicaSet(deployment, "5d4f8c7b9")
	expect.Applied(w.ctx, w.client, set)
	for i := range n {
		f.add(set, fmt.Sprintf("web-%d", i))
	}
	return f
}

// scaled says how many pods there are to be.
func (f *fleet) scaled(to int32) {
	GinkgoHelper()
	d := expect.Exists(f.ctx, f.client, f.namespace, "web", &appsv1.Deployment{})
	d.Spec.Replicas = &to
	Expect(f.client.Update(f.ctx, d)).To(Succeed())
}

func (f *fleet) add(set *appsv1.ReplicaSet, name string) { f.addWith(set, name) }

func (f *fleet) addWith(set *appsv1.ReplicaSet, name string, options ...build.ContainerOption) {
	pod := f.pod(name, options...).OwnedBy(set, "apps/v1", "ReplicaSet").Label("app", "web").Obj()
	ready(pod)
	f.applied(pod)
	f.pods = append(f.pods, pod)
}

// ready makes a pod and its containers ready.
func ready(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = true
	}
}

// uses lets each pod use so many MiB for one interval, and looks.
func (f *fleet) uses(mib ...memory.Bytes) {
	GinkgoHelper()
	f.passes(15 * time.Second)
	for i, use := range mib {
		f.sampledSince(f.pods[i], use*memory.MiB, f.born)
	}
	Expect(f.reconcile(f.ref)).To(Succeed())
}

// leaks lets the first pod climb from 20 to 236 MiB of its 256 within seven minutes, while the others stay.
func (f *fleet) leaks() {
	GinkgoHelper()
	for i := range 28 {
		mib := []memory.Bytes{memory.Bytes(20 + 8*i)}
		for range f.pods[1:] {
			mib = append(mib, 40)
		}
		f.uses(mib...)
	}
}

// left are the names of the pods that exist.
func (f *fleet) left() []string {
	var list corev1.PodList
	Expect(f.client.List(f.ctx, &list, client.InNamespace(f.namespace))).To(Succeed())
	var names []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// sum is of all series of a metric, or of those with one of the descriptions.
func sum(c prometheus.Collector, of ...*prometheus.Desc) float64 {
	series := make(chan prometheus.Metric, 100)
	c.Collect(series)
	close(series)
	total := 0.0
	for m := range series {
		if len(of) > 0 && !slices.Contains(of, m.Desc()) {
			continue
		}
		var value dto.Metric
		Expect(m.Write(&value)).To(Succeed())
		total += value.GetGauge().GetValue() + value.GetCounter().GetValue()
	}
	return total
}

// drift is the message of the condition.
func (f *fleet) drift() string {
	for _, c := range f.recommendation(f.ref).Status.Conditions {
		if c.Type == v1alpha1.ConditionDriftDetected {
			return c.Message
		}
	}
	return ""
}

// restarts are the pods whose eviction counts as a restart in the checkpoint.
func (f *fleet) restarts() (pods []string) {
	var state rollout.State
	if stored := f.checkpoint(f.ref).Status.Sizing; len(stored) > 0 {
		Expect(json.Unmarshal(stored, &state)).To(Succeed())
	}
	for _, r := range state.PastRestarts {
		pods = append(pods, r.Pod)
	}
	if st := state.Restart; st != nil && st.Phase == rollout.Evicting {
		pods = append(pods, st.Pod)
	}
	return pods
}

func restarting(spec *v1alpha1.MemoryProfileSpec) { spec.Drift.Action = v1alpha1.DriftRestart }

func (r *recorder) about(reason string) []string {
	var some []string
	for _, e := range r.all() {
		if strings.Contains(e, " "+reason+": ") {
			some = append(some, e)
		}
	}
	return some
}

var _ = Describe("A pod that leaks", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })
	profiled := func(edits ...func(*v1alpha1.MemoryProfileSpec)) {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, edits...))
	}

	It("is reported with numbers and not restarted by default", func() {
		profiled()
		f := newFleet(w, 2)
		f.leaks()
		Expect(f.left()).To(ConsistOf("web-0", "web-1"))
		Expect(f.recommendation(f.ref).Status.Conditions).To(expect.HaveCondition(
			v1alpha1.ConditionDriftDetected, metav1.ConditionTrue, "Climb", And(
				ContainSubstring("Mi"), Not(ContainSubstring("restart")),
			)))
		Expect(f.recommendation(f.ref).Status.Containers[0].Shape.TimeToLimitMaxSeconds).To(BeNumerically(">", 0))
		Expect(w.recorder.about("DriftDetected")).To(HaveLen(1), "told once, not at every look")
		Expect(sum(w.reconciler.Metrics.gauges, w.reconciler.Metrics.gauges.of[drifting])).To(BeEquivalentTo(1))
	})

	It("is restarted before it is killed, once, with drift.action Restart", func() {
		profiled(restarting)
		f := newFleet(w, 2)
		f.leaks()
		Expect(f.left()).To(ConsistOf("web-1"))
		Expect(w.recorder.about("RestartedForMemory")).To(
			ConsistOf(HavePrefix("Normal Pod/web-0"), HavePrefix("Normal Deployment/web")),
		)
		Expect(sum(w.reconciler.Metrics.restarts)).To(BeEquivalentTo(1))
		Expect(f.restarts()).To(ConsistOf("web-0"))
		Expect(w.recommendation(f.ref).Status.OOMKills).To(BeZero())
	})

	It("is restarted in its first minutes, too, when the limit is close", func() {
		profiled(restarting)
		f := newFleet(w, 2)
		f.born = start
		f.leaks()
		Expect(f.left()).To(ConsistOf("web-1"))
		Expect(w.recorder.about("RestartedForMemory")).To(
			ContainElement(MatchRegexp(`(8[5-9]|9\d) % of its limit`)), "not while it may be warming up",
		)
	})

	It("is not restarted while the workload is paused", func() {
		profiled(restarting)
		f := newFleet(w, 2, v1alpha1.PauseAnnotation, "true")
		f.leaks()
		Expect(f.left()).To(HaveLen(2))
		Expect(f.drift()).To(ContainSubstring(v1alpha1.PauseAnnotation))
	})

	It("is not restarted when it is the last one", func() {
		profiled(restarting)
		f := newFleet(w, 1)
		f.leaks()
		Expect(f.left()).To(HaveLen(1))
		Expect(f.drift()).To(ContainSubstring("singleReplica"))
	})

	It("is not restarted while a PodDisruptionBudget refuses it", func() {
		profiled(restarting)
		two := intstr.FromInt32(2)
		expect.Applied(w.ctx, w.client, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &two, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
		})
		f := newFleet(w, 2)
		f.leaks()
		Expect(f.left()).To(HaveLen(2))
		Expect(f.drift()).To(ContainSubstring("PodDisruptionBudget"))
		Expect(w.recorder.about("RestartedForMemory")).To(BeEmpty())
		w.passes(DefaultCheckpointEvery)
		Expect(w.reconcile(f.ref)).To(Succeed())
		Expect(f.restarts()).To(BeEmpty(), "what did not happen does not count")
	})

	It("is not evicted while another pod is missing", func() {
		profiled(restarting)
		f := newFleet(w, 2)
		f.scaled(3)
		f.leaks()
		Expect(f.left()).To(HaveLen(2))
		Expect(f.drift()).To(ContainSubstring("1 of 3 pods unavailable or missing"))
		Expect(w.recorder.about("RestartedForMemory")).To(BeEmpty())
	})

	It("is not evicted twice when the result of the first eviction is unknown", func() {
		profiled(restarting)
		f := newFleet(w, 3)
		attempts := 0
		w.reconciler.Executor.Evict = func(context.Context, *corev1.Pod) error {
			attempts++
			return errors.New("the connection was lost")
		}
		for i := range 28 {
			w.passes(15 * time.Second)
			w.sampled(f.pods[0], memory.Bytes(20+8*i)*memory.MiB)
			_ = w.reconcile(f.ref)
		}
		Expect(attempts).To(Equal(1))
		Expect(f.restarts()).To(ConsistOf("web-0"), "noted before it was tried")
		w.restart()
		w.profiled()
		w.seen(f.pods...)
		f.leaks()
		Expect(f.left()).To(HaveLen(3), "the cool-down holds, also for a memfit that has just started")
	})
})

var _ = Describe("An outlier replica", func() {
	It("is named on itself, once, and in the condition", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNodeJS))
		f := newFleet(w, 5)
		for range 6 {
			f.uses(100, 104, 98, 240, 101)
		}
		Expect(f.recommendation(f.ref).Status.Containers[0].Shape.OutlierPods).To(Equal([]string{"web-3"}))
		Expect(
			f.recommendation(f.ref).Status.Conditions,
		).To(expect.HaveCondition(v1alpha1.ConditionDriftDetected, metav1.ConditionTrue,
			v1alpha1.ReasonOutlierReplica, ContainSubstring("Pod web-3 uses 240Mi, its replicas 101Mi")))
		Expect(w.recorder.about("OutlierReplica")).To(ConsistOf(HavePrefix("Warning Pod/web-3")))

		w.restart()
		w.profiled()
		w.seen(f.pods...)
		for range 6 {
			f.uses(100, 104, 98, 240, 101)
		}
		Expect(w.recorder.about("OutlierReplica")).To(HaveLen(1), "a restart of memfit is no news")
	})
})

var _ = Describe("The kernel's kill counter", func() {
	It("tells of children that died in a container that lives on", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		pod := w.pod("web").Obj()
		w.applied(pod)
		w.reconciled(w.alone("web"))
		read := func(count int64) *v1alpha1.MemoryRecommendation {
			w.passes(time.Minute)
			w.reconciler.Inbox.Counted("node-1", []memory.KillCounter{{
				Container:   memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: "app"},
				ContainerID: "app-0", Count: count, Time: w.clock.Now(),
			}})
			return w.reconciled(w.alone("web"))
		}
		Expect(read(0).Status.OOMKills).To(BeZero())
		Expect(read(2).Status.OOMKills).To(BeEquivalentTo(2))
		Expect(read(2).Status.OOMKills).To(BeEquivalentTo(2), "the same reading once more")
		Expect(read(3).Status.RecentOOMKills[0].Kind).To(Equal("ChildProcess"))
	})
})

var _ = Describe("What a workload used before memfit saw it", func() {
	It("is the evidence it starts with, and the samples since are not lost", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		pod := w.pod("web").Obj()
		ref := memory.ContainerRef{Namespace: w.namespace, Pod: "web-before", UID: "before", Container: "app"}
		release := make(chan struct{})
		past := &usage.HistoryBackfill{
			Name: "prometheus", Span: 48 * time.Hour, Clock: clock.RealClock{},
			Read: func(_ context.Context, _ memory.WorkloadRef, _, to time.Time, take func(memory.Sample)) error {
				<-release
				for at := start.Add(-48 * time.Hour); at.Before(start); at = at.Add(5 * time.Minute) {
					take(memory.Sample{
						Container: ref, Time: at, RSS: 90 * memory.MiB, HasRSS: true, Exact: true, WorkingSet: 95 * memory.MiB,
					})
				}
				return nil
			},
		}
		w.reconciler.Sources.History = past
		ctx, stop := context.WithCancel(w.ctx)
		stopped := make(chan error)
		go func() { stopped <- past.Start(ctx) }()
		DeferCleanup(func() {
			stop()
			Expect(<-stopped).To(Succeed())
		})
		w.applied(pod)
		Expect(w.reconciled(w.alone("web")).Status.Containers[0].Recommended).To(BeNil(), "it is on its way")
		w.passes(time.Minute)
		w.sampled(pod, 100*memory.MiB)
		Expect(w.reconcile(w.alone("web"))).To(Succeed())

		close(release)
		var c v1alpha1.ContainerRecommendation
		Eventually(func(g Gomega) {
			w.feed.Enqueue(w.alone("web")) // as the backfill does when it is there
			c = w.reconciled(w.alone("web")).Status.Containers[0]
			g.Expect(c.Recommended).NotTo(BeNil(), c.Summary)
		}).WithTimeout(10 * time.Second).Should(Succeed())
		Expect(c.Evidence).To(And(HaveField("Source", "kubelet"), HaveField("HistorySource", "prometheus")))
		Expect(c.Evidence.Samples).To(BeEquivalentTo(48*12 + 1))
		Expect(c.Evidence.PeakRSS.String()).To(Equal("100Mi"), "seen after the past was asked for")
	})
})
