// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
)

func TestSilence(t *testing.T) {
	on := func(nodes ...string) []*corev1.Pod {
		var pods []*corev1.Pod
		for _, node := range nodes {
			pods = append(pods, build.Pod("shop", "web-"+node).On(node).Obj())
		}
		return pods
	}
	since := time.Date(2026, 11, 24, 4, 5, 6, 0, time.UTC)
	silent := func(nodes ...string) []memory.Silence {
		var all []memory.Silence
		for _, node := range nodes {
			all = append(all, memory.Silence{Node: node, Error: "timeout", Since: since})
		}
		return all
	}
	const what = ` (what to do: docs/guide/troubleshooting.md, "Usage cannot be read")`
	for name, c := range map[string]struct {
		of         Snapshot
		says       string
		unmeasured bool
	}{
		"every node answers":      {Snapshot{Governed: on("a", "b")}, "", false},
		"a node of others is not": {Snapshot{Governed: on("a"), SilentNodes: silent("b")}, "", false},
		"no pod runs":             {Snapshot{Governed: on(""), SilentNodes: silent("b")}, "", false},
		"one of two": {
			Snapshot{Governed: on("a", "b", "b"), SilentNodes: silent("b", "c")},
			"usage cannot be read from 1 node: b (since 2026-11-24T04:05:06Z): timeout" + what, false,
		},
		"both, and a pod that waits": {
			Snapshot{Governed: on("a", "b", ""), SilentNodes: silent("a", "b")},
			"usage cannot be read from 2 nodes: a (since 2026-11-24T04:05:06Z): timeout; " +
				"b (since 2026-11-24T04:05:06Z): timeout" + what, true,
		},
		"nobody is asked": {
			Snapshot{Governed: on("a"), Unmeasured: true},
			"memfit runs with --usage-interval=0 and reads no usage: only OOM kills change a size", true,
		},
	} {
		if got := whyNoUsage(&c.of); got != c.says {
			t.Errorf("%s: says %q, want %q", name, got, c.says)
		}
		if got := hasNoUsage(&c.of); got != c.unmeasured {
			t.Errorf("%s: unmeasured is %v", name, got)
		}
	}
	five := whyNoUsage(&Snapshot{Governed: on("a", "b", "c", "d", "e"), SilentNodes: silent("a", "b", "c", "d", "e")})
	if !strings.Contains(five, "5 nodes: a ") || !strings.Contains(five, "timeout; and 2 more (") ||
		strings.Contains(five, "node d") {
		t.Errorf("five silent nodes are %q", five)
	}
}
