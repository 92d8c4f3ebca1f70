// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// onNodes is a DaemonSet with a pod on each of some nodes, which needs that much there.
func onNodes(t *testing.T, class string, needs ...memory.Bytes) *day {
	t.Helper()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(64, 128), 0, 0)
	d.of = memory.WorkloadRef{
		APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "shop", Name: "log", NodeClass: class,
	}
	d.replicas = len(needs)
	d.scale()
	for i, p := range d.pods {
		p.need = needs[i]
	}
	return d
}

// held is what all pods request, and the sum of their limits.
func (d *day) held() (held memory.Size) {
	for _, p := range d.pods {
		held.Request, held.Limit = held.Request+p.size.Request, held.Limit+p.size.Limit
	}
	return held
}

// TestClassesOfNodesNeedLessThanOneSize: of 60 nodes, 40 are small, where a pod needs 40Mi, and 20 are large, where it
// needs 200Mi and has a limit of 128Mi. Each class is raised or lowered to its need; one size for all is that of the
// large nodes.
func TestClassesOfNodesNeedLessThanOneSize(t *testing.T) {
	repeat := func(need memory.Bytes, n int) (all []memory.Bytes) {
		for range n {
			all = append(all, need*memory.MiB)
		}
		return all
	}
	small, large := repeat(40, 40), repeat(200, 20)
	days := map[string]*day{
		"small": onNodes(t, "small", small...), "large": onNodes(t, "large", large...),
		"all": onNodes(t, "", append(small, large...)...),
	}
	for name, d := range days {
		d.run(3*time.Minute, 10*time.Second)
		d.run(2*24*time.Hour, 30*time.Minute)
		held := d.held()
		t.Logf("%s: %d pods, one has %s, %d kills, %s requested in all, limits of %s", name, len(d.pods), d.pods[0].size,
			d.kills, held.Request, held.Limit)
	}
	one, classes := days["all"].held(), days["small"].held()
	classes.Request += days["large"].held().Request
	classes.Limit += days["large"].held().Limit
	if days["small"].kills != 0 || days["large"].kills != 20 || days["all"].kills != 20 {
		t.Errorf("kills on small nodes, on large ones, and with one size: %d, %d, %d; want 0, 20, 20",
			days["small"].kills, days["large"].kills, days["all"].kills)
	}
	if 2*classes.Request > one.Request || 9*classes.Limit > 5*one.Limit {
		t.Errorf("by class, requests are %s and limits %s, with one size %s and %s", classes.Request, classes.Limit,
			one.Request, one.Limit)
	}
}
