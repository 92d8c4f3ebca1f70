// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Cause is the reason for a refusal, also as a label of the metric.
type Cause string

// Causes without an Event, because repeated or forged alarms must not cause writes.
const (
	OtherInstance Cause = "OtherInstance" // the alarm is not about the running instance
	Replayed      Cause = "Replayed"      // the sequence is not above the last handled alarm's
	Stale         Cause = "Stale"         // the alarm is older than StaleAfter, or the node's clock is behind
	FromTheFuture Cause = "FromTheFuture" // the node's clock is ahead by more than MaxFuture
	Contradicted  Cause = "Contradicted"  // the claim is inconsistent, or contradicts the manager's data
	AlreadyRaised Cause = "AlreadyRaised" // a higher limit was requested and is not effective yet
	NotEnabled    Cause = "NotEnabled"    // the profile does not enable rescues
)

// Causes with an Event, because a user can act on them; fixes explains them.
const (
	Paused            Cause = "Paused"
	Conflict          Cause = "Conflict"
	RestartsOnResize  Cause = "RestartsOnResize"
	NodeShortOfMemory Cause = "NodeShortOfMemory"
	LeakSuspected     Cause = "LeakSuspected"
	NodeBound         Cause = "NodeBound"
	WorkloadBound     Cause = "WorkloadBound"
	LimitMax          Cause = "LimitMax"
	LimitRange        Cause = "LimitRange"
	ResourceQuota     Cause = "ResourceQuota"
	ChangeBudget      Cause = "ChangeBudget"
	NodeFull          Cause = "NodeFull"
	PodLimit          Cause = "PodLimit"
	NotEffective      Cause = "NotEffective"
)

// fixes has the problem and the fix for each cause that a user can act on.
var fixes = map[Cause]string{
	Paused:            "memfit.dev/pause is set: remove the annotation, or raise the limit yourself",
	Conflict:          "another controller manages its memory: see the condition Applied of its MemoryRecommendation",
	RestartsOnResize:  "its resizePolicy restarts it when its limit changes: set NotRequired for memory",
	NodeShortOfMemory: "the node is short of memory: add nodes, or move pods from it",
	LeakSuspected:     "it has a loan and still grows, which suggests a leak: find what grows, or raise the limit",
	NodeBound:         "the node has used up this hour's loans: raise the limit in the profile or the pod template",
	WorkloadBound:     "its workload has the maximum number of loans: raise the limit in the profile",
	LimitMax:          "sizing.limit.max of the profile allows no more: raise it, or find what grows",
	LimitRange:        "a LimitRange of the namespace allows no more",
	ResourceQuota:     "a ResourceQuota of the namespace has too little left: raise it",
	ChangeBudget:      "the change budget of this hour has too little left: raise --change-budget-bytes",
	NodeFull:          "the node has too little memory left: add a larger node",
	NotEffective:      "the kubelet did not make its last loan effective: see the Event NotResized of the pod",
	PodLimit:          "the limit of the whole pod allows no more: raise spec.resources of the pod template",
}

// Refusal is a refused loan.
type Refusal struct {
	Alarm Alarm
	Cause Cause
	Most  memory.Bytes  // the largest limit that the cause allows; 0: the cause does not bound the limit
	Why   string        // details of the cause; empty: none
	Left  time.Duration // from the decision to the expected kill; 0: now
}

// Reported reports whether the refusal has an Event, because a user can act on its cause.
func (r *Refusal) Reported() bool { return fixes[r.Cause] != "" }

// Note returns the note of the Event; empty if the refusal has none.
func (r *Refusal) Note() string {
	if !r.Reported() {
		return ""
	}
	most := ""
	if r.Why != "" {
		most = ": " + r.Why
	}
	if r.Most > 0 {
		most += fmt.Sprintf(" (at most %s)", r.Most)
	}
	return fmt.Sprintf(
		"container %s reaches its limit of %s in about %s (needs %s, grows by %s/s) and gets no loan: %s%s",
		r.Alarm.Container, r.Alarm.Limit, seconds(r.Left), r.Alarm.Demand, r.Alarm.PerSecond, fixes[r.Cause], most,
	)
}

// seconds formats a duration, below 10 s with tenths of a second.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	}
	return format.Duration(d)
}
