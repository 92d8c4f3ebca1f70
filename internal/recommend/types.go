// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// Decision is what to do with the current size of a container.
type Decision string

// The decisions.
const (
	// Hold means that evidence is missing or too old. The recommended size is zero, and nothing may be changed.
	Hold Decision = "Hold"
	// Keep means that the current size is right, or too close to the right size to change.
	Keep Decision = "Keep"
	// Increase and Decrease are the direction of the change of the limit or, if the limit is unchanged, of the request.
	Increase Decision = "Increase"
	Decrease Decision = "Decrease"
)

// Prices of an OOM kill for the postures of the API: a kill costs as much as this much memory for a day. The backtest
// chose them (see docs/design/sizing.md).
const (
	Frugal   = 3 * memory.GiB
	Balanced = 10 * memory.GiB
	Cautious = 200 * memory.GiB
)

// Traits describe what a container's runtime does with a limit.
type Traits struct {
	// Name is the name of the runtime in reasons ("Node.js 20").
	Name string
	// FollowsLimit is true if the runtime certainly sizes its heap from the limit: use up to the limit is not demand.
	FollowsLimit bool
	// MayFollow is true if the runtime sizes its heap from the limit by default, but an image or a start script may have
	// set another cap. Then use near HeapPercent may be demand, and a lower limit may cause a kill.
	MayFollow bool
	// HeapPercent is the share of the limit that the managed heap may take; 0: unknown.
	HeapPercent int32
	// Overhead is the memory that the runtime needs outside its heap at any limit.
	Overhead memory.Bytes
	// Reserve is the part of the limit that is not for the runtime. HeapPercent is of the rest.
	Reserve memory.Bytes
	// CapFollowsLimit is true if a process that exits at its heap cap restarts with a larger cap at a higher limit.
	CapFollowsLimit bool
	// CapFrozen is true if the larger cap needs a new pod.
	CapFrozen bool
	// OwnHeap is the heap that the owner's setting OwnHeapBy ("-Xmx2g") permits. The limit is not lowered below it: the
	// process may fill it at any time, even if it has used little so far. 0: none.
	OwnHeap   memory.Bytes
	OwnHeapBy string
	// CapSetBy is advice on which text of the pod sets the heap cap and has to change; empty: unknown.
	CapSetBy string
}

// Policy has the settings of a container's owner. No field has a default here; internal/profile fills in defaults.
type Policy struct {
	// RequestEqualsLimit is true if the request must equal the limit (requestPolicy: EqualsLimit).
	RequestEqualsLimit bool
	// HeadroomPercent is added to the need of a young container, to the need after a kill, and to a live set.
	HeadroomPercent int32
	// MinMarginPercent is the minimum margin of an older container's limit above the peak of the last day.
	MinMarginPercent int32
	// KillPrice is the cost of an OOM kill: this much memory for a day.
	KillPrice memory.Bytes
	// LimitMin to RequestMax bound the limit and the request; 0: unbounded.
	LimitMin, LimitMax, RequestMin, RequestMax memory.Bytes
	// PodLimit is spec.resources.limits.memory of the pod; 0: not set. The API server rejects a container limit above it.
	PodLimit memory.Bytes
	// PodRequest is the part of the pod's spec.resources.requests.memory that other containers leave; 0: not set.
	PodRequest memory.Bytes
	// VolumeSizeLimits is the sum of the size limits of the container's memory-backed volumes. The limit is not lowered
	// below it. 0: no volume has a size limit.
	VolumeSizeLimits memory.Bytes
	// PreviousNeed is the need of the program that a rollout replaced, if the owner's size differed. The limit is not
	// lowered below PreviousNeed, nor raised to it. 0: none.
	PreviousNeed memory.Bytes
	// DecreaseNever is true if a recommendation must not be below the current size.
	DecreaseNever bool
	// SharesLimit is true if the pod has a pod-level limit, so that a container without a limit gets a part of it.
	SharesLimit bool
	// IncreaseAfterKill is true if the limit is raised only after a kill or a stall at the current limit.
	IncreaseAfterKill bool
	// OOMFactorPercent is the growth from the limit a container was killed at; kills in quick succession double the limit.
	OOMFactorPercent int32
	// OOMMinIncrease is the smallest raise after a kill.
	OOMMinIncrease memory.Bytes
	// MinChangePercent is the smallest change that is made; 0: any.
	MinChangePercent int32
}

// Ease is a limit at which the garbage collector does not run more often than usual. At a lower limit it takes more CPU
// time, although the container is not killed.
type Ease struct {
	Limit memory.Bytes
	// Why names the pod and its live set.
	Why string
}

// Input has everything that a recommendation depends on.
type Input struct {
	// History is the history of the container name; nil: empty.
	History *history.Container
	// Replicas is the number of running replicas.
	Replicas int
	// Kills are the kills of this container, oldest first. The last 20 are enough.
	Kills []memory.OOMKill
	// Runs are the peaks of the last runs of a container that runs to completion, in any order. If there are any, hours
	// without samples count as hours without memory. The peaks themselves are only for messages.
	Runs   []memory.Bytes
	Traits Traits
	Policy Policy
	// Prior is the evidence of other containers with the same image; its zero value: none.
	Prior Prior
	// Current is the size of running containers.
	Current memory.Size
	// InUse is the highest demand of a replica in the last readings. No request is below it. 0: unknown.
	InUse memory.Bytes
	// InUseSeen is when the last of these readings was taken.
	InUseSeen time.Time
	// Unrelieved is the last stall of the week that a raise did not end; its zero value: none.
	Unrelieved memory.Stall
	// Ease is set if an agent found a heap that is too small for its live set; its zero value: none.
	Ease Ease
	// LargestNode is the allocatable memory of the largest node, which bounds growth without a LimitMax. 0: unknown.
	LargestNode memory.Bytes
	// Leak describes the evidence that every process grows from its start until it is killed; "": none. A leak stops
	// growth with an alarm.
	Leak string
	// Doubt is why Leak may be a start that still loads data; "": it is a leak. Only leaks without doubt raise an alarm.
	Doubt string
	// NoSamplesBecause is why no samples arrive now; "": samples arrive.
	NoSamplesBecause string
	// UnmeasuredContainer names a running container without readings, which may need more than the others; "": all have
	// readings. It prevents decreases below Last.
	UnmeasuredContainer string
	// Last is the last recommended size; zero: none.
	Last memory.Size
	// Climbing is true if memory grows steadily and load does not explain it. Growth then stops with an alarm.
	Climbing bool
	// Model is set only by the backtest, to measure the effect of a constant; nil: [DefaultModel].
	Model *Model
	Now   time.Time
}

// Evidence is the basis of a recommendation.
type Evidence struct {
	// PeakDemand is the highest demand of one container.
	PeakDemand memory.Bytes
	// Estimated is true if some demand of the last day was not exact. An estimate lowers no limit.
	Estimated bool
	// PeakRSS, PeakWorkingSet and PeakSwap are the highest values of one container.
	PeakRSS, PeakWorkingSet, PeakSwap memory.Bytes
	// Trough is the live set; 0: unknown.
	Trough memory.Bytes
	// Samples is the number of measurements.
	Samples int64
	// Window is the age of the oldest measurement that counts.
	Window time.Duration
	// Kills is the number of kills that a higher limit prevents.
	Kills int
}

// Recommendation is the result for one container.
type Recommendation struct {
	Decision Decision
	// Size is the recommended size; zero with Hold.
	Size       memory.Size
	Confidence memory.Confidence
	// Reasons derive the size from the evidence, in sentences with numbers.
	Reasons []string
	// Advice is what the owner should do, for example raise a runtime setting.
	Advice []string
	// Summary is the recommendation in one line.
	Summary string
	// RequeueAfter is the time until the next evaluation if no event comes before.
	RequeueAfter time.Duration
	Evidence     Evidence
	// Urgent is true if a kill of the last hour requires the size. No cool-down may then delay it for a smaller replica.
	Urgent bool
	// UseAboveRequest is true if the request is raised because more than the request is in use. No cool-down may delay
	// that raise, and no pod is restarted for it.
	UseAboveRequest bool
	// Guess is a raise by memfit that was more than needed. To undo it needs no day of evidence. nil: none.
	Guess *Raise
	// BurstEvidence is [Prior.Young] according to the bursts of this container while it is young; 0: nothing to add.
	BurstEvidence period.Evidence
	// Alarm is set if growth was stopped at a likely leak or at a bound; its text is also in Reasons.
	Alarm string
}

// Raise is a raise of a limit after kills or a stall, which show that more is needed, but not how much.
type Raise struct {
	// From is the limit before the raise.
	From memory.Bytes
	// At is the time of the last of the kills or stalls.
	At time.Time
}
