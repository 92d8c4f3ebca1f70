// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

const (
	// watchDelay is how long the watch may take to show a created pod: client-go reconnects within a minute. A ReplicaSet
	// retries a refused pod after 5 ms, then doubles the delay: its attempt after 82 s is left unchanged.
	watchDelay = time.Minute
	// minChanged is how many changed pods must fail to be created to suspect a policy: a single creation may fail because
	// the name is taken or the API server restarts. Controllers retry that often within 3 s.
	minChanged = 3
	// probeTime is how long new pods are left unchanged to see whether they are created. A rollout can create all of its
	// pods in this time, and the watch can show one. Once an unchanged pod was created, probeTime replaces watchDelay.
	probeTime = 10 * time.Second
	// firstHold is how long new pods are first left unchanged because of a policy. Each further hold is twice as long, up
	// to longestHold. Between holds, memfit changes pods again, because the policy may have changed.
	firstHold   = 10 * time.Minute
	longestHold = 24 * time.Hour
	// forgetAfter is how long a trial is kept without another new pod. Workloads that run daily keep their trial.
	forgetAfter = 48 * time.Hour
)

// trial finds out whether another admission policy refuses memfit's changes of a workload's new pods. It begins with a
// pod that memfit changed, and ends when such a pod is created. If at least minChanged such pods are not created,
// memfit leaves pods unchanged for probeTime. If none of these is created either, as beyond a quota, memfit changes
// pods again. If one is created, the cause may just have ended, so memfit changes pods again as well. If then no
// changed pod is created, but again an unchanged pod, a policy refuses memfit's changes.
type trial struct {
	first         time.Time // when memfit changed the first pod
	changed       int       // number of pods that memfit changed
	changingSince time.Time // when memfit began to change pods, or began again after until
	changedSince  int       // number of pods that memfit changed since then
	until         time.Time // pods are left unchanged until then
	probing       bool      // pods are left unchanged to see whether they are created, and none was created yet
	unchangedSeen bool      // a pod that was left unchanged was created before
	lastHold      time.Duration
	owner         types.UID // controller of the last pod
}

// next returns the trial after one more new pod, and whether that pod is left unchanged.
func (t trial) next(now time.Time) (after trial, unchanged bool) {
	wait := watchDelay
	if t.unchangedSeen {
		wait = probeTime
	}
	switch {
	case t.old(now):
		t = trial{first: now, changingSince: now}
	case now.Before(t.until):
		return t, true
	case t.changingSince.Before(t.until):
		t.changingSince, t.changedSince, t.probing = now, 0, false
	case t.changedSince >= minChanged && now.Sub(t.changingSince) >= wait:
		t.until, t.probing = now.Add(probeTime), true
		return t, true
	}
	t.changed++
	t.changedSince++
	return t, false
}

// unchangedCreated returns the trial after a pod that memfit left unchanged was created. refused is true the second
// time: then a policy refuses memfit's changes.
func (t trial) unchangedCreated(now time.Time) (after trial, refused bool) {
	if !t.probing {
		return t, false
	}
	t.probing = false
	if !t.unchangedSeen {
		t.unchangedSeen = true
		return t, false
	}
	t.lastHold = min(max(2*t.lastHold, firstHold), longestHold)
	t.until = now.Add(t.lastHold)
	return t, true
}

// old reports whether the trial is too old to affect new pods.
func (t trial) old(now time.Time) bool {
	return now.Sub(t.changingSince) >= forgetAfter && now.Sub(t.until) >= forgetAfter
}

// note returns the message for users: new pods are left unchanged, why, and what to do.
func (t trial) note(of memory.WorkloadRef, now time.Time) string {
	return fmt.Sprintf(
		"none of the %s of %s %s that memfit changed since %s was created, but two that it left unchanged were: another "+
			"admission policy refuses memfit's changes (see the FailedCreate Events of the pods' controller). memfit leaves "+
			"new pods unchanged until %s. Set sizing.limit.max or sizing.requestPolicy to values that the policy allows, or "+
			"exclude the workload",
		format.Count(t.changed, "new pod"), of.Kind, of.Title(), format.TimeOfDay(t.first, now),
		format.TimeOfDay(t.until, now),
	)
}
