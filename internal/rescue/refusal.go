// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Cause is why no memory is lent, and the label of the metric.
type Cause string

// The causes of an alarm that is not believed. They give no Event: an alarm that is repeated or forged must not cause
// writes.
const (
	// OtherInstance: the alarm is about an instance that does not run.
	OtherInstance Cause = "OtherInstance"
	// Replayed: the sequence is not above that of the last alarm handled.
	Replayed Cause = "Replayed"
	// Stale: the alarm is older than StaleAfter, or the node's clock is behind.
	Stale Cause = "Stale"
	// FromTheFuture: the node's clock is ahead by more than FutureMost.
	FromTheFuture Cause = "FromTheFuture"
	// Contradicted: what is claimed contradicts itself or what the manager knows.
	Contradicted Cause = "Contradicted"
	// AlreadyRaised: a higher limit was requested and is not effective yet.
	AlreadyRaised Cause = "AlreadyRaised"
	// NotEnabled: the profile does not enable rescues.
	NotEnabled Cause = "NotEnabled"
)

// The causes that a user can act on.
const (
	// Paused: the workload, its namespace or memfit is paused.
	Paused Cause = "Paused"
	// Conflict: an autoscaler or another client manages the memory of the workload.
	Conflict Cause = "Conflict"
	// RestartsOnResize: the container's resizePolicy restarts it when its limit changes.
	RestartsOnResize Cause = "RestartsOnResize"
	// NodeShortOfMemory: the node reports MemoryPressure.
	NodeShortOfMemory Cause = "NodeShortOfMemory"
	// LeakSuspected: the container has all that it may have on loan, and grows on.
	LeakSuspected Cause = "LeakSuspected"
	// NodeBound: the node was lent NodeLoansMost loans within Hold.
	NodeBound Cause = "NodeBound"
	// WorkloadBound: the workload's checkpoint has WorkloadLoansMost loans.
	WorkloadBound Cause = "WorkloadBound"
	// LimitMax: sizing.limit.max of the profile.
	LimitMax Cause = "LimitMax"
	// LimitRange: a LimitRange of the namespace.
	LimitRange Cause = "LimitRange"
	// ResourceQuota: a ResourceQuota of the namespace.
	ResourceQuota Cause = "ResourceQuota"
	// ChangeBudget: the change budget of all workloads.
	ChangeBudget Cause = "ChangeBudget"
	// NodeFull: the allocatable memory of the node.
	NodeFull Cause = "NodeFull"
	// PodLimit: the memory limit of the whole pod.
	PodLimit Cause = "PodLimit"
	// NotEffective: the kubelet did not make the container's last loan of the past hour effective.
	NotEffective Cause = "NotEffective"
)

// fixes has, for each cause that a user can act on, what happened and what to do.
var fixes = map[Cause]string{
	Paused:            "memfit.dev/pause is set: remove the annotation, or raise the limit yourself",
	Conflict:          "something else manages its memory: see the condition Applied of its MemoryRecommendation",
	RestartsOnResize:  "its resizePolicy restarts it when its limit changes: set NotRequired for memory",
	NodeShortOfMemory: "the node is short of memory: add nodes, or move pods from it",
	LeakSuspected:     "it has its loan and grows on, which suggests a leak: find what grows, or raise the limit",
	NodeBound:         "the node had its loans of this hour: raise the limit in the profile or the pod template",
	WorkloadBound:     "its workload has as many loans as a checkpoint keeps: raise the limit in the profile",
	LimitMax:          "sizing.limit.max of the profile allows no more: raise it, or find what grows",
	LimitRange:        "a LimitRange of the namespace allows no more",
	ResourceQuota:     "a ResourceQuota of the namespace has too little left: raise it",
	ChangeBudget:      "the change budget of this hour has too little left: raise --change-budget-bytes",
	NodeFull:          "the node has too little memory left: add a larger node",
	NotEffective:      "the kubelet did not make its last loan effective: see the Event NotResized of the pod",
	PodLimit:          "the limit of the whole pod allows no more: raise spec.resources of the pod template",
}

// Refusal is the decision to lend nothing.
type Refusal struct {
	Alarm Alarm
	Cause Cause
	// Most is the largest limit that the cause allows; 0: it is not about an amount.
	Most memory.Bytes
	// Why it allows no more; empty: the cause says it.
	Why string
	// Left is how long until the kill is expected, from the decision on; 0: now.
	Left time.Duration
}

// Reported reports whether a user can act on the cause, so that it deserves an Event.
func (r *Refusal) Reported() bool { return fixes[r.Cause] != "" }

// Note returns the note of the Event; empty where none is due.
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

// seconds is a short time in words: a kill is expected within seconds, and tenths of the first ones matter.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	}
	return format.Duration(d)
}
