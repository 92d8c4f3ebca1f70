// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

var trialStart = time.Date(2026, 11, 28, 18, 3, 0, 0, time.UTC)

// left returns at which of the times pods are left unchanged.
func left(after ...time.Duration) (all []time.Duration, last trial) {
	for _, d := range after {
		var leave bool
		if last, leave = last.next(trialStart.Add(d)); leave {
			all = append(all, d)
		}
	}
	return all, last
}

// TestABurstIsChanged: a watch may lag behind 500 pods of a second, and behind a rollout for a minute.
func TestABurstIsChanged(t *testing.T) {
	var times []time.Duration
	for i := range 500 {
		times = append(times, time.Duration(i)*2*time.Millisecond)
	}
	got, last := left(append(times, 59*time.Second)...)
	if len(got) > 0 || last.changed != 501 {
		t.Errorf("left at %v, changed %d", got, last.changed)
	}
}

// TestPodsAreLeftAsTheyComeWhenNoneThatWasChangedComes: a ReplicaSet's attempts, of which a policy refuses each that
// memfit changed. After each hold, which doubles up to a day, memfit changes pods again, for ten seconds.
func TestPodsAreLeftAsTheyComeWhenNoneThatWasChangedComes(t *testing.T) {
	var now trial
	at, holds := trialStart, []time.Duration{}
	for range 13 {
		began := at
		for retry := 5 * time.Millisecond; ; retry *= 2 {
			var leave bool
			if now, leave = now.next(at); leave {
				break
			}
			at = at.Add(retry)
		}
		first := !now.unchangedSeen
		var refused bool
		if now, refused = now.unchangedCreated(at); refused == first {
			t.Fatalf("hold %d: with the first pod that was left %t, the policy is named: %t", len(holds), first, refused)
		}
		if waited := at.Sub(began); waited > 82*time.Second || !first && waited > 21*time.Second {
			t.Errorf("hold %d: the ReplicaSet had no pod for %s", len(holds), waited)
		}
		if first {
			at = now.until
			continue
		}
		holds = append(holds, now.until.Sub(at))
		if _, leave := now.next(now.until.Add(-time.Nanosecond)); !leave {
			t.Errorf("hold %d ends before its time", len(holds))
		}
		at = now.until
	}
	if holds[0] != 10*time.Minute || holds[1] != 20*time.Minute || holds[8] != 24*time.Hour || holds[11] != 24*time.Hour {
		t.Errorf("pods are left for %v", holds)
	}
	if !now.first.Equal(trialStart) {
		t.Errorf("it began at %s", now.first)
	}
}

// TestAnOutageIsNoPolicy: nothing is created for a while, as where a quota is full or the webhook of another is down.
// The first pod after it may be one that memfit leaves unchanged, and the next one is changed, and created.
func TestAnOutageIsNoPolicy(t *testing.T) {
	for outage := time.Second; outage < 10*time.Minute; outage += time.Second {
		var now trial
		at, retry, leave := trialStart, 5*time.Millisecond, false
		for ; ; at, retry = at.Add(retry), 2*retry {
			if now, leave = now.next(at); at.Sub(trialStart) >= outage {
				break
			}
		}
		if !leave {
			continue // it was changed, and created
		}
		now, refused := now.unchangedCreated(at)
		if _, leave = now.next(at.Add(probeTime)); leave || refused {
			t.Errorf("%s: the next pod is left: %t; a policy is named: %t", outage, leave, refused)
		}
	}
}

// TestPodsThatAreRefusedForAnotherReasonAreChanged: beyond a quota, those that are left unchanged do not come either.
// Of a controller's attempts, three of four are changed, so that the first that succeeds most likely is.
func TestPodsThatAreRefusedForAnotherReasonAreChanged(t *testing.T) {
	var now trial
	at, unchanged, attempts := trialStart, 0, 0
	for retry := 5 * time.Millisecond; attempts < 200; retry = min(2*retry, 16*time.Minute) {
		var leave bool
		if now, leave = now.next(at); leave {
			unchanged++
		}
		at, attempts = at.Add(retry), attempts+1
	}
	if now.lastHold != 0 || unchanged == 0 || unchanged > attempts/4 {
		t.Errorf("%d of %d attempts were left unchanged, held for %s", unchanged, attempts, now.lastHold)
	}
}

// TestATrialIsForgotten after two days without a creation, also one for which pods were left.
func TestATrialIsForgotten(t *testing.T) {
	if got, _ := left(0, 0, 0, 48*time.Hour-time.Second); len(got) != 1 {
		t.Errorf("a workload that runs daily: left at %v", got)
	}
	if got, last := left(0, 0, 0, 48*time.Hour, 49*time.Hour); len(got) > 0 || last.changed != 2 {
		t.Errorf("after two days: left at %v, changed %d", got, last.changed)
	}
	got, last := left(0, 0, 0, time.Minute, 72*time.Hour, 73*time.Hour)
	if len(got) != 1 || last.lastHold != 0 {
		t.Errorf("after a hold and two days: left at %v, the next hold doubles %s", got, last.lastHold)
	}
}

// TestACreationThatFailedOnceIsNoPolicy: the name was taken, or the API server restarted.
func TestACreationThatFailedOnceIsNoPolicy(t *testing.T) {
	if got, _ := left(0, time.Hour, 2*time.Hour); len(got) > 0 {
		t.Errorf("left at %v", got)
	}
	if got, _ := left(0, time.Hour, 2*time.Hour, 3*time.Hour); len(got) != 1 {
		t.Errorf("a run that fails each hour: left at %v", got)
	}
}

func TestTheEventSaysWhatHappenedAndWhatToDo(t *testing.T) {
	_, of := left(0, time.Second, 2*time.Second, time.Minute)
	of.unchangedSeen = true
	of, _ = of.unchangedCreated(trialStart.Add(time.Minute))
	const want = "none of the 3 new pods of Deployment web that memfit changed since 18:03:00Z was created, but two " +
		"that it left unchanged were: another admission policy refuses memfit's changes (see the FailedCreate Events of " +
		"the pods' controller). memfit leaves new pods unchanged until 18:14:00Z. Set sizing.limit.max or " +
		"sizing.requestPolicy to values that the policy allows, or exclude the workload"
	if got := of.note(web, trialStart.Add(time.Minute)); got != want {
		t.Error(got)
	}
}

var (
	web   = memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	owned = &metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{Kind: "ReplicaSet", UID: "replicaset", Controller: new(true)},
	}}
)

// trialsOf are trials that a watch follows, and what they report.
func trialsOf() (trials *Trials, reports *[]string) {
	reports = &[]string{}
	trials = &Trials{Report: func(_ memory.Workload, note string) { *reports = append(*reports, note) }}
	trials.begin()
	return trials, reports
}

// created is the metadata of a pod that was created at a time after the start, as memfit changed it or left it.
func created(after time.Duration, changed bool) *metav1.ObjectMeta {
	m := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(trialStart.Add(after))}
	if changed {
		m.Annotations = map[string]string{v1alpha1.InjectedAnnotation: "{}"}
	}
	return m
}

func TestPodsThatComeEndATrial(t *testing.T) {
	trials, reports := trialsOf()
	leave := func(after time.Duration) bool {
		return trials.leaveUnchanged(owned, web, trialStart.Add(after), false)
	}
	came := func(of memory.WorkloadRef, after time.Duration, changed bool) {
		trials.observe(t.Context(), created(after, changed), memory.Workload{Ref: of}, trialStart.Add(after))
	}
	onNode := web
	onNode.NodeClass = "m5.large"
	for range minChanged {
		leave(0)
	}
	came(onNode, 0, true)
	for range minChanged {
		if leave(time.Minute) {
			t.Error("a pod is left although one of its workload came")
		}
	}
	came(onNode, time.Minute, false) // nothing is compared yet
	if !leave(2*time.Minute) || !leave(2*time.Minute+time.Second) || len(*reports) != 0 {
		t.Errorf("with no pod since, it was reported %d times", len(*reports))
	}
	came(onNode, 2*time.Minute, false)
	came(onNode, 2*time.Minute+time.Second, false)
	for range minChanged {
		if leave(2*time.Minute + probeTime) {
			t.Error("one unchanged pod came, and the next is not changed")
		}
	}
	if !leave(2*time.Minute + 2*probeTime) {
		t.Error("memfit changes pods although again none came")
	}
	came(onNode, 2*time.Minute+2*probeTime, false)
	came(onNode, 2*time.Minute+2*probeTime, false)
	if !leave(11*time.Minute) || !trials.active(onNode, trialStart.Add(11*time.Minute)) || len(*reports) != 1 {
		t.Errorf("with only an unchanged pod since, it was reported %d times", len(*reports))
	}
	came(web, 11*time.Minute, true)
	if leave(11*time.Minute) || trials.active(web, trialStart.Add(11*time.Minute)) {
		t.Error("a pod is left although one that memfit changed came late")
	}
}

// TestATrialOfAnIdentityThatIsRewritten: another webhook rewrites the label that identifies the workload of a pod after
// memfit, so that the pod is seen as one of another workload. Its controller stays the same.
func TestATrialOfAnIdentityThatIsRewritten(t *testing.T) {
	trials, reports := trialsOf()
	leave := func(after time.Duration) bool {
		return trials.leaveUnchanged(owned, web, trialStart.Add(after), false)
	}
	came := func(after time.Duration, changed bool) {
		pod := created(after, changed)
		pod.Namespace, pod.OwnerReferences = web.Namespace, owned.OwnerReferences
		other := web
		other.Name = "rewritten"
		trials.observe(t.Context(), pod, memory.Workload{Ref: other}, trialStart.Add(after))
	}
	for range minChanged {
		leave(0)
	}
	came(time.Second, true)
	if leave(time.Minute) {
		t.Error("a pod is left although one that memfit changed came")
	}
	for range minChanged {
		leave(time.Minute)
	}
	if !leave(2 * time.Minute) {
		t.Error("memfit changes pods although none came")
	}
	came(2*time.Minute, false)
	for range minChanged {
		if leave(2*time.Minute + probeTime) {
			t.Error("one unchanged pod came, and the next is not changed")
		}
	}
	if !leave(2*time.Minute + 2*probeTime) {
		t.Error("memfit changes pods although again none came")
	}
	came(2*time.Minute+2*probeTime, false)
	if !leave(5*time.Minute) || len(*reports) != 1 || !strings.Contains((*reports)[0], web.Name) {
		t.Errorf("the pod that was left unchanged came, and was reported as %q", *reports)
	}
}

// TestWhatIsNotTried: without a watch that has begun, nothing is known about pods that come; a bare pod is not created
// again; and a dry run creates none.
func TestWhatIsNotTried(t *testing.T) {
	begun, reports := trialsOf()
	for name, tc := range map[string]struct {
		trials *Trials
		pod    *metav1.ObjectMeta
		dryRun bool
	}{
		"no trials": {pod: owned}, "no watch": {trials: &Trials{}, pod: owned},
		"a bare pod": {trials: begun, pod: &metav1.ObjectMeta{}}, "dry runs": {trials: begun, pod: owned, dryRun: true},
	} {
		for i := range 2 * minChanged {
			at := trialStart.Add(time.Duration(i) * time.Minute)
			if tc.trials.leaveUnchanged(tc.pod, web, at, tc.dryRun) {
				t.Errorf("%s: pod %d is left", name, i)
			}
		}
	}
	for _, minute := range []time.Duration{0, 0, 0, 1, 2, 2, 2, 3} {
		after := minute * time.Minute
		if begun.leaveUnchanged(owned, web, trialStart.Add(after), false) {
			begun.observe(t.Context(), created(after, false), memory.Workload{Ref: web}, trialStart.Add(after))
		}
	}
	if !begun.leaveUnchanged(owned, web, trialStart.Add(4*time.Minute), true) || len(*reports) != 1 {
		t.Error("a dry run shows another pod than would be created, or is reported")
	}
}

// TestTrialsAreBounded: beyond the bound pods are changed, and trials that are old make room.
func TestTrialsAreBounded(t *testing.T) {
	trials, _ := trialsOf()
	leave := func(i int, at time.Time) bool {
		of := web
		of.Name = fmt.Sprintf("web-%d", i)
		return trials.leaveUnchanged(owned, of, at, false)
	}
	for i := range maxTrials + 5 {
		leave(i, trialStart)
	}
	for range minChanged {
		leave(0, trialStart)
		leave(maxTrials, trialStart)
	}
	if len(trials.byWorkload) != maxTrials || !leave(0, trialStart.Add(time.Minute)) ||
		leave(maxTrials, trialStart.Add(time.Minute)) {
		t.Errorf("%d are remembered, with the wrong decisions", len(trials.byWorkload))
	}
	if leave(maxTrials, trialStart.Add(50*time.Hour)); len(trials.byWorkload) != 1 {
		t.Errorf("%d are remembered when all but one are old", len(trials.byWorkload))
	}
}

// TestALeftPodIsCountedAndItsCreatorWarned: the answer has no patch.
func TestALeftPodIsCountedAndItsCreatorWarned(t *testing.T) {
	h, pod, _ := served(t, "../../internal/inject/testdata/nodejs/node-512.yaml")
	h.Trials, _ = trialsOf()
	later := &shifted{}
	h.Clock = later
	body := reviewOf([]byte(strings.Replace(
		string(pod), `"annotations":{`,
		`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Runner","name":"r","uid":"u","controller":true}],`+
			`"annotations":{`, 1,
	)))
	for i := range minChanged {
		if got := asked(t, h, body); len(got.Patch) == 0 {
			t.Fatalf("pod %d is unchanged: %+v", i, got)
		}
	}
	later.by = time.Minute
	got := asked(t, h, body)
	if len(got.Patch) > 0 || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "PodsNotCreated") ||
		counted(t, h, outOfBounds, "refused") != 1 {
		t.Errorf("left without saying so: %+v", got)
	}
}

// shifted is a clock that is ahead.
type shifted struct{ by time.Duration }

func (c *shifted) Now() time.Time { return trialStart.Add(c.by) }

func (c *shifted) Since(at time.Time) time.Duration { return c.Now().Sub(at) }
