// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
)

// TestAPermitEndsWithThePodThatUsedIt: also while that one has no node yet. Every replica of the webhook may use the
// permit of an eviction, and a later pod is created with what the others have.
func TestAPermitEndsWithThePodThatUsedIt(t *testing.T) {
	d := decider{s: &Snapshot{
		Profile: governing(build.Profile("shop", "web", v1alpha1.RuntimeJVM, build.Sizing(v1alpha1.SizingInPlaceOrEvict))),
	}, st: NewState(), now: began}
	d.out.rollout.State = rollout.State{
		Lowerings: []rollout.Lowering{{
			Container: "app", From: memory.Size{Limit: memory.GiB}, To: memory.Size{Limit: 400 * memory.MiB}, At: began,
		}},
		Rollout: rollout.Rollout{Decrease: true, Targets: map[rollout.Key]memory.Size{}},
		Steps:   []rollout.Step{{Pod: "web-1", Phase: rollout.AwaitingSuccessor, At: began}},
	}
	if permit := d.permit(); permit == nil || permit.Number != began.Unix() {
		t.Fatalf("the permit of the eviction is %+v", permit)
	}
	d.s.Governed = []*corev1.Pod{build.Pod("shop", "web-2").Container("app", build.Limit("400Mi")).Obj()}
	if permit := d.permit(); permit != nil {
		t.Errorf("web-2 was created with the lower limit, and the permit is still %+v", permit)
	}
}

// TestPermitsOfBothKindsAreNumberedByTime: a webhook that used one gives no pod the lower limit for an earlier one.
func TestPermitsOfBothKindsAreNumberedByTime(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingOnCreate, sizeMi(256, 512), 60*memory.MiB, 3)
	d.run(26*time.Hour+10*time.Minute, 2*time.Minute)
	if permit := d.shown.Canary; permit == nil || permit.Number != d.now.Truncate(time.Hour).Unix() {
		t.Errorf("at %s the permit is %+v", d.now, permit)
	}
}

// TestOneNewPodIsTheFirstWithALimit: where its owner gives it none. After a kill at it, new pods get none for a week.
func TestOneNewPodIsTheFirstWithALimit(t *testing.T) {
	t.Parallel()
	for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace} {
		d := newDay(t, mode, sizeMi(64, 0), 60*memory.MiB, 3)
		limited := func() (n int) {
			for _, limit := range d.limits() {
				if limit > 0 {
					n++
				}
			}
			return n
		}
		d.run(26*time.Hour+10*time.Minute, 2*time.Minute)
		if n := limited(); n > 0 {
			d.fail("%s: %d pods that run were given a limit: %v", mode, n, d.limits())
		}
		d.deploy("rollout restart")
		if n := limited(); n != 1 {
			d.fail("%s: %d of 3 pods were created with a limit, want 1: %v", mode, n, d.limits())
		}
		d.run(30*time.Minute, 30*time.Second)
		d.deploy("rollout restart after the watch")
		if n := limited(); n != 3 {
			d.fail("%s: %d of 3 pods were created with a limit after the watch: %v", mode, n, d.limits())
		}
		d.burst = 300 * memory.MiB
		d.run(20*time.Second, 10*time.Second)
		d.burst = 0
		d.run(time.Minute, 10*time.Second)
		if !strings.Contains(strings.Join(d.log, "\n"), "is rolled back from new pods, to none") {
			d.fail("%s: nothing says that the limit is rolled back", mode)
		}
		d.deploy("rollout restart after a kill")
		if n := limited(); n != 0 {
			d.fail("%s: after a kill at the first limit new pods get %v", mode, d.limits())
		}
	}
}

// TestTheNextRunOfAJobGetsALowerLimit: one that runs keeps what it began with, also where pods are resized in place.
func TestTheNextRunOfAJobGetsALowerLimit(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 60*memory.MiB, 2)
	d.of.APIVersion, d.of.Kind = "batch/v1", "CronJob"
	d.run(26*time.Hour+10*time.Minute, 2*time.Minute)
	if n := d.lowered(); n > 0 {
		d.fail("%d runs were lowered: %v", n, d.limits())
	}
	d.pods = nil // most of the time there is no run
	d.run(2*time.Minute, 30*time.Second)
	d.scale()
	if n := d.lowered(); n != 1 {
		d.fail("%d of 2 runs were created with a lower limit, want 1: %v", n, d.limits())
	}
	d.run(30*time.Minute, 30*time.Second)
	d.deploy("the runs after the watch")
	if n := d.lowered(); n != 2 {
		d.fail("%d of 2 runs were created with a lower limit after the watch: %v", n, d.limits())
	}
}

// TestARollbackHoldsForTheNextRelease: a service that got slow was not killed, so that nothing else knows the limit.
func TestARollbackHoldsForTheNextRelease(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 60*memory.MiB, 3)
	d.named.Spec.Sizing.Disruption = &v1alpha1.DisruptionSpec{RollbackQuery: "errors"}
	series := 0
	d.series = &series
	for range 30 * 60 {
		if d.run(time.Minute, time.Minute); d.lowered() > 0 {
			break
		}
	}
	d.run(time.Minute, 30*time.Second)
	series = 1
	d.run(time.Minute, 30*time.Second)
	if series = 0; d.lowered() > 0 || !strings.Contains(strings.Join(d.log, "\n"), "rolled back from every pod") {
		d.fail("the lower limit is not rolled back: %v", d.limits())
	}
	for _, d.image = range []string{"web:2", "web:3"} {
		d.need[d.image] = d.need["web:1"]
		d.deploy("a release")
		for range 36 {
			if d.run(time.Hour, 5*time.Minute); d.lowered() > 0 {
				d.fail("%s is lowered again within the week: %v", d.image, d.limits())
			}
		}
	}
	d.run(5*24*time.Hour, 5*time.Minute)
	if d.lowered() == 0 {
		d.fail("nothing is lowered when the week is over: %v", d.limits())
	}
}

// TestAPauseGivesNewPodsNoLimitThatDidHarm: with OnCreate running pods keep it.
func TestAPauseGivesNewPodsNoLimitThatDidHarm(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingOnCreate, sizeMi(256, 512), 60*memory.MiB, 3)
	d.run(26*time.Hour+10*time.Minute, 2*time.Minute)
	d.deploy("rollout restart")
	d.run(30*time.Minute, 30*time.Second)
	d.deploy("rollout restart after the watch")
	if n := d.lowered(); n != 3 {
		d.fail("%d of 3 pods have the lower limit: %v", n, d.limits())
	}
	d.pause = "memfit.dev/pause on Namespace shop"
	d.burst = 100 * memory.MiB
	d.run(time.Minute, 10*time.Second)
	d.replicas++
	d.scale()
	if got := slices.Max(d.limits()); got < d.owner.Limit {
		d.fail("after the rollback a new pod has %s: %v", got, d.limits())
	}
}

// TestTheOwnersQueryGuardsNewPods: the first one gets the lower limit when the query has no series, and a series while
// it is watched takes that back.
func TestTheOwnersQueryGuardsNewPods(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingOnCreate, sizeMi(256, 512), 60*memory.MiB, 3)
	d.named.Spec.Sizing.Disruption = &v1alpha1.DisruptionSpec{RollbackQuery: "errors"}
	if got := (&Snapshot{Profile: d.named}).RollbackQuery(); got != "errors" {
		t.Errorf("the query of a profile with OnCreate is %q", got)
	}
	series := 1
	d.series = &series
	d.run(26*time.Hour+10*time.Minute, 2*time.Minute)
	d.deploy("rollout restart")
	if n := d.lowered(); n > 0 {
		d.fail("%d pods were created with a lower limit although the query has a series", n)
	}
	d.run(time.Minute, 30*time.Second)
	text := ""
	for _, c := range d.shown.Conditions {
		text += c.Message + "\n"
	}
	if !strings.Contains(text, "waits: sizing.disruption.rollbackQuery returned 1 series") {
		t.Errorf("no condition has what the lower limit waits for:\n%s", text)
	}

	series = 0
	d.run(time.Hour, time.Minute)
	d.deploy("rollout restart")
	if n := d.lowered(); n != 1 {
		d.fail("%d pods were created with a lower limit, want 1: %v", n, d.limits())
	}
	series = 2
	d.run(2*time.Minute, 30*time.Second)
	const why = "rolled back from every pod that has it, to 512Mi, because rollbackQuery returned 2 series"
	if !strings.Contains(strings.Join(d.log, "\n"), why) {
		d.fail("the lower limit is not rolled back")
	}
}

// TestALimitThatTheOwnerSetsAfterARollbackToNoneIsRaised: without one, new pods get none for a week. With one, they get
// at least that, and more where more is recommended.
func TestALimitThatTheOwnerSetsAfterARollbackToNoneIsRaised(t *testing.T) {
	for _, tc := range []struct{ owner, recommended, want memory.Bytes }{
		{0, 256 * memory.MiB, 0},
		{128 * memory.MiB, 256 * memory.MiB, 256 * memory.MiB},
		{512 * memory.MiB, 256 * memory.MiB, 512 * memory.MiB},
	} {
		for _, pause := range []string{"", "memfit.dev/pause on Namespace shop"} {
			e := &evidence{Program: "p", Owner: memory.Size{Limit: tc.owner}}
			e.Running = memory.Size{Limit: tc.owner}
			st := NewState()
			st.containers["app"] = []*evidence{e}
			d := decider{s: &Snapshot{paused: pause}, st: st, now: began}
			d.rollout.State.Reverts = []rollout.Revert{{
				Container: "app", Program: "p", Tried: memory.Size{Limit: 100 * memory.MiB},
				Restored: memory.Size{Limit: rollout.NoLimit}, At: began.Add(-time.Hour),
			}}
			want := tc.want
			if pause != "" {
				want = tc.owner
			}
			c := d.creationOf("app", memory.Size{Limit: tc.recommended})
			if got := c.size().Limit; got != want {
				t.Errorf("paused %q, the owner's %s, recommended %s: new pods get %s, want %s", pause, tc.owner,
					tc.recommended, got, want)
			}
		}
	}
}

// TestAPodThatNoNodeHasTakenHoldsNothing: what it requests may be why it is pending, and others are not to have that.
func TestAPodThatNoNodeHasTakenHoldsNothing(t *testing.T) {
	pod := func(name, limit string) *build.PodWrapper {
		return build.Pod("shop", name).Container("app", build.Limit(limit), build.Request(limit))
	}
	pods := []*corev1.Pod{pod("web-2", "20Gi").Obj(), pod("web-1", "12Gi").On("n1").Obj()}
	st := NewState()
	st.readPrograms(&Snapshot{Pods: pods, Governed: pods, Template: pods[0]}, began)
	for _, e := range st.containers["app"] {
		if e.Running.Limit > 12*memory.GiB || e.HighestLimit > 12*memory.GiB {
			t.Errorf("held is %v, and the most was %s, of a pod that never ran", e.Running, e.HighestLimit)
		}
	}
	if len(st.containers["app"]) == 0 {
		t.Error("no program is known")
	}
}

// TestTheNodesThatTookPodsAreRemembered: a workload that sleeps at night, whose nodes are gone then, and also where
// memfit was restarted meanwhile.
func TestTheNodesThatTookPodsAreRemembered(t *testing.T) {
	step := func(st *State, now time.Time, nodes ...memory.Bytes) (*State, string) {
		s := &Snapshot{
			Owner: memory.Workload{Ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
			Profile: governing(
				build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingOnCreate)),
			),
		}
		s.Facts.NodeSize, s.Facts.LargestNode = map[string]memory.Bytes{"huge": 512 * memory.GiB}, 512*memory.GiB
		for i, size := range nodes {
			name := string(rune('a' + i))
			s.Facts.NodeSize[name] = size
			s.Governed = append(s.Governed, build.Pod("shop", name).On(name).Container("app").Obj())
		}
		s.Pods = s.Governed
		st, e := Step(st, s, now)
		return st, e.Status.LargestNode.String()
	}
	exact := 14*memory.GiB + 1
	if _, got := step(NewState(), began, exact); got != strconv.FormatInt(int64(exact), 10) {
		t.Errorf("the largest node is %s: a request of so much fits no node", got)
	}
	st, got := step(NewState(), began, 14*memory.GiB, 7*memory.GiB)
	if got != "14Gi" {
		t.Errorf("the largest node is %s, want that which a pod runs on", got)
	}
	if st, got = step(afterRestart(t, st), began.Add(34*24*time.Hour)); got != "14Gi" {
		t.Errorf("the largest node is %s when none is there", got)
	}
	if _, got = step(st, began.Add(37*24*time.Hour), 7*memory.GiB); got != "7Gi" {
		t.Errorf("the largest node is %s, on which no pod ran for weeks", got)
	}
}

// TestAnotherNodeOfThatSizeMayNotCome: the pool was replaced by one of smaller nodes, beside which is one that takes no
// such pods.
func TestAnotherNodeOfThatSizeMayNotCome(t *testing.T) {
	small := build.Pod("shop", "web-1").On("a").Container("app", build.Request("12Gi")).Obj()
	waiting := func(request, reason string, since time.Duration) *corev1.Pod {
		pod := build.Pod("shop", "web-2").Container("app", build.Request(request)).Obj()
		pod.CreationTimestamp = metav1.NewTime(began.Add(-since))
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason,
		}}
		return pod
	}
	const unschedulable, gib = corev1.PodReasonUnschedulable, memory.GiB
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		// another is the size of a node without pods of the workload, and days ago was the last pod on the large node.
		another memory.Bytes
		days    int
		want    memory.Bytes
	}{
		"a pod waits for it": {pods: []*corev1.Pod{waiting("20Gi", unschedulable, 11*time.Minute)}, want: 14 * gib},
		"beside pods on the small nodes": {
			pods: []*corev1.Pod{waiting("20Gi", unschedulable, time.Hour), small}, want: 14 * gib,
		},
		"not for long, as when one is brought": {
			pods: []*corev1.Pod{waiting("20Gi", unschedulable, 5*time.Minute)}, want: 61 * gib,
		},
		"for its turn in a queue": {
			pods: []*corev1.Pod{waiting("20Gi", corev1.PodReasonSchedulingGated, time.Hour)}, want: 61 * gib,
		},
		"for something else than memory": {pods: []*corev1.Pod{waiting("12Gi", unschedulable, time.Hour)}, want: 61 * gib},
		"until the large nodes are less full": {
			pods: []*corev1.Pod{waiting("20Gi", unschedulable, time.Hour)}, another: 61 * gib, want: 61 * gib,
		},
		"pods run on smaller nodes for days": {pods: []*corev1.Pod{small}, days: 3, want: 14 * gib},
		"for a night":                        {pods: []*corev1.Pod{small}, days: 1, want: 61 * gib},
		"beside a large one":                 {pods: []*corev1.Pod{small}, another: 61 * gib, days: 3, want: 61 * gib},
		"no pods run for a month":            {days: 34, want: 61 * gib},
		"beside one that keeps more for itself now": {
			pods: []*corev1.Pod{small}, another: 60 * gib, days: 3, want: 14 * gib,
		},
	} {
		st, s := NewState(), &Snapshot{Governed: tc.pods}
		st.RanOn = ranOn{Size: 61 * gib, Day: began.Truncate(24*time.Hour).AddDate(0, 0, -tc.days)}
		s.Facts.NodeSize = map[string]memory.Bytes{"a": 14 * gib, "gpu": 512 * gib, "b": tc.another}
		if st.recordNodes(s, began); st.RanOn.Size != tc.want {
			t.Errorf("%s: the largest node is %s, want %s", name, st.RanOn.Size, tc.want)
		}
	}
}

// TestOtherProgramsGetWhatTheProfileAllows: a size was found before limit.max was lowered, and a checkpoint that
// another client wrote has more programs than the API server accepts.
func TestOtherProgramsGetWhatTheProfileAllows(t *testing.T) {
	pod := build.Pod("shop", "web-1").On("a").Container("app", build.Limit("256Mi")).Obj()
	s, st := snapshotOf(pod), NewState()
	st, _ = Step(st, s, began)
	s.Profile = governing(build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingOnCreate),
		func(spec *v1alpha1.MemoryProfileSpec) {
			spec.Sizing.Limit = &v1alpha1.Bounds{Max: v1alpha1.NewMemoryQuantity((512 * memory.MiB).Quantity())}
		}))
	for _, program := range []string{"v1", "v2", "v3", "v4"} {
		st.containers["app"] = append(st.containers["app"], &evidence{
			Program: program, Owner: sizeMi(0, 128), Running: sizeMi(0, 1024), Seen: began, Since: began,
		})
	}
	d := decider{s: s, st: st, now: began}
	d.out.status.Containers = []v1alpha1.ContainerRecommendation{{Container: "app", Program: st.newest("app").Program}}
	d.setOtherPrograms()
	others := d.out.status.Containers[0].OtherPrograms
	if len(others) != 2 {
		t.Fatalf("%d other programs have a size, want two", len(others))
	}
	if got := profile.SizeOf(others[0].NewPods).Limit; got != 512*memory.MiB {
		t.Errorf("new pods are said to get %s with a limit.max of 512Mi", got)
	}
}

// TestPodsOfAnEarlierReleaseGetWhatItNeeds: the leader has not seen the pod that is created, and the newest pod is of a
// release with other memory.
func TestPodsOfAnEarlierReleaseGetWhatItNeeds(t *testing.T) {
	t.Parallel()
	first, second := sizeMi(128, 256), sizeMi(300, 600)
	for name, before := range map[string]func(*day){
		"a rollback": func(d *day) {
			d.need["web:1"] = 300 * memory.MiB
			d.run(10*time.Minute, 30*time.Second)
			d.image, d.owner = "web:2", second
			d.deploy("release")
			d.run(5*time.Minute, 30*time.Second)
			d.restart()
			d.step()
		},
		"scaling during a canary, killed since": func(d *day) {
			d.image, d.owner, d.replicas = "web:2", second, 4
			d.scale()
			d.need["web:1"] = 300 * memory.MiB
			d.run(10*time.Minute, 30*time.Second)
		},
		"a rollback during a pause, to what its pods had": func(d *day) {
			d.need["web:1"] = 300 * memory.MiB
			d.run(10*time.Minute, 30*time.Second)
			d.deploy("restart")
			d.run(5*time.Minute, 30*time.Second)
			d.image, d.owner = "web:2", second
			d.deploy("release")
			d.pause = "Deployment shop/web"
			d.run(5*time.Minute, 30*time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDay(t, v1alpha1.SizingOnCreate, first, 100*memory.MiB, 3)
			d.need["web:2"] = 200 * memory.MiB
			d.run(10*time.Minute, 30*time.Second)
			before(d)
			d.image, d.owner = "web:1", first
			d.create()
			if got := d.pods[len(d.pods)-1].size.Limit; got < 300*memory.MiB {
				d.fail("the pod is created with %s", got)
			}
			all := d.shown.Containers[0].OtherPrograms
			if len(all) != 1 || profile.SizeOf(*all[0].Owner) != first {
				d.fail("other programs are %+v", all)
			}
			d.owner = sizeMi(100, 200)
			d.create()
			if got := d.pods[len(d.pods)-1].size; got != d.owner {
				d.fail("with other numbers of its owner the pod is created with %s", got)
			}
		})
	}
}

// TestDecreaseNeverGivesNoFirstLimitToAPodWithARequest: a request of the whole pod limits nothing.
func TestDecreaseNeverGivesNoFirstLimitToAPodWithARequest(t *testing.T) {
	p := governing(build.Profile("shop", "web", v1alpha1.RuntimeNative, func(spec *v1alpha1.MemoryProfileSpec) {
		spec.Sizing.Decrease = v1alpha1.DecreaseNever
	}))
	for limit, want := range map[string]memory.Size{"": sizeMi(100, 0), "512Mi": sizeMi(100, 200)} {
		whole := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}
		if limit != "" {
			whole.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
		}
		c := Managed(p, build.Pod("shop", "web-1").Container("app", build.Request("64Mi")).Whole(whole).Obj())[0]
		if got, _ := c.ownPolicy().Bound(sizeMi(100, 200), sizeMi(64, 0)); got != want {
			t.Errorf("with a limit of %q for the whole pod it is %s, want %s", limit, got, want)
		}
	}
}
