// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workloadkind

import (
	"strings"
	"testing"
)

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

// TestEveryRowIsWhole goes over the table: what others take for granted of a row, and rows that contradict themselves.
func TestEveryRowIsWhole(t *testing.T) {
	seen, labels := map[string]bool{}, map[string]bool{}
	for _, k := range All() {
		t.Run(k.Name, func(t *testing.T) {
			if k.Name == "" || k.Version == "" || k.Resource != strings.ToLower(k.Name)+"s" {
				t.Errorf("%+v is not what the API calls a kind", k)
			}
			if found, ok := Of(k.APIVersion(), k.Name); !ok || found.Resource != k.Resource || Group(k.APIVersion()) != k.Group {
				t.Errorf("%s %s is not found again", k.APIVersion(), k.Name)
			}
			if key := k.Group + "/" + k.Name; seen[key] {
				t.Errorf("%s is there twice", key)
			} else {
				seen[key] = true
			}
			if n := len(k.Template); n > 0 && k.Template[n-1] != "template" || n == 0 != (k.PodNames == SameName) {
				t.Errorf("the template of its pods is at %v", k.Template)
			}
			if k.Restarts && (!k.Recreates || k.Frozen || len(k.Template) == 0) {
				t.Error("kubectl rollout restart changes the template and lets the controller replace the pods")
			}
			if k.Completes && k.Restarts {
				t.Error("a run cannot be restarted")
			}
			if k.Intermediate && !k.Watched {
				t.Error("who is above an object cannot be found without reading it")
			}
			if k.HashLabel != "" && (k.PodNames != GeneratedWithHash || labels[k.HashLabel]) {
				t.Errorf("label %s is another kind's, or the names of its pods have no hash", k.HashLabel)
			}
			labels[k.HashLabel] = true
		})
	}
	if len(seen) < 10 {
		t.Errorf("%d kinds", len(seen))
	}
}

func TestLike(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind               string
		recreates, completes, restarts bool
		names                          PodNames
	}{
		"a Deployment":                        {"apps/v1", "Deployment", true, false, true, GeneratedWithHash},
		"in another version":                  {"apps/v1beta1", "Deployment", true, false, true, GeneratedWithHash},
		"a Job":                               {"batch/v1", "Job", true, true, false, GeneratedWithIndex},
		"a bare Pod":                          {"v1", "Pod", false, false, false, SameName},
		"Volcano's Job runs to its end":       {"batch.volcano.sh/v1alpha1", "Job", true, true, false, GeneratedWithIndex},
		"OpenKruise's StatefulSet":            {"apps.kruise.io/v1beta1", "StatefulSet", true, false, false, Ordinal},
		"an Argo Rollout":                     {"argoproj.io/v1alpha1", "Rollout", true, false, false, GeneratedWithHash},
		"something nobody has heard of":       {"example.com/v1", "Database", true, false, false, UnknownNames},
		"an identity of pods, which complete": {IdentityAPIVersion, IdentityKind, true, true, false, UnknownNames},
		"nothing is restarted by kubectl":     {"example.com/v1", "Deployment", true, false, false, GeneratedWithHash},
	} {
		t.Run(name, func(t *testing.T) {
			k := Like(tc.apiVersion, tc.kind)
			if k.Recreates != tc.recreates || k.Completes != tc.completes || k.Restarts != tc.restarts ||
				k.PodNames != tc.names {
				t.Errorf("%s %s: %+v", tc.apiVersion, tc.kind, k)
			}
		})
	}
	if !Like("apps.kruise.io/v1alpha1", "DaemonSet").PerNode || Like("apps.kruise.io/v1beta1", "StatefulSet").PerNode {
		t.Error("the nodes of a DaemonSet's pods are determined before they are created, also of OpenKruise's")
	}
	if k := Like("batch.volcano.sh/v1alpha1", "Job"); len(k.Template) > 0 || k.Watched {
		t.Errorf("Volcano's Job is taken for the one of Kubernetes: %+v", k)
	}
	for kind, want := range map[string]bool{"apps/v1 Deployment": true, "batch/v1 CronJob": true, "batch/v1 Job": false,
		"v1 Pod": false, "tekton.dev/v1 TaskRun": false, IdentityAPIVersion + " " + IdentityKind: false} {
		apiVersion, name, _ := strings.Cut(kind, " ")
		if Lasting(apiVersion, name) != want {
			t.Errorf("%s outlives its pods: %t, want %t", kind, !want, want)
		}
	}
	if IsPod("example.com/v1", "Pod") || !IsPod("v1", "Pod") || IsPod("apps/v1", "Deployment") {
		t.Error("a pod is what the core group calls one")
	}
}
