// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/usage"
)

// The kernel's kill counters of living containers are in /metrics/cadvisor of the kubelet; the right is in
// config/rbac/usage_reader_role.yaml.

// DefaultKillCountersEvery is how often the counters are read: they cost a kubelet more than a summary, and they do not
// go away.
const DefaultKillCountersEvery = time.Minute

// KillCounters reads how many processes the kernel killed inside of containers that live on, which no pod status
// shows. It runs on the leader, over the nodes that host governed pods, with the backoff of [usage.Collector].
type KillCounters struct {
	// Nodes returns where governed pods run.
	Nodes *Collector
	// Counters returns those of one node's containers.
	Counters func(context.Context, usage.Node) ([]oom.Counter, error)
	// Every is the time between two readings.
	Every time.Duration
	// Clock makes the ticks.
	Clock clock.WithTicker
	// Collector asks the nodes; its source is set by Start.
	Collector *usage.Collector

	silent map[string]bool
}

// NeedLeaderElection is true: one reader per kubelet is enough.
func (k *KillCounters) NeedLeaderElection() bool { return true }

// Start reads until ctx ends.
func (k *KillCounters) Start(ctx context.Context) error {
	k.Collector.Sources = []usage.Source{k}
	every(ctx, k.Clock, k.Every, k.collect)
	return nil
}

// collect runs one cycle. That counters cannot be read is logged when it begins: kills of main processes are counted
// anyway.
func (k *KillCounters) collect(ctx context.Context) {
	nodes := slices.DeleteFunc(k.Nodes.nodes(ctx), func(n usage.Node) bool { return n.Missing != nil })
	silent := map[string]bool{}
	for _, g := range k.Collector.Each(ctx, nodes, func(usage.Node, usage.Reading) {}) {
		silent[g.Node] = true
		k.Nodes.Metrics.scrapeErrors.WithLabelValues(k.Name()).Inc()
		if !k.silent[g.Node] {
			logf.FromContext(ctx).Info(
				"Kill counters of a node cannot be read; kills of child processes there are not seen", "node", g.Node,
				"reason", g.Error,
			)
		}
	}
	k.silent = silent
}

// Name implements [usage.Source], so that nodes are asked with the same care as for usage.
func (*KillCounters) Name() string { return "kubelet-counters" }

// Read puts one node's counters into the inbox.
func (k *KillCounters) Read(ctx context.Context, node usage.Node) (usage.Reading, error) {
	counters, err := k.Counters(ctx, node)
	if err != nil {
		return usage.Reading{}, err
	}
	k.Nodes.Queue.Enqueue(slices.Collect(maps.Keys(k.Nodes.Inbox.Counted(node.Name, counters)))...)
	return usage.Reading{Source: k.Name()}, nil
}
