// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/shape"
)

// TestAppliedGoesByWhatTheKubeletSays: replicas that share their template in the cache may have other sizes, because
// one of them was resized and the kubelet has not carried it out in another.
func TestAppliedGoesByWhatTheKubeletSays(t *testing.T) {
	size := func(limit string) corev1.ResourceRequirements {
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
		return corev1.ResourceRequirements{Limits: list, Requests: list}
	}
	template := []corev1.Container{{Name: "app", Resources: size("256Mi")}, {Name: "side", Resources: size("64Mi")}}
	pod := func(actual string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: template}}
		if actual != "" {
			has := size(actual)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Resources: &has}}
		}
		return p
	}
	s := &Snapshot{
		Profile:  &profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}},
		Governed: []*corev1.Pod{pod("256Mi"), pod("128Mi"), pod(""), pod("512Mi")},
	}
	v := &result{recommended: map[string]memory.Size{"app": {Limit: 256 * memory.MiB, Request: 256 * memory.MiB}}}
	if !alike(s.Governed[0], s.Governed[1]) {
		t.Fatal("the pods are not alike, so this tests nothing")
	}
	if with, without := countApplied(s, v); with != 2 || without != 2 {
		t.Errorf("%d pods have the size and %d have not, want 2 and 2", with, without)
	}
}

// TestNextPod: a next pod is announced only of a workload that makes another one. A failed Job does not, and the pods
// that a controller creates one by one, as Tekton's TaskRuns, are workloads of their own.
func TestNextPod(t *testing.T) {
	limit := resource.MustParse("256Mi")
	v := &result{}
	v.status.Containers = []v1alpha1.ContainerRecommendation{
		{Container: "app", Recommended: &v1alpha1.Size{Limit: &limit}},
	}
	for ref, want := range map[memory.WorkloadRef]string{
		{APIVersion: "apps/v1", Kind: "Deployment"}: "No running pods; for the next pod, the recommended limit is 256Mi",
		{APIVersion: "batch/v1", Kind: "CronJob"}:   "No running pods; for the next run, the recommended limit is 256Mi",
		{APIVersion: "batch/v1", Kind: "Job"}: "No running pods, and this Job may never create another; if it does, the " +
			"recommended limit is 256Mi. Another Job has its own recommendation",
		{APIVersion: "tekton.dev/v1", Kind: "TaskRun"}: "No running pods, and this TaskRun may never create another; if " +
			"it does, the recommended limit is 256Mi. Another TaskRun has its own recommendation",
		{APIVersion: "v1", Kind: "Pod"}: "No running pods, and this Pod may never create another; if it does, the " +
			"recommended limit is 256Mi. Another Pod has its own recommendation",
	} {
		if got := nextPod(&Snapshot{Owner: memory.Workload{Ref: ref}}, v); got != want {
			t.Errorf("%s: %q, want %q", ref.Kind, got, want)
		}
	}
}

// TestNewPodsGet: while no pod has been watched with a lower limit, the condition does not promise it to new pods.
func TestNewPodsGet(t *testing.T) {
	size := func(limit string) *v1alpha1.Size {
		q := resource.MustParse(limit)
		return &v1alpha1.Size{Limit: &q}
	}
	for want, c := range map[string]v1alpha1.ContainerRecommendation{
		"new pods get it": {Container: "app", Recommended: size("90Mi"), NewPods: size("90Mi")},
		"new pods get limit 512Mi in container app, until one pod has been watched with 90Mi": {
			Container: "app", Recommended: size("90Mi"), NewPods: size("512Mi"),
		},
		"new pods get no limit in container app, until one pod has been watched with 90Mi": {
			Container: "app", Recommended: size("90Mi"), NewPods: &v1alpha1.Size{},
		},
	} {
		v := &result{}
		v.status.Containers = []v1alpha1.ContainerRecommendation{c}
		if got := newPodsGet(&Snapshot{}, v); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestAppliedHasWhyThereIsNoRecommendation: who reads only this condition learns what is missing.
func TestAppliedHasWhyThereIsNoRecommendation(t *testing.T) {
	v := &result{}
	v.status.Summary = "Hold: no memory samples yet"
	got := appliedCondition(&Snapshot{Profile: &profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}}}, v)
	if got.Reason != v1alpha1.ReasonNotEnoughEvidence || got.Message != "No recommendation yet: "+v.status.Summary {
		t.Errorf("%s: %s", got.Reason, got.Message)
	}
}

// TestALeakInDoubtIsNotToldAsOne: what may be a start that still fills is nobody's alarm, and it does not hide one.
func TestALeakInDoubtIsNotToldAsOne(t *testing.T) {
	leak := shape.Ramps{Instances: 2, PerMinute: 300 * memory.MiB, First: 64 * memory.MiB, Last: 270 * memory.MiB}
	doubted := leak
	doubted.Doubt = "it is young"
	climb := shape.Shape{Kind: shape.Climb, Confidence: memory.Medium, Summary: "climbs"}
	for name, tc := range map[string]struct {
		leaks  map[string]shape.Ramps
		shapes map[string]shape.Shape
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"a leak": {
			map[string]shape.Ramps{"app": leak}, nil, metav1.ConditionTrue, v1alpha1.ReasonLeak, "Container app: leak: 2 inst",
		},
		"in doubt": {
			map[string]shape.Ramps{"app": doubted}, nil, metav1.ConditionUnknown, v1alpha1.ReasonNotEnoughEvidence,
			"after 0s: a leak, or still loading after its start, because it is young",
		},
		"in doubt beside a leak": {
			map[string]shape.Ramps{"app": doubted, "side": leak}, nil, metav1.ConditionTrue, v1alpha1.ReasonLeak,
			"Container side: leak: ",
		},
		"in doubt beside a climb": {
			map[string]shape.Ramps{"app": doubted}, map[string]shape.Shape{"side": climb}, metav1.ConditionTrue,
			v1alpha1.ReasonClimb, "Container side: climbs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := &result{leaks: tc.leaks, shapes: tc.shapes}
			for _, container := range []string{"app", "side"} {
				v.status.Containers = append(v.status.Containers, v1alpha1.ContainerRecommendation{Container: container})
			}
			got := driftCondition(&Snapshot{Profile: &profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}}}, v)
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("got %s %s: %s", got.Status, got.Reason, got.Message)
			}
		})
	}
}

// TestKillsBelowWhatWasHeldBefore: a program that held 300Mi for a day and dies below that, at limits that it is given
// since, may still be filling what it needs.
func TestKillsBelowWhatWasHeldBefore(t *testing.T) {
	monday := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	kill := func(at time.Time, limit memory.Bytes, age time.Duration) memory.OOMKill {
		return memory.OOMKill{Kind: memory.OOMMainProcess, Time: at, Limit: limit * memory.MiB, Uptime: age}
	}
	used := func(peak memory.Bytes) *history.Container {
		h := history.New()
		for i := range 48 {
			h.Add(memory.Sample{
				Container: memory.ContainerRef{UID: "u"}, Started: monday, Time: monday.Add(time.Duration(i) * 30 * time.Minute),
				RSS: peak * memory.MiB, HasRSS: true, Exact: true,
			}, 512*memory.MiB)
		}
		return h
	}
	tuesday := monday.Add(30 * time.Hour)
	leak := []memory.OOMKill{kill(tuesday, 64, 10*time.Second), kill(tuesday.Add(time.Minute), 256, 42*time.Second)}
	earlier := append([]memory.OOMKill{kill(monday.Add(3*time.Hour), 512, 3*time.Hour)}, leak...)
	for name, tc := range map[string]struct {
		history *history.Container
		kills   []memory.OOMKill
		doubt   bool
	}{
		"it held more":                         {used(300), leak, true},
		"it held less":                         {used(200), leak, false},
		"nothing was measured":                 {nil, leak, false},
		"it held more, and was killed already": {used(300), earlier, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := containerInput{
				Input: recommend.Input{History: tc.history, Kills: tc.kills, Now: tuesday.Add(2 * time.Minute)},
			}
			got := (&State{}).leak(&in, nil)
			if got.Instances == 0 || (got.Doubt != "") != tc.doubt {
				t.Errorf("got %+v, want it in doubt: %t", got, tc.doubt)
			}
		})
	}
	if held := usedBefore(used(300), leak, 3); held != 0 {
		t.Errorf("one of three kills was forgotten, and yet %s were held before the first", held)
	}
}

// TestAllKillsAreCounted: 65 kills are 65 in the condition, as in status.oomKills, and 20 are kept in detail.
func TestAllKillsAreCounted(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	st, s := NewState(), &Snapshot{Profile: &profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}}}
	killed := st.ledger.UpdateCounters([]memory.KillCounter{{
		Container: memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}, Count: 65, Time: now,
	}}, nil, nil, now)
	total, details := killRecords(&st.ledger)
	if len(killed) != 65 || total != 65 || len(details) != oom.KillsKept {
		t.Fatalf("%d kills, total %d, %d in detail", len(killed), total, len(details))
	}
	for after, want := range map[time.Duration][2]string{
		time.Hour:      {"OOM kill in pod web-1 at ", "; 65 so far"},
		25 * time.Hour: {"No OOM kill in the last ", "24h"},
	} {
		c := oomCondition(s, st, now.Add(after))
		if !strings.HasPrefix(c.Message, want[0]) || !strings.HasSuffix(c.Message, want[1]) {
			t.Errorf("%s later: %q, want %q", after, c.Message, want)
		}
	}
}

// TestProblem: the column names what is wrong, the worst first, and a kill only as long as the size is not applied.
func TestProblem(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	killed := condition(v1alpha1.ConditionOOMObserved, metav1.ConditionTrue, v1alpha1.ReasonOOMKilled)
	applied := condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonUpToDate)
	waits := condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonModeRecommend)
	leaks := condition(v1alpha1.ConditionDriftDetected, metav1.ConditionTrue, v1alpha1.ReasonLeak)
	unsure := condition(v1alpha1.ConditionDriftDetected, metav1.ConditionUnknown, v1alpha1.ReasonNotEnoughEvidence)
	for name, c := range map[string]struct {
		all  []metav1.Condition
		want string
	}{
		"nothing known":      {nil, ""},
		"killed":             {[]metav1.Condition{killed, waits}, v1alpha1.ReasonOOMKilled},
		"killed and resized": {[]metav1.Condition{killed, applied}, ""},
		"a leak":             {[]metav1.Condition{killed, leaks, waits}, v1alpha1.ReasonLeak},
		"not yet classified": {[]metav1.Condition{unsure, waits}, ""},
		"stalled": {
			[]metav1.Condition{
				leaks, condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonCheckpointTooNew),
			}, v1alpha1.ReasonCheckpointTooNew,
		},
		"no usage": {
			[]metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUsageMissing)},
			v1alpha1.ReasonUsageMissing,
		},
		"young": {
			[]metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotEnoughEvidence)}, "",
		},
	} {
		if got := Problem(c.all); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAGuaranteedPodIsRecommendedWhatItGets: a request below the limit would make a pod of it that is Burstable, as
// would the exported patch, and no pod would ever have what is recommended.
func TestAGuaranteedPodIsRecommendedWhatItGets(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingOnCreate, sizeMi(512, 512), 60*memory.MiB, 0)
	d.guaranteed, d.replicas = true, 2
	d.scale()
	d.run(27*time.Hour+10*time.Minute, 2*time.Minute)
	for range 2 { // the first new pod is watched
		d.deploy("a restart")
		d.run(2*time.Hour, 2*time.Minute)
	}
	size := d.shown.Containers[0].Recommended
	if size == nil || size.Limit.Cmp(*size.Request) != 0 || size.Limit.Cmp(resource.MustParse("512Mi")) >= 0 {
		d.fail("%+v is recommended", size)
	}
	for _, p := range d.pods {
		if p.shown().Status.QOSClass != corev1.PodQOSGuaranteed {
			d.fail("%s has %s", p.name, p.size)
		}
	}
	applied := meta.FindStatusCondition(d.shown.Conditions, v1alpha1.ConditionApplied)
	if applied.Status != metav1.ConditionTrue {
		d.fail("Applied is %s: %s", applied.Status, applied.Message)
	}
}
