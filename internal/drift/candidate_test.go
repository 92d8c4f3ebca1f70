// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// pod uses so many MiB of 256.
func pod(name string, mib memory.Bytes, edits ...func(*rollout.Pod)) rollout.Pod {
	p := rollout.Pod{Name: name, UID: types.UID("uid-" + name), Ready: true, Containers: []rollout.Container{{
		Name: "app", Demand: mib * memory.MiB, Actual: memory.Size{Limit: 256 * memory.MiB},
		Measured: now.Add(-10 * time.Second),
	}}}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

// since is a pod that was created within a second of the restart of the day before: both times have whole seconds.
func since(p *rollout.Pod) { p.Created = now.Add(-26 * time.Hour) }

func leaving(p *rollout.Pod) { p.Terminating = true }

func climbs(left time.Duration) shape.Shape {
	return shape.Shape{Kind: shape.Climb, Confidence: memory.Medium, TimeToLimit: [2]time.Duration{left, 2 * left}}
}

func TestEndangered(t *testing.T) {
	retains := shape.Shape{Kind: shape.StepRetention, Confidence: memory.High}
	restarted := func(container string, mib memory.Bytes) []rollout.PastRestart {
		return []rollout.PastRestart{{
			Pod: "old", At: now.Add(-26 * time.Hour),
			Cause: rollout.RestartDemand{Container: container, Demand: mib * memory.MiB},
		}}
	}
	for name, tc := range map[string]struct {
		pods               []rollout.Pod
		shape              shape.Shape
		past               []rollout.PastRestart
		wantPod            string
		wantWhy            string // a part
		wantNothingInSight bool
	}{
		"the fullest of two that climb": {
			pods: []rollout.Pod{pod("a", 200), pod("b", 210)}, shape: climbs(time.Hour), wantPod: "b",
			wantWhy: "climbs and uses 210Mi, 82 % of its limit of 256Mi",
		},
		"one that retains": {
			pods: []rollout.Pod{pod("a", 100), pod("b", 210)}, shape: retains, wantPod: "b", wantWhy: "retains memory",
		},
		"three quarters are in danger": {
			pods: []rollout.Pod{pod("a", 192), pod("b", 10)}, shape: retains, wantPod: "a", wantWhy: "75 %",
		},
		"less is not": {
			pods: []rollout.Pod{pod("a", 191), pod("b", 10)}, shape: retains, wantNothingInSight: true,
		},
		"unless the limit is minutes away": {
			pods: []rollout.Pod{pod("a", 150), pod("b", 10)}, shape: climbs(10 * time.Minute), wantPod: "a",
			wantWhy: "reaches in 10 min or later",
		},
		"which says little at a low level": {
			pods: []rollout.Pod{pod("a", 100), pod("b", 10)}, shape: climbs(10 * time.Minute), wantNothingInSight: true,
		},
		"the outlier goes before the fullest": {
			pods:  []rollout.Pod{pod("a", 200), pod("b", 240), pod("c", 30), pod("d", 30)},
			shape: shape.Shape{Kind: shape.Climb, Confidence: memory.High, Outliers: []string{"a"}}, wantPod: "a",
			wantWhy: "far above its replicas",
		},
		"a primary is sized for what it needs": {
			pods:               []rollout.Pod{pod("a", 230), pod("b", 30), pod("c", 30), pod("d", 30)},
			shape:              shape.Shape{Kind: shape.Flat, Confidence: memory.High, Outliers: []string{"a"}},
			wantNothingInSight: true,
		},
		"a replica climbs, and not the primary": {
			pods: []rollout.Pod{pod("a", 230), pod("b", 200), pod("c", 30), pod("d", 30)},
			shape: shape.Shape{
				Kind: shape.Climb, Confidence: memory.Medium, Outliers: []string{"a"}, Pods: []string{"b"},
			}, wantPod: "b", wantWhy: "climbs and uses 200Mi",
		},
		"a restart showed that it needs what it keeps": {
			pods: []rollout.Pod{pod("a", 200, since), pod("b", 30)}, shape: retains, past: restarted("app", 190),
			wantNothingInSight: true,
		},
		"a replica that was not restarted shows nothing of that": {
			pods: []rollout.Pod{pod("a", 200, since), pod("b", 195)}, shape: retains, past: restarted("app", 190),
			wantPod: "b",
		},
		"it keeps more than before the restart": {
			pods: []rollout.Pod{pod("a", 220, since), pod("b", 30)}, shape: retains, past: restarted("app", 190),
			wantPod: "a",
		},
		"another container was the reason": {
			pods: []rollout.Pod{pod("a", 200, since), pod("b", 30)}, shape: retains, past: restarted("proxy", 190),
			wantPod: "a",
		},
		"what climbs does so again": {
			pods: []rollout.Pod{pod("a", 200, since), pod("b", 30)}, shape: climbs(time.Hour), past: restarted("app", 200),
			wantPod: "a",
		},
		"an outlier far from its limit": {
			pods:  []rollout.Pod{pod("a", 100), pod("b", 30), pod("c", 30), pod("d", 30)},
			shape: shape.Shape{Kind: shape.Flat, Confidence: memory.High, Outliers: []string{"a"}}, wantNothingInSight: true,
		},
		"a cache that fills its cap is no leak": {
			pods:               []rollout.Pod{pod("a", 240), pod("b", 240)},
			shape:              shape.Shape{Kind: shape.FollowsLimit, Confidence: memory.High},
			wantNothingInSight: true,
		},
		"a climb that is a guess": {
			pods: []rollout.Pod{pod("a", 240), pod("b", 240)}, shape: shape.Shape{Kind: shape.Climb, Confidence: memory.Low},
			wantNothingInSight: true,
		},
		"without a limit nothing kills it": {
			pods:  []rollout.Pod{pod("a", 240, func(p *rollout.Pod) { p.Containers[0].Actual.Limit = 0 }), pod("b", 10)},
			shape: climbs(time.Hour), wantNothingInSight: true,
		},
		"a pod that is going already": {
			pods: []rollout.Pod{pod("a", 240, leaving), pod("b", 10)}, shape: climbs(time.Hour), wantNothingInSight: true,
		},
		"its pod lets it have less than it shows": {
			pods:  []rollout.Pod{pod("a", 100, func(p *rollout.Pod) { p.Containers[0].Effective = 128 * memory.MiB })},
			shape: climbs(time.Hour), wantPod: "a", wantWhy: "78 % of its limit of 128Mi",
		},
		"one that was never measured": {
			pods:  []rollout.Pod{pod("a", 240, func(p *rollout.Pod) { p.Containers[0].Measured = time.Time{} })},
			shape: climbs(time.Hour), wantNothingInSight: true,
		},
		"no pods": {shape: climbs(time.Hour), wantNothingInSight: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := Endangered(tc.pods, map[string]shape.Shape{"app": tc.shape}, tc.past)
			if (got == nil) != tc.wantNothingInSight {
				t.Fatalf("got %+v, want nothing in sight: %t", got, tc.wantNothingInSight)
			}
			if got != nil && (got.Pod != tc.wantPod || got.UID == "" || !got.Measured.Before(now) || got.Cause.Demand == 0 ||
				!strings.Contains(got.Why, tc.wantWhy)) {
				t.Errorf("got %+v, want pod %q, why %q", got, tc.wantPod, tc.wantWhy)
			}
		})
	}
}
