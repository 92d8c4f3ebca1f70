// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/memfit/memfit/api/v1alpha1"
	usagectl "github.com/memfit/memfit/controllers/usage"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// kubelets answer, but for those of nodes with an error.
type kubelets struct {
	errs    map[string]error
	samples func() []memory.Sample
}

func (kubelets) Name() string { return "kubelet" }

func (k *kubelets) Read(_ context.Context, node usage.Node) (usage.Reading, error) {
	if err := k.errs[node.Name]; err != nil {
		return usage.Reading{}, err
	}
	return usage.Reading{Samples: k.samples(), Source: k.Name()}, nil
}

// fed takes note of nobody: specs reconcile by hand.
type fed struct{}

func (fed) Sampled(...memory.WorkloadRef) {}
func (fed) Enqueue(...memory.WorkloadRef) {}

var _ = Describe("A kubelet that does not answer", func() {
	var w *world
	var pod *corev1.Pod
	var source *kubelets
	var collector *usagectl.Collector
	ready := func(status metav1.ConditionStatus, reason string, message any) {
		GinkgoHelper()
		Expect(w.reconciled(w.alone("web")).Status.Conditions).To(
			expect.HaveCondition(v1alpha1.ConditionReady, status, reason, message),
		)
	}
	BeforeEach(func() {
		w = newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		for _, name := range []string{"answers", "overloaded"} {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name}}
			Expect(w.client.Create(w.ctx, node)).To(Succeed())
			DeferCleanup(func() { Expect(w.client.Delete(suiteContext, node)).To(Succeed()) })
		}
		pod = w.pod("web").On(w.namespace + "-overloaded").Obj()
		w.applied(pod)
		source = &kubelets{samples: func() []memory.Sample {
			return []memory.Sample{{
				Container: memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: "app"},
				Time:      w.clock.Now(), Started: start.Add(-time.Hour), RSS: 100 * memory.MiB, HasRSS: true, Exact: true,
			}}
		}}
		collector = &usagectl.Collector{
			Reader: w.client, Inbox: w.reconciler.Inbox, Queue: fed{},
			Metrics:   usagectl.NewMetrics(prometheus.NewRegistry()),
			Collector: &usage.Collector{Sources: []usage.Source{source}, Now: w.clock.Now},
			Clock:     clocktesting.NewFakeClock(start), // never ticks
		}
		w.reconciler.Sources.Usage = collector
		ready(metav1.ConditionFalse, v1alpha1.ReasonNotEnoughEvidence, "Hold: no memory samples yet")
	})

	It("is named with its answer by the recommendation, until it answers", func() {
		asked := w.clock.Now()
		answer := errors.New("503 Service Unavailable: too busy")
		source.errs = map[string]error{pod.Spec.NodeName: answer}
		collector.Collect(w.ctx)
		ready(metav1.ConditionFalse, v1alpha1.ReasonUsageMissing, And(
			HavePrefix("Hold: no memory samples yet; usage cannot be read from 1 node: "+pod.Spec.NodeName),
			ContainSubstring("since "+asked.UTC().Format(time.RFC3339)), ContainSubstring(answer.Error()),
			ContainSubstring(`docs/guide/troubleshooting.md, "Usage cannot be read"`),
		))

		w.passes(10 * time.Minute)
		source.errs = nil
		collector.Collect(w.ctx)
		ready(metav1.ConditionFalse, v1alpha1.ReasonNotEnoughEvidence, And(
			HavePrefix("Hold: 1 sample"), Not(ContainSubstring("cannot be read")),
		))
	})

	It("is not told while it answered a moment ago", func() {
		collector.Collect(w.ctx)
		ready(metav1.ConditionFalse, v1alpha1.ReasonNotEnoughEvidence, HavePrefix("Hold: 1 sample"))
		w.passes(2 * time.Minute)
		source.errs = map[string]error{pod.Spec.NodeName: errors.New("context deadline exceeded")}
		collector.Collect(w.ctx)
		Expect(collector.Gaps()).To(HaveLen(1), "the profile tells at once")
		ready(metav1.ConditionFalse, v1alpha1.ReasonNotEnoughEvidence, Not(ContainSubstring("cannot be read")))
		w.passes(4 * time.Minute)
		ready(metav1.ConditionFalse, v1alpha1.ReasonUsageMissing, ContainSubstring("cannot be read from 1 node"))
	})

	It("on another node is no reason", func() {
		other := w.pod("other").On(w.namespace + "-answers").Obj()
		w.applied(other)
		w.reconciled(w.alone("other"))
		source.errs = map[string]error{other.Spec.NodeName: errors.New("503 Service Unavailable")}
		collector.Collect(w.ctx)
		Expect(collector.Gaps()).To(HaveLen(1))
		ready(metav1.ConditionFalse, v1alpha1.ReasonNotEnoughEvidence, And(
			HavePrefix("Hold: 1 sample"), Not(ContainSubstring("cannot be read")),
		))
	})
})
