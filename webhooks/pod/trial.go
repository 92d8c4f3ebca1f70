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
	// patience is how long the watch may take to show a pod that memfit changed. A broken watch is back within a minute:
	// client-go waits for 30 s at most, and up to as long again at random. A ReplicaSet whose pods are refused tries again
	// after 5 ms, and then after twice as long each time: its attempt after 82 s is left unchanged.
	patience = time.Minute
	// enough refused pods distinguish a policy from a single failed creation, as where the name is taken or the API server
	// restarts. Controllers try as often within 3 s, and a run that is not retried is lost three times.
	enough = 3
	// probing is how long new pods are left unchanged to see whether those are created: enough for a rollout to send all
	// of its pods, and for the watch to show one. After a hold, the watch may take as long to show a changed pod.
	probing = 10 * time.Second
	// firstHold is how long new pods are left unchanged when a policy is to blame, and each time twice as long as before,
	// up to longestHold: a policy may be changed. Ten attempts are lost in three days, and then one a day.
	firstHold   = 10 * time.Minute
	longestHold = 24 * time.Hour
	// forgetAfter is how long a trial is remembered without another creation: workloads that run daily are recognized.
	forgetAfter = 48 * time.Hour
)

// trial records what memfit did with the pods of a workload since the last creation of a changed pod. If no changed pod
// is created, memfit leaves some pods unchanged. If no unchanged pod is created either, for example beyond a quota,
// memfit changes pods again. If an unchanged pod is created, the cause of the refusals may just have ended, so memfit
// changes pods again as well. Only if then an unchanged pod is created, and no changed one, another policy refuses
// memfit's changes.
type trial struct {
	// first is when memfit changed the first pod, changed the number of changed pods.
	first   time.Time
	changed int
	// since is when memfit began to change pods, or began again after until; tried is the number of pods changed since.
	since time.Time
	tried int
	// until is when pods are changed again. probes is true until an unchanged pod is created: before that, it is unknown
	// why the others were not.
	until  time.Time
	probes bool
	// came is true if an unchanged pod was created before.
	came bool
	hold time.Duration // the last one
	// owner is the controller of the last pod.
	owner types.UID
}

// next returns the trial after one more creation, and whether that pod is left unchanged.
func (t trial) next(now time.Time) (after trial, unchanged bool) {
	wait := patience
	if t.came {
		wait = probing
	}
	switch {
	case t.old(now):
		t = trial{first: now, since: now}
	case now.Before(t.until):
		return t, true
	case t.since.Before(t.until):
		t.since, t.tried, t.probes = now, 0, false
	case t.tried >= enough && now.Sub(t.since) >= wait:
		t.until, t.probes = now.Add(probing), true
		return t, true
	}
	t.changed++
	t.tried++
	return t, false
}

// unchangedCreated returns the trial after a pod that memfit had not changed was first seen, and whether it shows that
// its changes are refused: the second time.
func (t trial) unchangedCreated(now time.Time) (after trial, refused bool) {
	if !t.probes {
		return t, false
	}
	t.probes = false
	if !t.came {
		t.came = true
		return t, false
	}
	t.hold = min(max(2*t.hold, firstHold), longestHold)
	t.until = now.Add(t.hold)
	return t, true
}

// old reports whether the trial is too old to affect a pod that is created now.
func (t trial) old(now time.Time) bool {
	return now.Sub(t.since) >= forgetAfter && now.Sub(t.until) >= forgetAfter
}

// note reports to users that pods are left unchanged, and what to do.
func (t trial) note(of memory.WorkloadRef, now time.Time) string {
	return fmt.Sprintf(
		"memfit changed %s of %s %s since %s, and none of them was created; two that it left unchanged were: another "+
			"admission policy refuses memfit's changes (the Event FailedCreate of their controller quotes it). New pods are "+
			"left unchanged until %s. Set sizing.limit.max or sizing.requestPolicy to what the policy allows, or exclude the "+
			"workload",
		format.Count(t.changed, "new pod"), of.Kind, of.Title(), format.TimeOfDay(t.first, now),
		format.TimeOfDay(t.until, now),
	)
}
