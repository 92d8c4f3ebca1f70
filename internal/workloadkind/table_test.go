// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workloadkind

import "testing"

func TestCalled(t *testing.T) {
	for _, tc := range []struct {
		apiVersion, kind, typed string
		want                    bool
	}{
		{"apps/v1", "Deployment", "Deployment", true},
		{"apps/v1", "Deployment", "deployments", true},
		{"apps/v1", "Deployment", "deploy", true},
		{"apps/v1", "Deployment", "deployment.apps", true},
		{"apps/v1", "Deployment", "deployments.v1.apps", true},
		{"apps/v1", "Deployment", "deployment.example.com", false},
		{"apps/v1", "Deployment", "sts", false},
		{"apps/v1", "StatefulSet", "sts", true},
		{"argoproj.io/v1alpha1", "Rollout", "rollout.argoproj.io", true},
		{"batch.volcano.sh/v1alpha1", "Job", "jobs.batch.volcano.sh", true},
		{"batch/v1", "Job", "jobs.batch.volcano.sh", false},
		{"v1", "Pod", "po", true},
		{"v1", "Pod", "pod.apps", false},
	} {
		if got := Called(tc.apiVersion, tc.kind, tc.typed); got != tc.want {
			t.Errorf("%s %s called %q: %t, want %t", tc.apiVersion, tc.kind, tc.typed, got, tc.want)
		}
	}
}

func TestOfKnowsGroups(t *testing.T) {
	if _, ok := Of("batch.volcano.sh/v1alpha1", "Job"); ok {
		t.Error("Volcano's Job is taken for the one of Kubernetes: its template is elsewhere")
	}
	if k, ok := Of("batch/v1", "CronJob"); !ok || len(k.Template) != 4 {
		t.Errorf("CronJob has its template at %v", k.Template)
	}
}
