// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
)

// outdatedPod has earlier numbers of its owner than the newest pod.
func outdatedPod(uid types.UID, owner, has memory.Bytes, writer string) rollout.Pod {
	return rollout.Pod{Name: string(uid), UID: uid, Writer: writer, Containers: []rollout.Container{{
		Name: "app", Program: "p", Outdated: true, Owner: memory.Size{Limit: owner * memory.MiB},
		Actual: memory.Size{Limit: has * memory.MiB},
	}}}
}

// TestPodsWithEarlierNumbersStayAsTheyAreWithoutEvidence: what was published is for pods with the present numbers.
func TestPodsWithEarlierNumbersStayAsTheyAreWithoutEvidence(t *testing.T) {
	newest := memory.Size{Limit: 4 * memory.GiB}
	d := decider{
		s: &Snapshot{Profile: governing(build.Profile("shop", "web", v1alpha1.RuntimeNative,
			build.Sizing(v1alpha1.SizingInPlace)))},
		st: NewState(), now: began,
	}
	key := rollout.Key{Container: "app", Program: "p"}
	d.rollout.Desired = map[rollout.Key]rollout.Desired{key: {Recommendation: recommend.Recommendation{Size: newest}}}
	d.rollout.Pods = []rollout.Pod{outdatedPod("web-1", 256, 256, "")}
	d.decideOutdated(containerInput{
		Input: recommend.Input{Now: began}, program: "p", published: newest, plan: d.plan.Container("app"),
		container: managedContainer{Name: "app", policy: d.s.Profile.Container("app", nil), current: newest},
	}, shapeCache{})
	key.Outdated = true
	if got, decided := d.rollout.Desired[key]; !decided || got.Recommendation.Size != (memory.Size{}) {
		t.Errorf("without evidence pods with earlier numbers get %+v", got.Recommendation)
	}
}

// TestThePodsOfAPartitionAreJudgedByTheirLowestOwnSize: loans and what another writer gave one pod are not theirs.
func TestThePodsOfAPartitionAreJudgedByTheirLowestOwnSize(t *testing.T) {
	lent := outdatedPod("lent", 256, 512, "")
	for name, tc := range map[string]struct {
		pods []rollout.Pod
		want memory.Bytes
	}{
		"one of two was raised": {
			[]rollout.Pod{outdatedPod("a", 256, 384, ""), outdatedPod("b", 256, 320, "")}, 320,
		},
		"one has a loan": {[]rollout.Pod{outdatedPod("a", 256, 384, ""), lent}, 300},
		"one was raised by hand": {
			[]rollout.Pod{outdatedPod("a", 256, 1024, "kubectl"), outdatedPod("b", 256, 2048, "")}, 2048,
		},
		"one was lowered by hand": {
			[]rollout.Pod{outdatedPod("b", 256, 320, ""), outdatedPod("a", 256, 64, "kubectl")}, 320,
		},
		"the only one is set by hand": {[]rollout.Pod{outdatedPod("a", 256, 1024, "kubectl")}, 256},
		"its owner's size is unknown": {[]rollout.Pod{outdatedPod("a", 0, 1024, "kubectl")}, 1024},
		"its owner gives it no limit": {[]rollout.Pod{outdatedPod("a", rollout.NoLimit/memory.MiB, 1024, "kubectl")}, 0},
	} {
		d := decider{rollout: rollout.Input{Pods: tc.pods}}
		d.rollout.State.Loans = []rescue.Loan{{
			UID: "lent", Container: "app", From: memory.Size{Limit: 300 * memory.MiB}, To: memory.Size{Limit: 512 * memory.MiB},
		}}
		for i := range tc.pods {
			if c := &tc.pods[i].Containers[0]; c.Owner.Limit > memory.Max/2 {
				c.Owner.Limit = rollout.NoLimit
			}
		}
		got, found := d.leastOutdated(rollout.Key{Container: "app", Program: "p", Outdated: true})
		if !found || got.Limit != tc.want*memory.MiB {
			t.Errorf("%s: %t, %s, want %s", name, found, got, tc.want*memory.MiB)
		}
	}
	if _, found := (&decider{}).leastOutdated(rollout.Key{Container: "app"}); found {
		t.Error("there are none, and one is found")
	}
}
