// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestACapUnderAnUnseenLimit: what a JVM that does not see its limit makes of a higher one.
func TestACapUnderAnUnseenLimit(t *testing.T) {
	percent := v1alpha1.TuningSpec{HeapPercent: new(int32(60))}
	share := []corev1.EnvVar{{Name: "JAVA_OPTS", Value: "-XX:MaxRAMPercentage=75"}}
	for name, tc := range map[string]struct {
		tuning          v1alpha1.TuningSpec
		env             []corev1.EnvVar
		image           string
		follows, frozen bool
	}{
		"memfit's share":            {percent, nil, "app:2", true, true},
		"the user's share":          {v1alpha1.TuningSpec{}, share, "app:2", false, false},
		"no share":                  {v1alpha1.TuningSpec{}, nil, "app:2", false, false},
		"another image":             {percent, nil, "other:2", true, false},
		"another image, a user's":   {v1alpha1.TuningSpec{}, share, "other:2", false, false},
		"another image, its own 25": {v1alpha1.TuningSpec{}, nil, "other:2", false, false},
	} {
		in := nodePod("1Gi", of("JVM", tc.tuning), tc.env...)
		in.Pod.Spec.Containers[0].Image = tc.image
		in.Observed = map[string]Observed{"app": {Found: &v1alpha1.FoundRuntime{
			Image: "app:1", Type: v1alpha1.RuntimeJVM, NodeHeap: resource.NewQuantity(8<<30, resource.BinarySI),
		}}}
		in.Pod, in.Created = inject(in), true
		if follows, frozen := MakePlan(in).Container("app").CapFollows(); follows != tc.follows || frozen != tc.frozen {
			t.Errorf("%s: a higher limit raises the cap: %t, only of a new pod: %t", name, follows, frozen)
		}
	}
}

// TestAPodFromBeforeTheProof has no -XX:MaxRAM yet: its heap does not follow the limit, whatever new pods get.
func TestAPodFromBeforeTheProof(t *testing.T) {
	in := nodePod("1Gi", of("JVM", v1alpha1.TuningSpec{HeapPercent: new(int32(60))}))
	in.Pod.Spec.Containers[0].Image = "app:1"
	in.Pod, in.Created = inject(in), true
	if g := MakePlan(in).Container("app").Growth(); !g.FollowsLimit {
		t.Errorf("before the proof: %+v", g)
	}
	in.Observed = map[string]Observed{"app": {Found: &v1alpha1.FoundRuntime{
		Image: "app:1", Type: v1alpha1.RuntimeJVM, NodeHeap: resource.NewQuantity(8<<30, resource.BinarySI),
	}}}
	plan := MakePlan(in)
	if follows, _ := plan.Container("app").CapFollows(); follows || plan.Container("app").Growth().FollowsLimit {
		t.Errorf("it runs with a share of the node: %t, %+v", follows, plan.Container("app").Growth())
	}
	if state, why := Compare(in.Pod, in.Profile, in.Observed); state != Stale {
		t.Errorf("it is %s: %s", state, why)
	}
	in.Created = false
	if g := MakePlan(in).Container("app").Growth(); !g.FollowsLimit || g.HeapPercent != 60 {
		t.Errorf("a new pod: %+v", g)
	}
}
