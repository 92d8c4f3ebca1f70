// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
)

// TestIdentity: pods without a lasting owner are a row of their own, which is found by its title and by its name.
func TestIdentity(t *testing.T) {
	recs := []v1alpha1.MemoryRecommendation{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "tekton-build-unit-4b2f"},
		Status: v1alpha1.MemoryRecommendationStatus{
			Workload: v1alpha1.WorkloadReference{
				APIVersion: "memfit.dev/v1alpha1", Kind: "PodIdentity", Name: "tekton-build-unit-4b2f",
			},
			Identity: &v1alpha1.PodIdentity{Platform: "tekton", Values: []string{"build", "unit"}}, OOMKills: 2,
		},
	}}
	var out strings.Builder
	s := NewStatus(recs, nil)
	if err := s.Write(&out, listing.Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "tekton: build/unit") {
		t.Errorf("status is\n%s", &out)
	}
	for _, asked := range []string{"tekton: build/unit", "tekton-build-unit-4b2f"} {
		if rec, err := Find(recs, asked, "namespace ci"); err != nil || rec != &recs[0] {
			t.Errorf("%q: %v", asked, err)
		}
	}
	out.Reset()
	h := HistoryOf(&recs[0])
	if err := h.Write(&out, false); err != nil || !strings.Contains(out.String(), "tekton: build/unit in namespace ci") {
		t.Errorf("history is\n%s%v", &out, err)
	}
}

// TestClassOfNodes: a DaemonSet on a class of nodes is a row of its own, which is found by its title.
func TestClassOfNodes(t *testing.T) {
	var recs []v1alpha1.MemoryRecommendation
	for _, class := range []string{"m5.large", "m5.xlarge"} {
		recs = append(recs, v1alpha1.MemoryRecommendation{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nodeclass-log-" + class},
			Status: v1alpha1.MemoryRecommendationStatus{
				Workload: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log"},
				Identity: &v1alpha1.PodIdentity{Platform: "nodeclass", Values: []string{"log", class}},
			},
		})
	}
	var out strings.Builder
	s := NewStatus(recs, nil)
	if err := s.Write(&out, listing.Options{}); err != nil {
		t.Fatal(err)
	}
	for i, title := range []string{"daemonset/log [m5.large]", "daemonset/log [m5.xlarge]"} {
		if !strings.Contains(out.String(), title) {
			t.Errorf("status lacks %q:\n%s", title, &out)
		}
		if rec, err := Find(recs, title, "namespace kube-system"); err != nil || rec != &recs[i] {
			t.Errorf("%q: %v", title, err)
		}
	}
	if _, err := Find(recs, "daemonset/log", "namespace kube-system"); err == nil {
		t.Error("one of two classes was chosen")
	}
}

// TestStepsForAClassOfNodes: for kubectl, pods of a class are those of a DaemonSet, and export has no patch for them.
func TestStepsForAClassOfNodes(t *testing.T) {
	limit := resource.MustParse("64Mi")
	rec := v1alpha1.MemoryRecommendation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nodeclass-log-m5-large"},
		Status: v1alpha1.MemoryRecommendationStatus{
			Workload: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log"},
			Identity: &v1alpha1.PodIdentity{Platform: "nodeclass", Values: []string{"log", "m5.large"}},
			Coverage: &v1alpha1.Coverage{Governed: 3, Missed: 1},
			Containers: []v1alpha1.ContainerRecommendation{
				{Container: "app", Decision: "Increase", Recommended: &v1alpha1.Size{Limit: &limit}},
			},
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "ModeRecommend", Message: "m"},
			},
		},
	}
	next := strings.Join(Rows([]v1alpha1.MemoryRecommendation{rec})[0].Next, "\n")
	if strings.Contains(next, "memfit export") ||
		!strings.Contains(next, "kubectl -n kube-system rollout restart daemonset/log") {
		t.Errorf("to do is\n%s", next)
	}
}
