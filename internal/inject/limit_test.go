// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

func quantity(text string) *v1alpha1.MemoryQuantity {
	return v1alpha1.NewMemoryQuantity(resource.MustParse(text))
}

func shared(processes int32, reserve string) v1alpha1.TuningSpec {
	t := v1alpha1.TuningSpec{Processes: new(processes)}
	if reserve != "" {
		t.Reserve = quantity(reserve)
	}
	return t
}

// TestAllHeapsTogetherFitBesideTheReserve: whatever the limit, as many processes as the profile says can fill their
// GOMEMLIMIT without reaching what is kept back.
func TestAllHeapsTogetherFitBesideTheReserve(t *testing.T) {
	checked := 0
	for mib := 64; mib <= 16<<10; mib += 61 {
		for _, processes := range []int32{1, 2, 3, 7, 16, 256} {
			for _, reserve := range []string{"", "1Mi", "100Mi", "1Gi"} {
				tuning := shared(processes, reserve)
				in := nodePod(strconv.Itoa(mib)+"Mi", of("Go", tuning))
				kept := divisionOf(tuning).reserve
				for _, v := range inject(in).Spec.Containers[0].Env {
					if v.Name != "GOMEMLIMIT" {
						continue
					}
					one, err := strconv.ParseInt(v.Value, 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					limit := memory.Bytes(mib) * memory.MiB
					if all := memory.Bytes(one) * memory.Bytes(processes); all+kept > limit || all < limit.Minus(kept).Percent(80) {
						t.Fatalf("%d processes below %s with %s kept back: %d each", processes, limit, kept, one)
					}
					checked++
				}
			}
		}
	}
	if checked < 1000 {
		t.Errorf("GOMEMLIMIT was set only %d times", checked)
	}
}

// TestNothingIsDerivedFromWhatIsReserved: the pod is as it was, and the warning names field and fix.
func TestNothingIsDerivedFromWhatIsReserved(t *testing.T) {
	for _, reserve := range []string{"512Mi", "1Gi", "8Ei"} {
		in := nodePod("512Mi", of("NodeJS", shared(2, reserve)))
		plan := MakePlan(in)
		if plan.Container("app").Sets() {
			t.Errorf("reserve %s of 512Mi: %v is set", reserve, plan.Container("app").Settings())
		}
		const want = "is not below the available memory (512Mi of 512Mi), so nothing is derived from the limit: lower " +
			"reserve, or raise the limit"
		if got := plan.Warnings(); !slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("reserve %s of 512Mi: the warnings are %q", reserve, got)
		}
	}
	if got := MakePlan(nodePod("513Mi", of("Go", shared(1, "256Mi")))).Warnings(); len(got) > 0 {
		t.Errorf("a reserve below the limit warns: %q", got)
	}
}

// TestPM2NeedsTheNumberOfItsProcesses: one is a number, too.
func TestPM2NeedsTheNumberOfItsProcesses(t *testing.T) {
	for name, tc := range map[string]struct {
		tuning v1alpha1.TuningSpec
		sets   bool
	}{
		"not said": {v1alpha1.TuningSpec{}, false},
		"reserved": {v1alpha1.TuningSpec{Reserve: quantity("64Mi")}, false},
		"one":      {shared(1, ""), true},
		"four":     {shared(4, ""), true},
	} {
		in := nodePod("2Gi", of("NodeJS", tc.tuning))
		in.Pod.Spec.Containers[0].Command = []string{"pm2-runtime", "start", "app.js"}
		if got := MakePlan(in).Container("app").Sets(); got != tc.sets {
			t.Errorf("%s: a heap cap is set: %t", name, got)
		}
	}
}

// TestWhatRunsCountsAllProcesses: sizing looks at the container, which holds all heaps and what is kept back, also when
// the profile has changed since the pod was created.
func TestWhatRunsCountsAllProcesses(t *testing.T) {
	one := nodePod("2Gi", of("NodeJS", v1alpha1.TuningSpec{}))
	whole := OfRunning(inject(one), one.Profile, nil).Container("app").StartHeapCap()
	in := nodePod("2Gi", of("NodeJS", shared(4, "")))
	pod := inject(in)
	got := OfRunning(pod, in.Profile, nil).Container("app").StartHeapCap()
	if got.Cap != whole.Cap || !got.Literal || got.For != 2*memory.GiB || got.Overhead <= 2*whole.Overhead {
		t.Errorf("four processes of 2Gi: %+v, and one %+v", got, whole)
	}
	if later := OfRunning(pod, one.Profile, nil).Container("app").StartHeapCap(); later.Cap != whole.Cap {
		t.Errorf("four processes of 2Gi, and the profile says one by now: %+v", later)
	}
	kept := nodePod("2Gi", of("NodeJS", shared(1, "512Mi")))
	got = OfRunning(inject(kept), kept.Profile, nil).Container("app").StartHeapCap()
	if got.Cap != (1536*memory.MiB).Percent(75) || got.For != 2*memory.GiB ||
		got.Overhead < whole.Overhead+512*memory.MiB {
		t.Errorf("one process of 2Gi with 512Mi kept back: %+v", got)
	}
	if g := MakePlan(kept).Container("app").Growth(); g.Reserve != 512*memory.MiB || g.HeapPercent != 75 {
		t.Errorf("one process of 2Gi with 512Mi kept back: %+v", g)
	}
}

// TestAForgedRecordOfProcesses: whoever writes the annotation gets no cap beyond reason out of it.
func TestAForgedRecordOfProcesses(t *testing.T) {
	in := nodePod("2Gi", of("NodeJS", shared(2, "")))
	for _, processes := range []string{"-5", "2000000000"} {
		pod := inject(in)
		pod.Annotations[v1alpha1.InjectedAnnotation] = strings.Replace(
			pod.Annotations[v1alpha1.InjectedAnnotation], `"processes":2`, `"processes":`+processes, 1,
		)
		if got := OfRunning(pod, in.Profile, nil).Container("app").StartHeapCap().Cap; got <= 0 || got > 256*2*memory.GiB {
			t.Errorf("processes %s: a cap of %s", processes, got)
		}
	}
}
