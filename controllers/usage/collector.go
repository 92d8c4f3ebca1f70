// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage reads the memory usage of governed containers and the OOM kills of child processes from the nodes that
// host them, at an interval, and the earlier usage of each workload once. It runs on the leader.
package usage

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// Nodes: addresses of kubelets, allocatable memory, swap, and the labels for node classes of DaemonSets.
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// memfit reads kubelets as another ServiceAccount, whose rights are in config/rbac/usage_reader_role.yaml.

// Queue is the queue of workloads.
type Queue interface {
	// Sampled queues workloads with new samples, whose step may wait.
	Sampled(...memory.WorkloadRef)
	// Enqueue queues workloads after those with urgent events.
	Enqueue(...memory.WorkloadRef)
}

// Collector reads the usage of governed containers, at an interval, from the nodes that host them.
type Collector struct {
	Reader client.Reader // of nodes
	// Inbox has the nodes of governed pods, and takes the samples.
	Inbox *inbox.Inbox
	// Queue gets the workloads with new samples or kills.
	Queue     Queue
	Collector *usage.Collector
	Metrics   *Metrics
	Interval  time.Duration // between two cycles
	Clock     clock.WithTicker
	// OnGaps is called when nodes stop or resume reporting; may be nil.
	OnGaps func(context.Context)

	mu   sync.Mutex
	gaps []memory.Silence
}

// Start runs a cycle at every interval until ctx ends. It skips intervals that pass during a cycle.
func (u *Collector) Start(ctx context.Context) error {
	ticker := u.Clock.NewTicker(u.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			u.Collect(ctx)
		}
	}
}

// Collect runs one cycle.
func (u *Collector) Collect(ctx context.Context) {
	var touched []memory.WorkloadRef
	gaps := u.Collector.Each(ctx, u.nodes(ctx), func(node usage.Node, r usage.Reading) {
		touched = slices.AppendSeq(touched, maps.Keys(u.Inbox.Sampled(node.Name, r.Samples, r.Source)))
		u.Queue.Enqueue(slices.Collect(maps.Keys(u.Inbox.Counted(node.Name, r.Counters)))...)
		if len(r.Samples) > 0 { // some sources have only counters of kills
			u.Metrics.samples.WithLabelValues(r.Source).Add(float64(len(r.Samples)))
		}
	})
	u.Queue.Sampled(touched...)
	if u.recordGaps(ctx, gaps) && u.OnGaps != nil {
		u.OnGaps(ctx)
	}
}

// nodes returns the nodes that host governed pods. A removed node is among them while its pods exist, for a minute.
func (u *Collector) nodes(ctx context.Context) (all []usage.Node) {
	for name := range u.Inbox.GovernedNodes() {
		var node corev1.Node
		n := usage.Node{Name: name}
		if n.Missing = u.Reader.Get(ctx, client.ObjectKey{Name: name}, &node); n.Missing == nil {
			n.Address, n.Port = address(&node), node.Status.DaemonEndpoints.KubeletEndpoint.Port
			swap := node.Status.NodeInfo.Swap
			n.Swaps = swap != nil && swap.Capacity != nil && *swap.Capacity > 0
		}
		all = append(all, n)
	}
	return all
}

// address returns the InternalIP, as the API server prefers, otherwise the first address.
func address(node *corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	if len(node.Status.Addresses) > 0 {
		return node.Status.Addresses[0].Address
	}
	return node.Name
}

// recordGaps stores the nodes that could not be read in this cycle, and reports whether they differ from those of the
// previous cycle. It logs each node once.
func (u *Collector) recordGaps(ctx context.Context, gaps []memory.Silence) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	open := map[string]bool{}
	for _, g := range u.gaps {
		open[g.Node] = true
	}
	changed := len(gaps) != len(open)
	for _, g := range gaps {
		u.Metrics.scrapeErrors.WithLabelValues(u.Collector.Name()).Inc()
		if !open[g.Node] {
			changed = true
			logf.FromContext(ctx).Info("A node cannot be read", "node", g.Node, "source", u.Collector.Name(), "reason", g.Error)
		}
	}
	u.gaps = gaps
	return changed
}

// Gaps returns the nodes whose usage could not be read in the last cycle. Do not change the slice.
func (u *Collector) Gaps() []memory.Silence {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gaps
}

// Metrics counts usage samples and errors.
type Metrics struct {
	scrapeErrors *prometheus.CounterVec
	samples      *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		scrapeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_usage_scrape_errors_total",
			Help: "Failed attempts to read the usage of a node, by source. memfit changes nothing because of missing usage.",
		}, []string{"source"}),
		samples: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_usage_samples_total",
			Help: "Samples of governed containers that were read, by source.",
		}, []string{"source"}),
	}
	r.MustRegister(m.scrapeErrors, m.samples)
	return m
}
