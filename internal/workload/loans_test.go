// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/test/build"
)

// lends gives a pod a loan that the kubelet has made effective.
func (d *day) lends(p *dayPod, to memory.Size) {
	of := memory.ContainerRef{Namespace: "shop", Pod: p.name, UID: p.uid, Container: "app"}
	d.state.Rollout().AddLoan(rescue.Loan{
		Pod: p.name, UID: p.uid, Node: "node-1", Container: "app", Program: d.state.ProgramOf(of), From: p.size, To: to,
		At: d.now, Sequence: 1,
	}, "it grew", true)
	p.size, p.resized = to, true
}

// TestALoanOutlivesAChangeOfTheMode: its pod still has it, also while memfit changes no sizes. New pods do not get it,
// and it is returned.
func TestALoanOutlivesAChangeOfTheMode(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(64, 256), 100*memory.MiB, 1)
	d.run(2*time.Hour, time.Minute)
	p, to := d.pods[0], sizeMi(64, 1024)
	d.lends(p, to)
	d.run(5*time.Minute, 15*time.Second)
	for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingRecommend, v1alpha1.SizingInPlace} {
		d.named.Spec.Sizing.Mode = mode
		profile.Inherit([]*profile.Profile{d.named})
		d.step()
		if loans := d.state.Rollout().Loans; len(loans) != 1 || !loans[0].Returned.IsZero() {
			d.fail("in mode %s the loan that the pod still has is %+v", mode, loans)
		}
	}
	d.replicas++
	d.scale()
	d.run(time.Minute, 15*time.Second)
	if got := d.pods[1].size.Limit; got >= to.Limit {
		d.fail("a new pod has the lent limit of %s", got)
	}
	d.run(2*time.Hour, time.Minute)
	if got := p.size.Limit; got >= to.Limit {
		d.fail("the pod keeps the lent limit of %s although it needs no more than before", got)
	}
}

// TestALoanOutlivesAnotherProfile: its pod follows one for a while, and still has it.
func TestALoanOutlivesAnotherProfile(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(64, 256), 100*memory.MiB, 2)
	d.run(2*time.Hour, time.Minute)
	p, to := d.pods[0], sizeMi(64, 1024)
	d.lends(p, to)
	for _, d.elsewhere = range []types.UID{"", p.uid, ""} {
		d.run(5*time.Minute, 15*time.Second)
		if loans := d.state.Rollout().Loans; len(loans) != 1 || !loans[0].Returned.IsZero() {
			d.fail("the loan that the pod still has is %+v", loans)
		}
	}
	d.run(2*time.Hour, time.Minute)
	if got := p.size.Limit; got >= to.Limit {
		d.fail("the pod keeps the lent limit of %s although it needs no more than before", got)
	}
}

// TestALoanAsksForNoRequestThatItsNodeLacks: the kubelet would defer the loan with it.
func TestALoanAsksForNoRequestThatItsNodeLacks(t *testing.T) {
	p := build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingInPlace))
	pod := build.Pod("shop", "web").Container("app", build.Request("96Mi"), build.Limit("256Mi")).Obj()
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("200Mi")
	for reason, want := range map[string]memory.Bytes{corev1.PodReasonDeferred: 96, corev1.PodReasonInfeasible: 200} {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason,
		}}
		r, found := RescueOf(governing(p), pod, "app", &constraints.Facts{}, "")
		if got := r.With(memory.GiB); !found || got != sizeMi(want, 1024) {
			t.Errorf("%s: the loan is to %v, want a request of %dMi", reason, got, want)
		}
	}
}

// TestALoanIsNotRecommended: while a workload is too young for its use to move a limit, what holds is the limit before
// a loan. The loan is one pod's, and it does not end because the recommendation has copied it.
func TestALoanIsNotRecommended(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(64, 224), 100*memory.MiB, 1)
	d.run(2*time.Minute, 15*time.Second)
	p := d.pods[0]
	to := sizeMi(64, 896)
	d.state.Rollout().AddLoan(rescue.Loan{
		Pod: p.name, UID: p.uid, Node: "node-1", Container: "app", From: p.size, To: to, At: d.now, Sequence: 1,
	}, "it grew", true)
	p.size, p.resized = to, true
	d.need[d.image] = 437 * memory.MiB
	d.run(5*time.Minute, 15*time.Second)
	if got := d.shown.Containers[0].Recommended; got != nil && profile.SizeOf(*got).Limit >= to.Limit {
		d.fail("the lent limit is recommended: %s", got.Limit)
	}
	if loans := d.state.Rollout().Loans; len(loans) != 1 || !loans[0].Ended.IsZero() {
		d.fail("the loan ended within minutes: %+v", loans)
	}
	if got := p.size.Limit; got != to.Limit {
		d.fail("the pod has %s during the loan, want %s", got, to.Limit)
	}
	if d.kills != 0 {
		d.fail("%d kills", d.kills)
	}
}

// TestALeakThatUsesItsLoanUpIsNotFed: what it had for itself is no reason to give all pods half as much again.
func TestALeakThatUsesItsLoanUpIsNotFed(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(64, 256), 100*memory.MiB, 3)
	d.run(60*time.Hour, 10*time.Minute)
	leaks := d.pods[0]
	to := memory.Size{Request: leaks.size.Request, Limit: 4 * leaks.size.Limit}
	d.lends(leaks, to)
	had := memory.Bytes(0)
	for d.kills == 0 {
		leaks.need, had = leaks.need+250*memory.MiB, d.pods[1].size.Limit
		d.run(15*time.Second, 15*time.Second)
	}
	leaks.need = 0
	d.run(time.Minute, 15*time.Second)
	if got := d.pods[1].size.Limit; got > 2*had {
		d.fail("a leak in one pod that used up its loan of %s gives another one %s instead of %s", to.Limit, got, had)
	}
}
