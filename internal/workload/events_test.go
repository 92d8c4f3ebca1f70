// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	"github.com/memfit/memfit/internal/memory"
)

// TestRestartHint: what the event says must not lose somebody's pod.
func TestRestartHint(t *testing.T) {
	for kind, want := range map[string]string{
		"apps/v1 Deployment": "restart the workload at a convenient time (kubectl -n shop rollout restart " +
			"deployment/web)",
		"apps/v1 DaemonSet": "restart the workload at a convenient time (kubectl -n shop rollout restart " +
			"daemonset/web)",
		"batch/v1 CronJob": "the next run gets the change",
		"v1 Pod": "nothing replaces a bare Pod, so delete it and create it again at a convenient " +
			"time",
		"apps/v1 ReplicaSet":                 "delete its pods one by one at a convenient time",
		"example.com/v1 SomeoneElse":         "delete its pods one by one at a convenient time",
		"apps.kruise.io/v1beta1 StatefulSet": "delete its pods one by one at a convenient time",
		"batch.volcano.sh/v1alpha1 Job":      "the next run gets the change",
	} {
		apiVersion, name, _ := strings.Cut(kind, " ")
		ref := memory.WorkloadRef{APIVersion: apiVersion, Kind: name, Namespace: "shop", Name: "web"}
		if got := restartHint(&Snapshot{Owner: memory.Workload{Ref: ref}}); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}
