// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
)

func (d *day) waiting() (names []string) {
	for _, p := range d.pods {
		if p.waits {
			names = append(names, p.name)
		}
	}
	return names
}

func (d *day) applied() (reason, message string) {
	c := meta.FindStatusCondition(d.shown.Conditions, v1alpha1.ConditionApplied)
	return c.Reason, c.Message
}

// TestARequestThatNoNodeTakes: four pods of 128Mi use 300Mi each, in a cluster with room for requests of 1300Mi. By
// their use, three of four replicas fit.
func TestARequestThatNoNodeTakes(t *testing.T) {
	t.Parallel()
	noRight := rollout.Outcome{Kind: rollout.OutcomeNoRight, Why: "config/rbac/resize-pods grants the right"}
	for name, tc := range map[string]struct {
		mode       v1alpha1.SizingMode
		mayNot     func(rollout.Action) rollout.Outcome
		guaranteed bool
		// reason and says are those of Applied while the pod waits; stuck: until a person deletes it.
		reason, says string
		stuck        bool
	}{
		"OnCreate": {mode: v1alpha1.SizingOnCreate, reason: v1alpha1.ReasonUnschedulable, says: "the request is restored"},
		"InPlace":  {mode: v1alpha1.SizingInPlace, reason: v1alpha1.ReasonUnschedulable, says: "the request is restored"},
		"no right to resize": {
			mode: v1alpha1.SizingOnCreate, mayNot: func(rollout.Action) rollout.Outcome { return noRight },
			reason: v1alpha1.ReasonRefused,
			says:   "config/rbac/resize-pods grants the right: delete the pod (kubectl delete pod", stuck: true,
		},
		"no resize, but evictions": {
			mode: v1alpha1.SizingInPlaceOrEvict, mayNot: func(a rollout.Action) (o rollout.Outcome) {
				if !a.Evict {
					o = noRight
				}
				return o
			},
			reason: v1alpha1.ReasonUnschedulable, says: "the request is restored",
		},
		"Guaranteed": {
			mode: v1alpha1.SizingInPlace, guaranteed: true, reason: v1alpha1.ReasonUnschedulable,
			says: "the request is restored",
		},
	} {
		t.Run(name, func(t *testing.T) {
			owner := sizeMi(128, 512)
			if tc.guaranteed {
				owner = sizeMi(320, 320)
			}
			d := newDay(t, tc.mode, owner, 300*memory.MiB, 4)
			if d.guaranteed = tc.guaranteed; d.guaranteed {
				clear(d.templates)
			}
			d.run(3*time.Hour, time.Minute)
			if d.room, d.mayNot = 1300*memory.MiB, tc.mayNot; tc.guaranteed {
				d.room = 1410 * memory.MiB
			}
			d.deploy("a release")
			if len(d.waiting()) == 0 {
				d.fail("every pod fits")
			}
			d.run(9*time.Minute, 20*time.Second)
			if len(d.waiting()) == 0 {
				d.fail("an autoscaler has no time to add a node")
			}
			told := false
			for range 9 {
				d.run(20*time.Second, 20*time.Second)
				reason, message := d.applied()
				told = told || reason == tc.reason && strings.Contains(message, tc.says)
			}
			if !told {
				reason, message := d.applied()
				d.fail("Applied has reason %s: %s", reason, message)
			}
			d.run(3*time.Minute, 20*time.Second)
			waits := d.waiting()
			if (len(waits) > 0) != tc.stuck {
				d.fail("%v wait after a quarter of an hour", waits)
			}
			d.pods = slices.DeleteFunc(d.pods, func(p *dayPod) bool { return p.waits })
			before := len(d.pods)
			d.room += 320 * memory.MiB
			d.replicas++
			d.scale()
			for _, p := range d.pods[before:] {
				if p.waits || p.size.Request != owner.Request || !tc.guaranteed && p.size.Limit == 0 {
					d.fail("%s has %s, and its template %s", p.name, p.size, owner)
				}
			}
			d.run(time.Hour, time.Minute)
			if kills := d.kills; kills > 0 {
				d.fail("%d kills", kills)
			}
		})
	}
}

// TestAPodThatWaitsForAnotherReason: no node takes what the owner asks for, or what memfit asks for, but for another
// reason than memory.
func TestAPodThatWaitsForAnotherReason(t *testing.T) {
	t.Parallel()
	for lacks, owner := range map[string]memory.Size{
		"": sizeMi(400, 512), "2 Insufficient cpu.": sizeMi(128, 512),
		"2 node(s) didn't match pod anti-affinity rules.": sizeMi(128, 512),
	} {
		d := newDay(t, v1alpha1.SizingInPlace, owner, 300*memory.MiB, 4)
		d.run(3*time.Hour, time.Minute)
		d.room, d.lacks = memory.GiB, lacks
		d.deploy("a release")
		if d.run(time.Hour, time.Minute); len(d.waiting()) == 0 {
			d.fail("every pod fits")
		}
		if reason, message := d.applied(); d.shown.RefusedRequest != nil || reason == v1alpha1.ReasonUnschedulable {
			d.fail("%q: a request is taken back: %s", lacks, message)
		}
	}
}

// TestTheLeastRefusedRequestCounts: it is compared with those of new pods, with what their runtime needs.
func TestTheLeastRefusedRequestCounts(t *testing.T) {
	st := NewState()
	st.programs = map[instanceKey]inject.Program{}
	waiting := func(request memory.Bytes) *corev1.Pod {
		pod := build.Pod("shop", "web-"+request.String()).Container("app", build.Request(request.String())).Obj()
		pod.UID, pod.CreationTimestamp = types.UID(pod.Name), metav1.NewTime(began.Add(-waitedFor))
		pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.",
		}}
		st.programs[instanceKey{pod.UID, "app"}] = inject.Program{Owner: sizeMi(128, 0), Requested: request}
		return pod
	}
	for i, tc := range []struct{ request, want memory.Bytes }{{400, 500}, {450, 500}, {300, 400}, {300, 400}} {
		s := &Snapshot{Governed: []*corev1.Pod{waiting(tc.request * memory.MiB)}}
		st.recordRefused(s, began.Add(time.Duration(i)*time.Hour))
		if st.Refused.Size != tc.want*memory.MiB {
			t.Errorf("after %dMi it is %s, want %dMi", tc.request, st.Refused.Size, tc.want)
		}
	}
	if want := began.Add(2 * time.Hour); !st.Refused.At.Equal(want) {
		t.Errorf("it counts from %s, want %s", st.Refused.At, want)
	}
}

// TestNoPodIsEvictedForALimitThatNewPodsDoNotGet: Guaranteed pods get their template's limit while no node takes what
// memfit asks for, and memfit may evict, but not resize.
func TestNoPodIsEvictedForALimitThatNewPodsDoNotGet(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlaceOrEvict, sizeMi(320, 320), 318*memory.MiB, 4)
	d.guaranteed = true
	clear(d.templates)
	d.run(3*time.Hour, time.Minute)
	d.room = 1460 * memory.MiB
	d.mayNot = func(a rollout.Action) (o rollout.Outcome) {
		if !a.Evict {
			o = rollout.Outcome{Kind: rollout.OutcomeNoRight, Why: "config/rbac/resize-pods grants the right"}
		}
		return o
	}
	d.deploy("a release")
	if d.run(15*time.Minute, 20*time.Second); len(d.waiting()) > 0 || d.shown.RefusedRequest == nil {
		d.fail("%v wait", d.waiting())
	}
	before, told := d.created, false
	for range 60 {
		d.run(time.Minute, time.Minute)
		reason, message := d.applied()
		told = told || reason == v1alpha1.ReasonUnschedulable && strings.Contains(message,
			"is not evicted, because the next one would not get the limit: limit 320Mi instead of ")
	}
	if d.created > before || !told {
		reason, message := d.applied()
		d.fail("%d pods were evicted, and Applied has reason %s: %s", d.created-before, reason, message)
	}
}
