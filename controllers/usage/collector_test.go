// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/usage"
)

// silentPods is a source that answers and has no samples.
type silentPods struct{}

func (silentPods) Name() string { return "kubelet" }

func (silentPods) Read(context.Context, usage.Node) (usage.Reading, error) {
	return usage.Reading{Source: "kubelet"}, nil
}

// unqueued takes workloads and does nothing with them.
type unqueued struct{}

func (unqueued) Sampled(...memory.WorkloadRef) {}
func (unqueued) Enqueue(...memory.WorkloadRef) {}

// TestANodeThatIsRemovedIsReportedAfterFiveMinutes: on a scale-down of the cluster, pods of a DaemonSet are garbage
// collected a minute after their node. Until then each of their workloads was told that its usage cannot be read.
func TestANodeThatIsRemovedIsReportedAfterFiveMinutes(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	reader := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(node).Build()
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC))
	ref := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "shop", Name: "log"}
	box := inbox.NewInbox()
	box.AddPod("u1", types.NamespacedName{Namespace: "shop", Name: "log-1"}, ref)
	box.Govern(ref, map[types.UID]inbox.Placement{"u1": {Node: "node-1"}}, profile.Key{})
	c := &Collector{
		Reader: reader, Inbox: box, Queue: unqueued{}, Metrics: NewMetrics(prometheus.NewRegistry()), Clock: clock,
		Collector: &usage.Collector{Sources: []usage.Source{silentPods{}}, Now: clock.Now},
	}
	c.Collect(t.Context())
	if err := reader.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		after time.Duration
		want  int
	}{{time.Minute, 0}, {3 * time.Minute, 0}, {2 * time.Minute, 1}} {
		clock.Step(tc.after)
		c.Collect(t.Context())
		if lasting := memory.Lasting(c.Gaps(), clock.Now()); len(c.Gaps()) != 1 || len(lasting) != tc.want {
			t.Errorf("%s later: %d gaps, %d of them lasting, want 1 and %d", tc.after, len(c.Gaps()), len(lasting), tc.want)
		}
	}
}

// askedNodes is a source that notes what it is asked for.
type askedNodes struct {
	silentPods
	nodes []usage.Node
}

func (a *askedNodes) Read(_ context.Context, n usage.Node) (usage.Reading, error) {
	a.nodes = append(a.nodes, n)
	return usage.Reading{}, nil
}

func TestSourcesKnowWhetherANodeSwaps(t *testing.T) {
	for capacity, want := range map[int64]bool{-1: false, 0: false, 1 << 30: true} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
		if capacity >= 0 {
			node.Status.NodeInfo.Swap = &corev1.NodeSwapStatus{Capacity: &capacity}
		}
		ref := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "shop", Name: "log"}
		box, source := inbox.NewInbox(), &askedNodes{}
		box.AddPod("u1", types.NamespacedName{Namespace: "shop", Name: "log-1"}, ref)
		box.Govern(ref, map[types.UID]inbox.Placement{"u1": {Node: "node-1"}}, profile.Key{})
		c := &Collector{
			Reader: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(node).Build(), Inbox: box,
			Queue: unqueued{}, Metrics: NewMetrics(prometheus.NewRegistry()),
			Collector: &usage.Collector{Sources: []usage.Source{source}, Now: time.Now},
		}
		c.Collect(t.Context())
		if len(source.nodes) != 1 || source.nodes[0].Swaps != want {
			t.Errorf("swap of %d bytes: asked for %+v", capacity, source.nodes)
		}
	}
}
