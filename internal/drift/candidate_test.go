// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/shape"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// pod uses so many MiB of 256.
func pod(name string, mib memory.Bytes, edits ...func(*Pod)) Pod {
	p := Pod{Name: name, UID: types.UID("uid-" + name), Ready: true, Containers: []Container{
		{Name: "app", Use: mib * memory.MiB, Limit: 256 * memory.MiB, At: now.Add(-10 * time.Second)},
	}}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func unready(p *Pod) { p.Ready = false }
func leaving(p *Pod) { p.Leaving = true }

func climbs(left time.Duration) shape.Shape {
	return shape.Shape{Kind: shape.Climb, Confidence: memory.Medium, TimeToLimit: [2]time.Duration{left, 2 * left}}
}

func restarted(ago time.Duration) Restart {
	return Restart{Pod: "old", UID: "uid-old", At: now.Add(-ago)}
}

func TestChoose(t *testing.T) {
	retains := shape.Shape{Kind: shape.StepRetention, Confidence: memory.High}
	usual := Policy{MaxPerDay: 3, MinReplicas: 1, Cooldown: time.Hour}
	for name, tc := range map[string]struct {
		pods               []Pod
		shape              shape.Shape
		policy             *Policy
		done               []Restart
		refused            string
		wantPod            string
		wantWhy, wantHeld  string // parts
		wantNothingInSight bool
	}{
		"the fullest of two that climb": {
			pods: []Pod{pod("a", 200), pod("b", 210)}, shape: climbs(time.Hour), wantPod: "b",
			wantWhy: "climbs and uses 210Mi, 82 % of its limit of 256Mi",
		},
		"one that retains": {
			pods: []Pod{pod("a", 100), pod("b", 210)}, shape: retains, wantPod: "b", wantWhy: "keeps what it took",
		},
		"three quarters are in danger": {
			pods: []Pod{pod("a", 192), pod("b", 10)}, shape: retains, wantPod: "a", wantWhy: "75 %",
		},
		"less is not": {
			pods: []Pod{pod("a", 191), pod("b", 10)}, shape: retains, wantNothingInSight: true,
		},
		"unless the limit is minutes away": {
			pods: []Pod{pod("a", 150), pod("b", 10)}, shape: climbs(10 * time.Minute), wantPod: "a",
			wantWhy: "reaches in 10 min or later",
		},
		"which says little at a low level": {
			pods: []Pod{pod("a", 100), pod("b", 10)}, shape: climbs(10 * time.Minute), wantNothingInSight: true,
		},
		"the outlier goes before the fullest": {
			pods:  []Pod{pod("a", 200), pod("b", 240), pod("c", 30), pod("d", 30)},
			shape: shape.Shape{Kind: shape.Climb, Confidence: memory.High, Outliers: []string{"a"}}, wantPod: "a",
			wantWhy: "far above its replicas",
		},
		"an outlier among flat ones": {
			pods:  []Pod{pod("a", 200), pod("b", 30), pod("c", 30), pod("d", 30)},
			shape: shape.Shape{Kind: shape.Flat, Confidence: memory.High, Outliers: []string{"a"}}, wantPod: "a",
			wantWhy: "200Mi",
		},
		"an outlier far from its limit": {
			pods:  []Pod{pod("a", 100), pod("b", 30), pod("c", 30), pod("d", 30)},
			shape: shape.Shape{Kind: shape.Flat, Confidence: memory.High, Outliers: []string{"a"}}, wantNothingInSight: true,
		},
		"a cache that fills its cap is no leak": {
			pods: []Pod{pod("a", 240), pod("b", 240)}, shape: shape.Shape{Kind: shape.FollowsLimit, Confidence: memory.High},
			wantNothingInSight: true,
		},
		"a climb that is a guess": {
			pods: []Pod{pod("a", 240), pod("b", 240)}, shape: shape.Shape{Kind: shape.Climb, Confidence: memory.Low},
			wantNothingInSight: true,
		},
		"without a limit nothing kills it": {
			pods: []Pod{pod("a", 240, func(p *Pod) { p.Containers[0].Limit = 0 }), pod("b", 10)}, shape: climbs(time.Hour),
			wantNothingInSight: true,
		},
		"a pod that is going already": {
			pods: []Pod{pod("a", 240, leaving), pod("b", 10)}, shape: climbs(time.Hour), wantNothingInSight: true,
		},
		"refused altogether": {
			pods: []Pod{pod("a", 240), pod("b", 10)}, shape: climbs(time.Hour), refused: "memfit.dev/pause", wantWhy: "climbs",
			wantHeld: "memfit.dev/pause",
		},
		"an old reading": {
			pods:  []Pod{pod("a", 240, func(p *Pod) { p.Containers[0].At = now.Add(-3 * time.Minute) }), pod("b", 10)},
			shape: climbs(time.Hour), wantHeld: "last measured at 2026-11-20T11:57:00Z",
		},
		"a working set": {
			pods:  []Pod{pod("a", 240, func(p *Pod) { p.Containers[0].WorkingSetOnly = true }), pod("b", 10)},
			shape: climbs(time.Hour), wantHeld: "page cache",
		},
		"one per cool-down": {
			pods: []Pod{pod("a", 240), pod("b", 10)}, shape: climbs(time.Hour), done: []Restart{restarted(59 * time.Minute)},
			wantHeld: "pod old was restarted at 2026-11-20T11:01:00Z; the next one waits until 2026-11-20T12:01:00Z " +
				"(sizing.disruption.cooldown is 1h)",
		},
		"after the cool-down the next": {
			pods: []Pod{pod("a", 240), pod("b", 10)}, shape: climbs(time.Hour), done: []Restart{restarted(time.Hour)},
			wantPod: "a",
		},
		"three a day": {
			pods: []Pod{pod("a", 240), pod("b", 10)}, shape: climbs(time.Hour),
			done:     []Restart{restarted(23 * time.Hour), restarted(9 * time.Hour), restarted(2 * time.Hour)},
			wantHeld: "3 pods were restarted in the last 24h, and drift.maxPerDay is 3",
		},
		"yesterday does not count": {
			pods: []Pod{pod("a", 240), pod("b", 10)}, shape: climbs(time.Hour),
			done: []Restart{restarted(25 * time.Hour), restarted(9 * time.Hour), restarted(2 * time.Hour)}, wantPod: "a",
		},
		"another one is not ready": {
			pods: []Pod{pod("a", 240), pod("b", 10, unready), pod("c", 10)}, shape: climbs(time.Hour),
			wantHeld: "pod b is not ready",
		},
		"another one is leaving": {
			pods: []Pod{pod("a", 240), pod("b", 10, leaving), pod("c", 10)}, shape: climbs(time.Hour),
			wantHeld: "pod b is being deleted",
		},
		"the only one": {
			pods: []Pod{pod("a", 240)}, shape: climbs(time.Hour),
			wantHeld: "0 ready pods would remain, and drift.minReplicas is 1",
		},
		"the only one, where its owner takes the gap": {
			pods: []Pod{pod("a", 240)}, shape: climbs(time.Hour), policy: &Policy{MaxPerDay: 1}, wantPod: "a",
		},
		"a zero policy restarts nothing": {
			pods: []Pod{pod("a", 240)}, shape: climbs(time.Hour), policy: &Policy{}, wantHeld: "drift.maxPerDay is 0",
		},
		"no pods": {shape: climbs(time.Hour), wantNothingInSight: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{
				Pods: tc.pods, Shapes: map[string]shape.Shape{"app": tc.shape}, Policy: usual, Done: tc.done, Refused: tc.refused,
				Now: now,
			}
			if tc.policy != nil {
				in.Policy = *tc.policy
			}
			got := Choose(in)
			if got.Pod != tc.wantPod || !strings.Contains(got.Why, tc.wantWhy) || !strings.Contains(got.Held, tc.wantHeld) {
				t.Errorf("got %+v, want pod %q, why %q, held %q", got, tc.wantPod, tc.wantWhy, tc.wantHeld)
			}
			if (got == Candidate{}) != tc.wantNothingInSight {
				t.Errorf("got %+v, want nothing in sight: %t", got, tc.wantNothingInSight)
			}
			if got.Pod != "" && got.Held != "" || got.Pod == "" && got.Why != "" && (got.Held == "" || got.RequeueAfter == 0) {
				t.Errorf("%+v: a pod in danger is evicted, or it is said what holds that up and when to look again", got)
			}
		})
	}
}

func TestStateSurvives(t *testing.T) {
	var s State
	s.Add(restarted(25 * time.Hour))
	s.Add(restarted(2 * time.Hour))
	s.Add(Restart{Pod: "new", UID: "uid-new", At: now})
	data, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	var again State
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	want := []Restart{restarted(2 * time.Hour), {Pod: "new", UID: "uid-new", At: now}}
	if diff := cmp.Diff(want, again.Restarts(now)); diff != "" {
		t.Errorf("the restarts of the last day (-want +got):\n%s", diff)
	}
	again.Undo("uid-new")
	if diff := cmp.Diff(want[:1], again.Restarts(now)); diff != "" {
		t.Errorf("after one that did not happen (-want +got):\n%s", diff)
	}
}
