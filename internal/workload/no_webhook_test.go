// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
)

// withoutWebhook is a workload of a memfit that was installed to observe only.
func withoutWebhook(kind string, mode v1alpha1.SizingMode) *Snapshot {
	ref := memory.WorkloadRef{APIVersion: "apps/v1", Kind: kind, Namespace: "shop", Name: "web"}
	if kind == "Job" {
		ref.APIVersion = "batch/v1"
	}
	return &Snapshot{
		Owner:     memory.Workload{Ref: ref},
		Profile:   governing(build.Profile("shop", "web", v1alpha1.RuntimeNodeJS, build.Sizing(mode))),
		NoWebhook: true,
	}
}

// TestWithoutTheWebhookNewPodsArePromisedNothing: where memfit observes only, restarting a workload helps nothing, and
// conditions and Events name what is missing.
func TestWithoutTheWebhookNewPodsArePromisedNothing(t *testing.T) {
	const missing = "memfit was installed without its webhook, so new pods are unchanged: install the webhook " +
		"(docs/guide/install.md#then-injection), or set "
	governed := []*corev1.Pod{build.Pod("shop", "web-1").Container("app", build.Limit("128Mi")).Obj()}
	v := &result{recommended: map[string]memory.Size{"app": {Limit: 256 * memory.MiB, Request: 256 * memory.MiB}}}
	for name, tc := range map[string]struct {
		mode v1alpha1.SizingMode
		pods []*corev1.Pod
		want string
	}{
		"Recommend": {
			v1alpha1.SizingRecommend, governed, "install it (docs/guide/install.md#then-injection), then set OnCreate",
		},
		"OnCreate":                 {v1alpha1.SizingOnCreate, governed, missing + "sizing.mode: Recommend"},
		"OnCreate, scaled to zero": {v1alpha1.SizingOnCreate, nil, missing + "sizing.mode: Recommend"},
		"InPlace, scaled to zero":  {v1alpha1.SizingInPlace, nil, missing + "sizing.mode: Recommend"},
	} {
		s := withoutWebhook("Deployment", tc.mode)
		s.Governed = tc.pods
		got := appliedCondition(s, v).Message
		if !strings.Contains(got, tc.want) || strings.Contains(got, "new pods get it") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}

	v.status.Conditions = []metav1.Condition{conditionDrift.False("", "")}
	v.coverage.Governed, v.coverage.Missed, v.coverage.outOfDate = 1, 1, "pod web-1: memfit has not seen this pod"
	events, _ := changeEvents(withoutWebhook("Deployment", v1alpha1.SizingRecommend), NewState(), v)
	if len(events) != 1 || events[0].Reason != v1alpha1.EventInjectionOutOfDate ||
		!strings.HasSuffix(events[0].Note, ". "+missing+"tuning.mode: DryRun") {
		t.Errorf("the Events are %+v", events)
	}
}

// TestWithoutTheWebhookNoPodIsEvictedForItsSize: its successor would have the old one.
func TestWithoutTheWebhookNoPodIsEvictedForItsSize(t *testing.T) {
	p := rolloutPolicy(withoutWebhook("Deployment", v1alpha1.SizingInPlaceOrEvict), 1)
	if p.Evict || !p.NoWebhook {
		t.Errorf("the policy is %+v", p)
	}
}
