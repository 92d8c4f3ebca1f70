// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// Decision is what to do with the size a container has now.
type Decision string

// The decisions.
const (
	// Hold: evidence is missing or too old. The size is zero; nothing may be changed.
	Hold Decision = "Hold"
	// Keep: the container's size is right, or too close to it to change.
	Keep Decision = "Keep"
	// Increase and Decrease are the direction in which the limit (or, with an unchanged limit, the request) goes.
	Increase Decision = "Increase"
	Decrease Decision = "Decrease"
)

// Prices of an OOM kill, by the postures of the API: a kill costs as much as this memory held for a day. Each is just
// high enough to be at least as safe, over all tuning halves, as the former rules.
const (
	Frugal   = 3 * memory.GiB
	Balanced = 10 * memory.GiB
	Cautious = 200 * memory.GiB
)

// Traits describe what a container's runtime does with a limit.
type Traits struct {
	// Name is the displayed name of the runtime ("Node.js 20"), for the reasons.
	Name string
	// FollowsLimit is true if the runtime is known to size its heap from the limit, so that use up to the limit is not
	// demand.
	FollowsLimit bool
	// MayFollow is true if it does so by default, but an image or a start script may have set another cap. Then neither a
	// lower limit nor use near HeapPercent is assumed harmless.
	MayFollow bool
	// HeapPercent is the share of the limit the managed heap may take, 0: unknown.
	HeapPercent int32
	// Overhead is what the runtime needs outside its heap at any limit.
	Overhead memory.Bytes
	// Reserve is the part of the limit kept for others; the heap's share is of the rest.
	Reserve memory.Bytes
	// CapFollowsLimit is true if a process that gives up at its heap cap gets a larger cap from a higher limit, when it
	// starts again or, with CapFrozen, in a new pod only.
	CapFollowsLimit, CapFrozen bool
	// OwnHeap is the heap that the owner's setting OwnHeapBy ("-Xmx2g") permits to the processes. A limit is not lowered
	// below it: the process may fill it at any time, even if it has used little until now. 0: none.
	OwnHeap   memory.Bytes
	OwnHeapBy string
	// CapSetBy tells the user which text of the pod to change, because it sets the heap cap; empty: none is known.
	CapSetBy string
}

// Policy is what the owner of a container asks for. No field has a default here; internal/profile fills in what the
// owner leaves unset.
type Policy struct {
	// RequestEqualsLimit is true if the request is the limit (requestPolicy: EqualsLimit).
	RequestEqualsLimit bool
	// HeadroomPercent is added to the need of a young container, to the need after a kill, and to a live set.
	HeadroomPercent int32
	// MinMarginPercent is the minimum margin of an older one's limit above the peak of the last day.
	MinMarginPercent int32
	// KillPrice is the cost of an OOM kill: this much memory held for a day.
	KillPrice memory.Bytes
	// Bounds of the limit and the request; 0: none.
	LimitMin, LimitMax, RequestMin, RequestMax memory.Bytes
	// PodLimit is spec.resources.limits.memory of the pod: the API server rejects a container limit above it. PodRequest
	// is the part of spec.resources.requests.memory that the other containers leave for this one. 0: no pod-level
	// resources.
	PodLimit, PodRequest memory.Bytes
	// VolumesHold is what the memory-backed volumes of the container may hold (their size limits). A limit is not lowered
	// below it. 0: none has a size limit.
	VolumesHold memory.Bytes
	// Before is the need of the replaced program if its owner's size was different. A limit is not lowered below it, nor
	// raised to it. 0: none.
	Before memory.Bytes
	// DecreaseNever is true if a recommendation is never below the current size.
	DecreaseNever bool
	// SharesLimit is true if the pod has a pod-level limit: a container without a limit is recommended a part of it.
	SharesLimit bool
	// IncreaseAfterKill is true if a limit is raised only after a kill or a stall at the current limit.
	IncreaseAfterKill bool
	// OOMFactorPercent is the growth from the limit a container was killed at; quick repeats double it.
	OOMFactorPercent int32
	// OOMMinIncrease is the smallest step after a kill.
	OOMMinIncrease memory.Bytes
	// MinChangePercent is the smallest change worth making; 0: every change is.
	MinChangePercent int32
}

// Ease is a limit that does not make the garbage collector run more often than usual. A lower limit costs CPU time, and
// no kill shows it.
type Ease struct {
	Limit memory.Bytes
	// Why names the pod, and its live set.
	Why string
}

// Input is everything a recommendation depends on.
type Input struct {
	// History of the container name; nil is an empty one.
	History *history.Container
	// Replicas is how many run now.
	Replicas int
	// Kills of this container, oldest first. The ledger's last 20 are enough.
	Kills []memory.OOMKill
	// Runs are the peaks of the last runs of a container that runs to completion, in any order. For messages; only their
	// presence affects a size: the container holds memory only in hours with samples.
	Runs   []memory.Bytes
	Traits Traits
	Policy Policy
	// Prior is what is known of its image; its zero value: nothing.
	Prior Prior
	// Current is the size of running containers.
	Current memory.Size
	// InUse is the demand of the fullest replica in the last readings. No request is recommended below it. 0:
	// unknown.
	InUse memory.Bytes
	// InUseSeen is when the last of these readings was taken.
	InUseSeen time.Time
	// Unrelieved is the last stall of the week that a raise did not end; its zero value: none.
	Unrelieved memory.Stall
	// Ease is set if an agent found a heap that is too small for its live set; its zero value: none.
	Ease Ease
	// LargestNode is the allocatable memory of the largest node. Without a LimitMax, growth ends at a part of it. 0:
	// unknown.
	LargestNode memory.Bytes
	// Leak describes the evidence that every process climbs from its start until it is killed; "": none. It stops growth,
	// with an alarm.
	Leak string
	// Doubt is why Leak may be a start that still fills, and not a leak; "": no doubt. It stops growth without an alarm.
	Doubt string
	// Silent is why no samples arrive now; "": they do.
	Silent string
	// Unseen is a running container without readings: the others may use less than it needs; "": all have readings. It
	// stops decreases below Last, the last recommended size (zero: none).
	Unseen string
	Last   memory.Size
	// Climbing is true if the shape of memory is a steady climb that load does not explain. Growth then stops at the
	// bound, with an alarm.
	Climbing bool
	// Model is set only by the backtest, to measure the effect of a constant; nil: [DefaultModel].
	Model *Model
	Now   time.Time
}

// Evidence is the basis of a recommendation.
type Evidence struct {
	// PeakDemand is the highest demand seen in one container. Estimated: it was not exact for all of the last day, so
	// it lowers nothing.
	PeakDemand memory.Bytes
	Estimated  bool
	// PeakRSS and PeakWorkingSet are the highest seen in one container.
	PeakRSS, PeakWorkingSet memory.Bytes
	// PeakSwap is the most that was swapped out of one container.
	PeakSwap memory.Bytes
	// Trough is the live set; 0 when unknown.
	Trough memory.Bytes
	// Samples is how many measurements there are.
	Samples int64
	// Window is how far back the evidence goes.
	Window time.Duration
	// Kills is the number of kills that affected it.
	Kills int
}

// Recommendation is the result for one container.
type Recommendation struct {
	Decision Decision
	// Size is the size recommended; zero with Hold.
	Size       memory.Size
	Confidence memory.Confidence
	// Reasons derive the size from the evidence, in sentences with numbers.
	Reasons []string
	// Advice is what memfit does not do itself, for example raise a runtime setting.
	Advice []string
	// Summary is the recommendation in one line.
	Summary string
	// RequeueAfter is when to evaluate again if nothing happens before.
	RequeueAfter time.Duration
	Evidence     Evidence
	// Urgent is true if a kill within the last hour asks for it, so that no cool-down may delay it for a replica that has
	// less.
	Urgent bool
	// UseAboveRequest is true if the request goes up because more is in use than the request. No cool-down may delay that,
	// and nothing restarts for it.
	UseAboveRequest bool
	// Guess is a raise by memfit that was more than needed, so that undoing it needs no day of evidence; nil: none.
	Guess *Raise
	// Teaches is [Prior.Young] by the bursts of this container while it is young; 0: every posture covers the bursts seen.
	Teaches period.Evidence
	// Alarm is set when growth was stopped because memory grows steadily; its text is also in Reasons.
	Alarm string
}

// Raise is a limit that memfit raised because of kills or a stall, which show that more is needed and not how much.
type Raise struct {
	// From is the limit before it, At the time of the last of these kills or stalls.
	From memory.Bytes
	At   time.Time
}
