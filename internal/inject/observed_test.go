// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// TestHeapCapsAndTheLiveHeap: whether a new pod gets a cap, by what replicas showed. 512Mi make a cap of 381Mi, 1Gi one
// of 720Mi.
func TestHeapCapsAndTheLiveHeap(t *testing.T) {
	onCreate := v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingOnCreate}}
	mib := func(n int) memory.Bytes { return memory.Bytes(n) * memory.MiB }
	for name, tc := range map[string]struct {
		limit    string
		size     memory.Bytes // recommended limit
		observed Observed
		want     bool
	}{
		"nothing is known": {limit: "512Mi", want: true},
		"room is left":     {limit: "512Mi", observed: Observed{LiveSet: mib(300)}, want: true},
		"none is left":     {limit: "512Mi", observed: Observed{LiveSet: mib(420)}},
		"a raise in the same admission makes room": {
			limit: "512Mi", size: mib(1024), observed: Observed{LiveSet: mib(420)}, want: true,
		},
		"a decrease in the same admission takes it": {
			limit: "1Gi", size: mib(512), observed: Observed{LiveSet: mib(420), Limit: mib(512)},
		},
		"a decrease that rests on what replicas hold below a cap": {
			limit: "1Gi", size: mib(512), observed: Observed{LiveSet: mib(420), HeapCap: mib(720), Limit: mib(512)}, want: true,
		},
		"the recommended limit, by way of Git": {
			limit: "512Mi", observed: Observed{LiveSet: mib(420), HeapCap: mib(720), Limit: mib(512)}, want: true,
		},
		"a limit below what is recommended": {
			limit: "512Mi", observed: Observed{LiveSet: mib(420), HeapCap: mib(720), Limit: mib(800)},
		},
		"a lower limit, and nothing recommended": {
			limit: "512Mi", observed: Observed{LiveSet: mib(420), HeapCap: mib(720)},
		},
		"the cap that replicas run with": {
			limit: "512Mi", observed: Observed{LiveSet: mib(420), HeapCap: mib(381)}, want: true,
		},
		"a cap of others, while the evidence comes from under it only": {
			limit: "512Mi", observed: Observed{HeapCap: mib(720)}, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := nodePod(tc.limit, onCreate)
			in.Observed = map[string]Observed{"app": tc.observed}
			if tc.size > 0 {
				in.Sizes = map[string]Offer{"app": {Size: memory.Size{Limit: tc.size}}}
			}
			plan := MakePlan(in).Container("app")
			if plan.Sets() != tc.want || (plan.HeapCapTooSmall() == "") != tc.want {
				t.Errorf("sets %q, skips %q, want a cap: %t", plan.Settings(), plan.Skipped(), tc.want)
			}
			again := in
			again.Pod = inject(in)
			if p := MakePlan(again); p.Changes() {
				t.Errorf("asked again, it would change %q, %q", p.Container("app").Settings(), p.Container("app").Skipped())
			}
			again.Sizes = nil
			if state, why := Compare(again.Pod, again.Profile, again.Observed); state == Stale || state == NotInjected {
				t.Errorf("a pod that was created a moment ago is %s: %s", state, why)
			}
		})
	}
}

// TestEvidenceThatMovesMakesNoPodStale: a pod keeps the state that it got when it was created, whatever is seen of
// others later. Only one without a cap is stale once there is room for one, because then a new pod is better off.
func TestEvidenceThatMovesMakesNoPodStale(t *testing.T) {
	little, much := Observed{LiveSet: 200 * memory.MiB}, Observed{LiveSet: 420 * memory.MiB}
	created := func(observed Observed, limit string) Input {
		in := nodePod(limit, v1alpha1.MemoryProfileSpec{})
		in.Observed = map[string]Observed{"app": observed}
		in.Pod = inject(in)
		return in
	}
	resized := func(in Input, limit string) Input {
		in.Pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse(limit)
		return in
	}
	for name, tc := range map[string]struct {
		in       Input
		observed Observed
		want     State
		why      string
	}{
		"with a cap, and others show more":          {in: created(little, "512Mi"), observed: much, want: UpToDate},
		"with a cap, and nothing is known any more": {in: created(little, "512Mi"), want: UpToDate},
		"without, as ever": {
			in: created(much, "512Mi"), observed: much, want: Skipped, why: "live heap of up to 420Mi",
		},
		"without, and a little less is seen": {
			in: created(much, "512Mi"), observed: Observed{LiveSet: 400 * memory.MiB}, want: Skipped,
			why: "live heap of up to 400Mi",
		},
		"without, and there is room now": {
			in: created(much, "512Mi"), observed: little, want: Stale, why: "--max-old-space-size=381",
		},
		"with a cap, raised in place": {
			in: resized(created(little, "512Mi"), "1Gi"), observed: much, want: Stale, why: "--max-old-space-size=720",
		},
		"with a cap, lowered in place too far": {
			in: resized(created(Observed{}, "1Gi"), "512Mi"), observed: much, want: Stale, why: "no NODE_OPTIONS",
		},
		"from before memfit": {
			in: nodePod("512Mi", v1alpha1.MemoryProfileSpec{}), observed: much, want: Skipped, why: "live heap of up to 420Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, why := Compare(tc.in.Pod, tc.in.Profile, map[string]Observed{"app": tc.observed})
			if state != tc.want || !strings.Contains(why, tc.why) {
				t.Errorf("%s: %s\nwant %s: %s", state, why, tc.want, tc.why)
			}
		})
	}
}

// TestFrozenGoesByWhatTheProcessHas: others' evidence does not change what this process was started with.
func TestFrozenGoesByWhatTheProcessHas(t *testing.T) {
	in := nodePod("512Mi", v1alpha1.MemoryProfileSpec{})
	pod := inject(in)
	want := OfRunning(pod, in.Profile, nil).Container("app").StartHeapCap()
	others := map[string]Observed{"app": {LiveSet: 500 * memory.MiB}}
	if got := OfRunning(pod, in.Profile, others).Container("app").StartHeapCap(); got != want ||
		!got.Literal {
		t.Errorf("with evidence of others %+v, without %+v", got, want)
	}
}

func TestHeapCap(t *testing.T) {
	of := func(in Input) memory.Bytes { return HeapCap(inject(in), "app") }
	jvm := v1alpha1.MemoryProfileSpec{
		Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM}, Tuning: v1alpha1.TuningSpec{HeapPercent: new(int32(60))},
	}
	if got := of(nodePod("512Mi", v1alpha1.MemoryProfileSpec{})); got != 381*memory.MiB {
		t.Errorf("Node.js at 512Mi: %s, want 381Mi", got)
	}
	if got := of(nodePod("512Mi", jvm)); got != (512 * memory.MiB).Percent(60) {
		t.Errorf("a JVM with 60 %% of 512Mi: %s", got)
	}
	if got := of(
		nodePod("512Mi", v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDisabled}}),
	); got != 0 {
		t.Errorf("nothing is set, and yet %s", got)
	}
	lowered := inject(nodePod("1Gi", jvm))
	lowered.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("512Mi")
	if got := HeapCap(lowered, "app"); got != memory.GiB.Percent(60) {
		t.Errorf("lowered in place: %s, want that of the limit at admission", got)
	}
	if got := HeapCap(lowered, "nobody"); got != 0 {
		t.Errorf("a container that is not there: %s", got)
	}
}

func TestLiveIn(t *testing.T) {
	q := func(s string) *resource.Quantity { return new(resource.MustParse(s)) }
	if got := ObservedIn(
		[]v1alpha1.ContainerRecommendation{{Container: "app", Evidence: v1alpha1.Evidence{PeakRSS: q("1Gi")}}},
	); len(got) != 0 {
		t.Errorf("nothing was seen, and yet %v", got)
	}
	got := ObservedIn([]v1alpha1.ContainerRecommendation{
		{Container: "side"},
		{Container: "app", Evidence: v1alpha1.Evidence{LiveSet: q("420Mi"), HeapCap: q("381Mi")},
			Recommended: &v1alpha1.Size{Limit: q("768Mi")}},
	})
	want := Observed{LiveSet: 420 * memory.MiB, HeapCap: 381 * memory.MiB, Limit: 768 * memory.MiB}
	if len(got) != 1 || got["app"] != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
