// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/memfit/memfit/internal/memory"
)

// TestRestartHint: what the event says must not lose somebody's pod.
func TestRestartHint(t *testing.T) {
	for kind, want := range map[string]string{
		"Deployment":  "restart the workload when it suits you (kubectl -n shop rollout restart deployment/web)",
		"DaemonSet":   "restart the workload when it suits you (kubectl -n shop rollout restart daemonset/web)",
		"CronJob":     "the next run has it",
		"Pod":         "nothing replaces a bare Pod, so delete it and create it again when it suits you",
		"ReplicaSet":  "delete its pods one by one when it suits you",
		"SomeoneElse": "delete its pods one by one when it suits you",
	} {
		if got := restartHint(memory.WorkloadRef{Kind: kind, Namespace: "shop", Name: "web"}); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}
