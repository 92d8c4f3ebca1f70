// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

const (
	// patience is how long a pod that memfit changed may take to be seen. A watch that broke is back within a minute:
	// client-go waits for 30 s at most, and up to as long again at random. A ReplicaSet whose pods are refused tries again
	// after 5 ms, and then after twice as long each time: what it creates after 82 s is left as it comes.
	patience = time.Minute
	// enough pods that did not come tell a policy from a creation that failed once, as where the name is taken or the API
	// server restarts. Controllers try as often within 3 s, and a run that is not retried is lost three times.
	enough = 3
	// patienceAgain is patience after pods were left unchanged: enough for all pods of a rollout to be sent.
	patienceAgain = 10 * time.Second
	// firstHold is how long pods are left unchanged at first, and each time twice as long as before, up to longestHold.
	// Pods may be refused for another reason, as while the server of a policy is down: afterwards, their workload must not
	// be without sizes for long. Where a policy does refuse what memfit gives, ten attempts are lost in three days, and
	// then one a day.
	firstHold   = 10 * time.Minute
	longestHold = 24 * time.Hour
	// forgetAfter is how long a trial is remembered without another creation: workloads that run daily are recognized.
	forgetAfter = 48 * time.Hour
)

// trial is what memfit did with the pods of a workload since the last one was seen that it had changed.
type trial struct {
	// first is when memfit changed the first one, changed how many it did.
	first   time.Time
	changed int
	// since is when memfit began to change pods, or began again after until. Until then they were left unchanged, for
	// the time of hold.
	since, until time.Time
	hold         time.Duration
}

// next returns the trial after one more creation, and whether that pod is left unchanged.
func (t trial) next(now time.Time) (after trial, leave bool) {
	wait := patience
	if t.hold > 0 {
		wait = patienceAgain
	}
	switch {
	case t.old(now):
		t = trial{first: now, since: now}
	case now.Before(t.until):
		return t, true
	case t.since.Before(t.until):
		t.since = now
	case t.changed >= enough && now.Sub(t.since) >= wait:
		t.hold = min(max(2*t.hold, firstHold), longestHold)
		t.until = now.Add(t.hold)
		return t, true
	}
	t.changed++
	return t, false
}

// old reports whether the trial says nothing about a pod that is created now.
func (t trial) old(now time.Time) bool {
	return now.Sub(t.since) >= forgetAfter && now.Sub(t.until) >= forgetAfter
}

// note reports to users that pods are left unchanged, and what to do.
func (t trial) note(of memory.WorkloadRef, now time.Time) string {
	return fmt.Sprintf(
		"memfit changed %s of %s %s since %s, and none of them was created: another admission policy may refuse what memfit "+
			"gives (the Event FailedCreate of their controller quotes it). New pods are left unchanged until %s. Set "+
			"sizing.limit.max or sizing.requestPolicy to what the policy allows, or exclude the workload",
		format.Count(t.changed, "new pod"), of.Kind, of.Title(), format.TimeOfDay(t.first, now),
		format.TimeOfDay(t.until, now),
	)
}
