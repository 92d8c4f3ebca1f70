// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
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
	noRight := rollout.Outcome{Kind: rollout.OutcomeNoRight, Why: "config/rbac/resize-pods grants it"}
	for name, tc := range map[string]struct {
		mode       v1alpha1.SizingMode
		mayNot     func(rollout.Action) rollout.Outcome
		guaranteed bool
		// reason and says are those of Applied while the pod waits; stuck: until a person deletes it.
		reason, says string
		stuck        bool
	}{
		"OnCreate": {mode: v1alpha1.SizingOnCreate, reason: v1alpha1.ReasonUnschedulable, says: "it is taken back"},
		"InPlace":  {mode: v1alpha1.SizingInPlace, reason: v1alpha1.ReasonUnschedulable, says: "it is taken back"},
		"no right to resize": {
			mode: v1alpha1.SizingOnCreate, mayNot: func(rollout.Action) rollout.Outcome { return noRight },
			reason: v1alpha1.ReasonRefused,
			says:   "config/rbac/resize-pods grants it: delete the pod (kubectl delete pod", stuck: true,
		},
		"no resize, but evictions": {
			mode: v1alpha1.SizingInPlaceOrEvict, mayNot: func(a rollout.Action) (o rollout.Outcome) {
				if !a.Evict {
					o = noRight
				}
				return o
			},
			reason: v1alpha1.ReasonUnschedulable, says: "it is taken back",
		},
		"Guaranteed": {
			mode: v1alpha1.SizingInPlace, guaranteed: true, reason: v1alpha1.ReasonUnschedulable, says: "it is taken back",
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

// TestAPodThatWaitsForAnotherReason: no node takes what the owner asks for.
func TestAPodThatWaitsForAnotherReason(t *testing.T) {
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(400, 512), 300*memory.MiB, 3)
	d.run(3*time.Hour, time.Minute)
	d.room = memory.GiB
	d.deploy("a release")
	d.run(time.Hour, time.Minute)
	if reason, message := d.applied(); d.shown.RefusedRequest != nil || reason == v1alpha1.ReasonUnschedulable {
		d.fail("a request of the owner's is taken back: %s", message)
	}
}
