// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profilestatus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/conditions"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

func recommendationOf(workload string, kills int64, c v1alpha1.Coverage) v1alpha1.MemoryRecommendation {
	rec := v1alpha1.MemoryRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-" + workload}}
	rec.Status.Workload = v1alpha1.WorkloadReference{Kind: "Deployment", Name: workload}
	rec.Status.OOMKills, rec.Status.Coverage, rec.Status.Summary = kills, &c, "Keep"
	return rec
}

func inConflictWith(name string) v1alpha1.MemoryRecommendation {
	rec := recommendationOf(name, 0, v1alpha1.Coverage{Governed: 1})
	rec.Status.Conditions = []metav1.Condition{
		conditions.Kind(v1alpha1.ConditionApplied).False(
			v1alpha1.ReasonConflict, "managed by VerticalPodAutoscaler "+name,
		),
	}
	return rec
}

// TestProfileConditions: what a tired operator reads for each state a profile can be in.
func TestProfileConditions(t *testing.T) {
	all := v1alpha1.Coverage{Governed: 3, Injected: 3}
	giving := v1alpha1.MemoryProfileSpec{Role: v1alpha1.RoleDefaults}
	defaults := declaring(giving)
	for name, tc := range map[string]struct {
		in        Input
		condition string
		status    metav1.ConditionStatus
		reason    string
		words     []string
	}{
		"nobody asks for it": {
			condition: v1alpha1.ConditionReady, status: metav1.ConditionTrue, reason: v1alpha1.ReasonNoPodsMatched,
			words: []string{"memfit.dev/profile: web"},
		},
		"its selector matches nothing": {
			in:        Input{Profile: declaring(v1alpha1.MemoryProfileSpec{Selector: &metav1.LabelSelector{}})},
			condition: v1alpha1.ConditionReady, status: metav1.ConditionTrue, reason: v1alpha1.ReasonNoPodsMatched,
			words: []string{"spec.selector"},
		},
		"it governs": {
			in:        Input{Recommendations: []v1alpha1.MemoryRecommendation{recommendationOf("web", 2, all)}},
			condition: v1alpha1.ConditionReady, status: metav1.ConditionTrue, reason: v1alpha1.ReasonEffective,
			words: []string{"3 pods", "1 workload", "2 OOM kills"},
		},
		"it cannot be applied": {
			in:        Input{Invalid: []string{"spec.selector chooses no pod"}},
			condition: v1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: v1alpha1.ReasonInvalidSpec,
			words: []string{"spec.selector"},
		},
		"it cannot be applied until somebody corrects it": {
			in:        Input{Invalid: []string{"spec.selector chooses no pod"}},
			condition: v1alpha1.ConditionStalled, status: metav1.ConditionTrue, reason: v1alpha1.ReasonInvalidSpec,
			words: []string{"spec.selector"},
		},
		"pods came before it": {
			in: Input{Recommendations: []v1alpha1.MemoryRecommendation{
				recommendationOf("web", 0, all), recommendationOf("api", 0, v1alpha1.Coverage{Governed: 2, Missed: 1, Stale: 1}),
			}},
			condition: v1alpha1.ConditionInjectionUpToDate, status: metav1.ConditionFalse, reason: v1alpha1.ReasonPodsOutOfDate,
			words: []string{"2 of 5 pods", "1 created without", "1 with older", "restart Deployment api at"},
		},
		"pods came before it, and nothing sets it on new ones": {
			in: Input{
				NoWebhook: true,
				Recommendations: []v1alpha1.MemoryRecommendation{
					recommendationOf("api", 0, v1alpha1.Coverage{Governed: 1, Missed: 1}),
				},
			},
			condition: v1alpha1.ConditionInjectionUpToDate, status: metav1.ConditionFalse, reason: v1alpha1.ReasonPodsOutOfDate,
			words: []string{
				"1 created without memfit, 0 with older settings. memfit was installed without its webhook, so new " +
					"pods are unchanged: install the webhook (docs/guide/install.md#then-injection), or set tuning.mode: DryRun",
			},
		},
		"injection is off": {
			in: Input{
				Profile:         declaring(v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDryRun}}),
				Recommendations: []v1alpha1.MemoryRecommendation{recommendationOf("web", 0, all)},
			},
			condition: v1alpha1.ConditionInjectionUpToDate, status: metav1.ConditionTrue,
			reason: v1alpha1.ReasonInjectionDisabled,
			words:  []string{"DryRun"},
		},
		"a node is silent": {
			in: Input{
				Gaps: []memory.Silence{
					{Node: "node-7", Error: "connection refused", Since: time.Date(2026, 11, 20, 3, 4, 5, 0, time.UTC)},
				},
			},
			condition: v1alpha1.ConditionUsageAvailable, status: metav1.ConditionFalse, reason: v1alpha1.ReasonUsageMissing,
			words: []string{"1 node", "node-7", "03:04:05", "connection refused"},
		},
		"usage is not read": {
			in:        Input{UsageOff: true},
			condition: v1alpha1.ConditionUsageAvailable, status: metav1.ConditionFalse, reason: v1alpha1.ReasonUsageMissing,
			words: []string{"--usage-interval=0"},
		},
		"another profile claims its pods": {
			in:        Input{Ambiguous: []string{"Deployment shop/web: two profiles"}},
			condition: v1alpha1.ConditionConflicted, status: metav1.ConditionTrue, reason: v1alpha1.ReasonAmbiguousProfile,
			words: []string{"two profiles"},
		},
		"other autoscalers steer the memory of its workloads": {
			in: Input{
				Recommendations: []v1alpha1.MemoryRecommendation{
					inConflictWith("d"), inConflictWith("b"), recommendationOf("free", 0, all), inConflictWith("a"),
					inConflictWith("c"),
				},
			},
			condition: v1alpha1.ConditionConflicted, status: metav1.ConditionTrue, reason: v1alpha1.ReasonConflict,
			words: []string{"Deployment a: managed by VerticalPodAutoscaler a; Deployment b: ", "and 1 more"},
		},
		"others inherit from it": {
			in:        Input{Profile: defaults, EffectiveDefaults: defaults, Heirs: 2},
			condition: v1alpha1.ConditionReady, status: metav1.ConditionTrue, reason: v1alpha1.ReasonInherited,
			words: []string{"for 2 profiles"},
		},
		"an older one counts": {
			in:        Input{Profile: declaring(giving), EffectiveDefaults: defaults},
			condition: v1alpha1.ConditionConflicted, status: metav1.ConditionTrue, reason: v1alpha1.ReasonAmbiguousDefaults,
			words: []string{"MemoryProfile shop/web", "delete the other"},
		},
		"an older one counts, so that it is not ready": {
			in:        Input{Profile: declaring(giving), EffectiveDefaults: defaults},
			condition: v1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: v1alpha1.ReasonAmbiguousDefaults,
			words: []string{"Not effective"},
		},
		"defaults that contradict themselves": {
			in:        Input{Profile: defaults, EffectiveDefaults: defaults, Invalid: []string{"reserve"}},
			condition: v1alpha1.ConditionStalled, status: metav1.ConditionTrue, reason: v1alpha1.ReasonInvalidSpec,
			words: []string{"reserve"},
		},
		"nobody else wants its pods": {
			in:        Input{Recommendations: []v1alpha1.MemoryRecommendation{recommendationOf("web", 0, all)}},
			condition: v1alpha1.ConditionConflicted, status: metav1.ConditionFalse, reason: v1alpha1.ReasonNoConflict,
			words: []string{"no other autoscaler"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.in.Profile == nil {
				tc.in.Profile = declaring(v1alpha1.MemoryProfileSpec{})
			}
			got := meta.FindStatusCondition(Summarize(tc.in).Conditions, tc.condition)
			if got == nil || got.Status != tc.status || got.Reason != tc.reason {
				t.Fatalf("%s is %+v, want %s because of %s", tc.condition, got, tc.status, tc.reason)
			}
			for _, word := range tc.words {
				if !strings.Contains(got.Message, word) {
					t.Errorf("%q does not say %q", got.Message, word)
				}
			}
		})
	}
}

func declaring(spec v1alpha1.MemoryProfileSpec) *profile.Profile {
	return &profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "web"}, Namespace: "shop", Spec: &spec,
	}
}

// TestProfileListsTheWorstFirst: the status stays readable with any number of workloads, and the ones that die lead.
func TestProfileListsTheWorstFirst(t *testing.T) {
	in := Input{
		Profile: &profile.Profile{
			Ref:  v1alpha1.ProfileReference{Kind: "ClusterMemoryProfile", Name: "all"},
			Spec: &v1alpha1.MemoryProfileSpec{},
		},
	}
	for i := range 50 {
		in.Recommendations = append(
			in.Recommendations,
			recommendationOf(fmt.Sprintf("w%02d", i), int64(i%7), v1alpha1.Coverage{Governed: 1, Injected: 1}),
		)
	}
	status := Summarize(in)
	if len(status.Workloads) != maxWorkloads || status.WorkloadsOmitted != 30 || status.Pods != "50/50" ||
		status.OOMKills != 147 {
		t.Errorf(
			"%d listed, %d omitted, pods %s, %d kills; want 20, 30, 50/50, 147", len(status.Workloads), status.WorkloadsOmitted,
			status.Pods, status.OOMKills,
		)
	}
	if first := status.Workloads[0]; first.Name != "Deployment shop/w06" || first.OOMKills != 6 {
		t.Errorf("first is %+v, want Deployment shop/w06 with 6 kills", first)
	}
}

// TestIdentitiesAreBounded: the condition is there while the profile has as many identities as it may have.
func TestIdentitiesAreBounded(t *testing.T) {
	in := Input{Profile: declaring(v1alpha1.MemoryProfileSpec{})}
	bounded := func() *metav1.Condition {
		return meta.FindStatusCondition(Summarize(in).Conditions, v1alpha1.ConditionIdentitiesBounded)
	}
	in.Recommendations = append(in.Recommendations, recommendationOf("web", 0, v1alpha1.Coverage{Governed: 1}))
	for i := range identity.MaxPerProfile {
		step := recommendationOf(fmt.Sprintf("step-%d", i), 0, v1alpha1.Coverage{Governed: 1})
		step.Status.Identity = &v1alpha1.PodIdentity{Platform: "tekton", Values: []string{"build", fmt.Sprint(i)}}
		in.Recommendations = append(in.Recommendations, step)
	}
	got := bounded()
	if got == nil || got.Status != metav1.ConditionTrue || got.Reason != v1alpha1.ReasonTooManyIdentities ||
		!strings.Contains(got.Message, "1000 pod identities") || !strings.Contains(got.Message, "spec.identity.labels") {
		t.Errorf("%+v", got)
	}
	in.Recommendations = in.Recommendations[:identity.MaxPerProfile] // a Deployment and one identity less
	if got := bounded(); got != nil {
		t.Errorf("with one less: %+v", got)
	}
}

// TestNamesOfWorkloads: identities and classes of nodes are called as users know them.
func TestNamesOfWorkloads(t *testing.T) {
	daemons := recommendationOf("log", 0, v1alpha1.Coverage{})
	daemons.Status.Workload.Kind = "DaemonSet"
	daemons.Status.Identity = &v1alpha1.PodIdentity{Platform: identity.ByNode, Values: []string{"log", "m5.large"}}
	step := recommendationOf("tekton-build-1", 0, v1alpha1.Coverage{})
	step.Status.Identity = &v1alpha1.PodIdentity{Platform: "tekton", Values: []string{"build", "unit"}}
	shared := &profile.Profile{Ref: v1alpha1.ProfileReference{Kind: "ClusterMemoryProfile", Name: "all"}}
	for _, tc := range []struct {
		of         v1alpha1.MemoryRecommendation
		own, there string
	}{
		{daemons, "DaemonSet log [m5.large]", "DaemonSet shop/log [m5.large]"},
		{step, "tekton: build/unit", "tekton: build/unit in shop"},
	} {
		own := workloadLine(declaring(v1alpha1.MemoryProfileSpec{}), &tc.of).Name
		if there := workloadLine(shared, &tc.of).Name; own != tc.own || there != tc.there {
			t.Errorf("%q and %q, want %q and %q", own, there, tc.own, tc.there)
		}
	}
}
