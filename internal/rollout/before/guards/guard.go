// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"cmp"
	"fmt"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/recommend"
)

// Change is a recommendation for a container as it runs: what most guards look at. A zero field means "not known" or
// "no such bound", here and in what else guards get, and then its guard lets pass.
type Change struct {
	Proposal
	Running
}

// Proposal is the recommendation for a container, and what its owner allows.
type Proposal struct {
	Recommendation recommend.Recommendation
	Policy         recommend.Policy
}

// Surroundings are what others say about the workload and its namespace, whichever pod it is.
type Surroundings struct {
	// Paused names the object that carries memfit.dev/pause, or the kill switch; "" when nothing pauses.
	Paused string
	// Conflict names the other object that writes or steers this workload's memory: a VPA that controls memory, an HPA
	// on memory.
	Conflict string
	// WindowPeak is the highest use of the last day, on any pod; a limit is not lowered onto it.
	WindowPeak memory.Bytes
	Range      LimitRange
	Quota      Quota
	// LargestNode is the allocatable memory of the largest node, for pods that may go there.
	LargestNode memory.Bytes
}

// LimitRange is what the LimitRanges of the namespace allow a container.
type LimitRange struct {
	Name string
	// Min and Max are for a container's limit.
	Min, Max memory.Bytes
	// Refusal is why they would not admit the pod as a whole with the new size: its sum, or a ratio of limit to
	// request.
	Refusal string
}

// Quota is what a ResourceQuota leaves for this workload, for all replicas together: one byte when it leaves nothing.
type Quota struct {
	Name             string
	Limits, Requests memory.Bytes
}

// Running is the container as it runs, with its pod and its node.
type Running struct {
	Current memory.Size
	// Demand is the memory in use right now that the kernel cannot reclaim; a limit is not lowered onto it.
	Demand memory.Bytes
	// Usage is all that counts against the limit right now, page cache included, which is what the kubelet compares a
	// lower limit with before it resizes.
	Usage memory.Bytes
	// FrozenHeap is the heap cap the process was started with and keeps until it restarts; NativeOverhead what it
	// needs on top.
	FrozenHeap, NativeOverhead memory.Bytes
	// QoS is the pod's class.
	QoS string
	// NodeSize is the allocatable memory of the pod's node.
	NodeSize memory.Bytes
	// Restarts: applying it here restarts the container (eviction, or resizePolicy RestartContainer).
	Restarts bool
	// OwnersBound: the owner's bounds ask for it, whatever the evidence says.
	OwnersBound bool
}

// Progress is what memfit has changed on the workload's pods and is changing now, and what its owner allows of that.
type Progress struct {
	Now time.Time
	// LastChange is when memfit last changed this workload.
	LastChange time.Time
	// RevertedAt and RevertedFrom tell of the last change that was rolled back because it led to kills or restarts.
	RevertedAt   time.Time
	RevertedFrom memory.Bytes
	Replicas     int32
	// SingleReplicaMayRestart: the owner allows a workload of one replica to be restarted.
	SingleReplicaMayRestart bool
}

// Refusal is a guard's: a reason for a condition, and a sentence with numbers. The zero Refusal lets the
// recommendation pass.
type Refusal struct{ Reason, Message string }

// Guard says whether a recommendation may be applied to one container of a running pod now. Order matters: the first
// refusal is the one users see.
func Guard(c Change, s Surroundings, p Progress) Refusal {
	return cmp.Or(
		notPaused(s.Paused),                // the owner's hand on the switch
		noConflict(s.Conflict),             // two writers make an eviction loop
		c.hasEvidence(),                    // a young container teaches nothing
		c.worthIt(),                        // a small gain does not pay for a disruption
		c.notJustReverted(p),               // what has just failed fails again
		c.cooledDown(p),                    // one change at a time; a kill does not wait
		c.restartsSingle(p),                // the only replica stays up
		c.keepsQoS(),                       // the API server refuses a resize that changes the class
		c.withinRange(s.Range),             // so does admission with a LimitRange
		c.withinQuota(s.Quota, p.Replicas), // or a ResourceQuota
		c.roomToLower(s.WindowPeak),        // a lower limit must hold what is used now
		c.heapFits(),                       // and the heap cap the process started with
		c.fitsNode(),                       // a request beyond the node is never actuated
	)
}

// refuse is a refusal with its sentence.
func refuse(reason, text string, args ...any) Refusal {
	return Refusal{Reason: reason, Message: fmt.Sprintf(text, args...)}
}

func pass() Refusal { return Refusal{} }

// lowering and urgent are what many guards ask first: is the limit to go down, and did a kill ask for this?
func (c *Change) lowering() bool { return c.Recommendation.Size.Limit < c.Current.Limit }
func (c *Change) urgent() bool {
	return c.Recommendation.Decision == recommend.Increase && c.Recommendation.Urgent
}

// notPaused refuses everything while memfit.dev/pause or the global switch says so.
func notPaused(by string) Refusal {
	if by != "" {
		return refuse(v1alpha1.ReasonPaused, "paused by %s", by)
	}
	return pass()
}

// noConflict refuses when another controller owns this workload's memory.
func noConflict(with string) Refusal {
	if with != "" {
		return refuse(v1alpha1.ReasonConflict,
			"recommend only: %s also steers this workload's memory; let only one of the two do it", with)
	}
	return pass()
}

// hasEvidence refuses a recommendation that holds, and one that lowers on less than a day of use: most demand has a
// daily rhythm.
func (c *Change) hasEvidence() Refusal {
	r := c.Recommendation
	if r.Decision == recommend.Hold {
		return refuse(v1alpha1.ReasonNotEnoughEvidence, "%s", r.Summary)
	}
	if c.lowering() && r.Evidence.Window < period.Day.Duration() && !c.OwnersBound && !c.rollsBack() {
		return refuse(v1alpha1.ReasonNotEnoughEvidence,
			"%s of use is too little to lower a limit: %s are needed", format.InWords(r.Evidence.Window),
			format.InWords(period.Day.Duration()))
	}
	if c.lowering() && r.Evidence.Estimated && !c.OwnersBound {
		return refuse(v1alpha1.ReasonNotEnoughEvidence,
			"demand was not exact for all of the last day, so that no limit is lowered; the reasons say what is missing")
	}
	return pass()
}

// worthIt refuses when nothing would change.
func (c *Change) worthIt() Refusal {
	if r := c.Recommendation; r.Decision == recommend.Keep || r.Size == c.Current {
		return refuse(v1alpha1.ReasonUpToDate,
			"limit %s and request %s are right as they are", orNone(c.Current.Limit), orNone(c.Current.Request))
	}
	return pass()
}

// revertHold is how long a size that did harm is not tried again.
const revertHold = 7 * period.Day

// notJustReverted refuses to go back to a size that was rolled back within the last week.
func (c *Change) notJustReverted(p Progress) Refusal {
	hold := revertHold.Duration()
	if !p.RevertedAt.IsZero() && p.Now.Sub(p.RevertedAt) < hold && c.lowering() &&
		c.Recommendation.Size.Limit <= p.RevertedFrom.Percent(110) {
		return refuse(v1alpha1.ReasonReverted,
			"a limit of %s was rolled back at %s because it did harm; not tried again until %s", p.RevertedFrom,
			format.Time(p.RevertedAt), format.Time(p.RevertedAt.Add(hold)))
	}
	return pass()
}

// cooledDown refuses within the cool-down after a change, unless a kill asks for more or the request is below what is
// in use.
func (c *Change) cooledDown(p Progress) Refusal {
	cooldown := cmp.Or(c.Policy.Cooldown, recommend.DefaultPolicy().Cooldown)
	// What is used beyond the request, others were promised. A pod may do so although the one that was looked at does
	// not.
	to := c.Recommendation.Size
	here := c.Demand > c.Current.Request && to.Request > c.Current.Request && to.Limit == c.Current.Limit
	if (c.Recommendation.UseAboveRequest || here || c.rollsBack()) && !c.Restarts {
		return pass()
	}
	if next := p.LastChange.Add(cooldown); !p.LastChange.IsZero() && p.Now.Before(next) && !c.urgent() {
		return refuse(v1alpha1.ReasonCoolingDown,
			"last change at %s; the next one waits until %s (cooldown %s)", format.TimeOfDay(p.LastChange,
				p.Now), format.TimeOfDay(next, p.Now), format.Duration(cooldown))
	}
	return pass()
}

// restartsSingle refuses to restart the only replica of a workload, unless its owner or a kill asks for it.
func (c *Change) restartsSingle(p Progress) Refusal {
	if c.Restarts && p.Replicas == 1 && !p.SingleReplicaMayRestart && !c.urgent() {
		return refuse(v1alpha1.ReasonSingleReplica,
			"the only replica would restart: set sizing.disruption.singleReplica to Allowed to permit it")
	}
	return pass()
}

// keepsQoS refuses a resize that would move the pod to another QoS class, which the API server does not take. A
// Burstable pod that would become Guaranteed is left to its refusal: whether every other resource of the pod is
// guaranteed, CPU among them, memfit does not keep.
func (c *Change) keepsQoS() Refusal {
	size := c.Recommendation.Size
	switch {
	case c.QoS == "Guaranteed" && size.Request != size.Limit:
		return refuse(v1alpha1.ReasonQoSClass,
			"the pod is Guaranteed: request %s must equal limit %s (requestPolicy: EqualsLimit)", size.Request, size.Limit)
	case c.QoS == "BestEffort":
		return refuse(v1alpha1.ReasonQoSClass,
			"the pod is BestEffort: a resize cannot give it resources; new pods get them with sizing.mode OnCreate")
	}
	return pass()
}

// withinRange refuses a limit that the namespace's LimitRange does not allow.
func (c *Change) withinRange(r LimitRange) Refusal {
	limit := c.Recommendation.Size.Limit
	switch {
	case r.Max > 0 && limit > r.Max:
		return refuse(v1alpha1.ReasonLimitRange,
			"limit %s is above the maximum of %s in LimitRange %s", limit, r.Max, r.Name)
	case r.Min > 0 && limit > 0 && limit < r.Min:
		return refuse(v1alpha1.ReasonLimitRange,
			"limit %s is below the minimum of %s in LimitRange %s", limit, r.Min, r.Name)
	case r.Refusal != "":
		return refuse(v1alpha1.ReasonLimitRange, "%s", r.Refusal)
	}
	return pass()
}

// withinQuota refuses a raise that would not fit the ResourceQuota once all replicas have it.
func (c *Change) withinQuota(q Quota, replicas int32) Refusal {
	pods := memory.Bytes(max(replicas, 1))
	more := func(to, from memory.Bytes) memory.Bytes { return to.Minus(from) * pods }
	size := c.Recommendation.Size
	if need := more(size.Limit, c.Current.Limit); q.Limits > 0 && need > q.Limits {
		return refuse(v1alpha1.ReasonResourceQuota,
			"%s more limits.memory for %s, but quota %s leaves %s", need, format.Count(int64(pods),
				"replica"), q.Name, orNothing(q.Limits))
	}
	if need := more(size.Request, c.Current.Request); q.Requests > 0 && need > q.Requests {
		return refuse(v1alpha1.ReasonResourceQuota,
			"%s more requests.memory for %s, but quota %s leaves %s", need, format.Count(int64(pods),
				"replica"), q.Name, orNothing(q.Requests))
	}
	return pass()
}

// orNothing: what a quota leaves below a Ki is the byte that stands for nothing.
func orNothing(left memory.Bytes) string {
	if left < memory.KiB {
		return "nothing"
	}
	return left.String()
}

// roomToLower refuses to lower a limit onto what is used now or was used within the last day.
func (c *Change) roomToLower(dayPeak memory.Bytes) Refusal {
	limit := c.Recommendation.Size.Limit
	if !c.lowering() {
		return pass()
	}
	if !holds(limit, c.Demand) {
		return refuse(v1alpha1.ReasonUsageTooHigh, "demand is %s right now: a limit of %s would kill it", c.Demand, limit)
	}
	// Only page cache above the new limit is in question here, which kills nobody: the kubelet's comparison, no margin.
	if !c.Restarts && c.Usage >= limit {
		return refuse(v1alpha1.ReasonUsageTooHigh, "memory in use is %s right now, of which %s is page cache: the "+
			"kubelet refuses to resize to %s until less is in use; the next pod starts with it", c.Usage,
			c.Usage.Minus(c.Demand), limit)
	}
	if dayPeak > limit {
		return refuse(v1alpha1.ReasonUsageTooHigh,
			"use reached %s within the last %s: a limit of %s would not hold it", dayPeak, dayInWords(), limit)
	}
	return pass()
}

// dayInWords is how long a day of evidence takes.
func dayInWords() string {
	if period.Compressed() {
		return format.InWords(period.Day.Duration())
	}
	return "day"
}

// heapFits refuses to lower a limit below the heap cap a process was started with: the runtime would go on filling it.
func (c *Change) heapFits() Refusal {
	limit := c.Recommendation.Size.Limit
	if need := c.FrozenHeap.Plus(c.NativeOverhead); c.lowering() && c.FrozenHeap > 0 && need > limit && !c.Restarts {
		kept := c.FrozenHeap.String()
		if c.NativeOverhead > 0 {
			kept += " (and needs " + c.NativeOverhead.String() + " besides)"
		}
		return refuse(v1alpha1.ReasonHeapCapFixed,
			"the process keeps the heap cap of %s it started with: a limit of %s fits after its next start", kept, limit)
	}
	return pass()
}

// fitsNode refuses a request that the node could not take if it were empty. Whether it has room now, its kubelet says.
func (c *Change) fitsNode() Refusal {
	if c.NodeSize > 0 && c.Recommendation.Size.Request > c.NodeSize {
		return refuse(v1alpha1.ReasonNodeTooSmall,
			"request %s is more than the node's %s", c.Recommendation.Size.Request, c.NodeSize)
	}
	return pass()
}

func holds(limit, used memory.Bytes) bool { return used.Percent(105) < limit }

func (c *Change) rollsBack() bool {
	to := c.Recommendation.RollBackTo
	return to > 0 && c.lowering() && c.Recommendation.Size.Limit >= to
}

func orNone(b memory.Bytes) string {
	if b == 0 {
		return "none"
	}
	return b.String()
}
