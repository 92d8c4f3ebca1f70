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
	// Keep: what the container has is right, or not wrong enough to change.
	Keep Decision = "Keep"
	// Increase and Decrease are the direction in which the limit (or, with an unchanged limit, the request) goes.
	Increase Decision = "Increase"
	Decrease Decision = "Decrease"
)

// Prices of an OOM kill, by the postures of the API: it is worth this much memory held for a day. Each is as high as
// makes it at least as safe, over the tuning halves together, as the rules before expected cost.
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
	// MayFollow is true if it does so by itself, but an image or a start script may have set another cap. Neither a lower
	// limit nor use near HeapPercent is then taken for harmless.
	MayFollow bool
	// HeapPercent is the share of the limit the managed heap may take, 0: unknown.
	HeapPercent int32
	// Overhead is what the runtime needs outside its heap whatever the limit.
	Overhead memory.Bytes
	// Reserve is what of the limit is kept back for others; the heap's share is of the rest.
	Reserve memory.Bytes
	// CapFollowsLimit is true if a process that gives up at its heap cap gets a larger cap from a higher limit, when it
	// starts again or, with CapFrozen, in a new pod only.
	CapFollowsLimit, CapFrozen bool
	// OwnHeap is the heap that a number of the owner permits to the processes, and OwnHeapBy is its setting ("-Xmx2g"). A
	// limit is not lowered below it: the process may fill it at any time, however little it has used until now. 0: none.
	OwnHeap   memory.Bytes
	OwnHeapBy string
	// CapSetBy names the text of the pod that sets the heap cap, as an instruction to change it; empty: none is known.
	CapSetBy string
}

// Policy is what the owner of a container asks for. Every field counts as it is; internal/profile fills in what the
// owner leaves unset.
type Policy struct {
	// RequestEqualsLimit is true if the request is the limit (requestPolicy: EqualsLimit).
	RequestEqualsLimit bool
	// HeadroomPercent is added to the need of a young container, to what a kill asks for, and to a live set.
	HeadroomPercent int32
	// MinMarginPercent is what the limit of an older one is above the peak of the last day at least.
	MinMarginPercent int32
	// KillPrice is what an OOM kill is worth: this much memory held for a day.
	KillPrice memory.Bytes
	// Bounds of the limit and the request; 0: none.
	LimitMin, LimitMax, RequestMin, RequestMax memory.Bytes
	// PodLimit is spec.resources.limits.memory of the pod, above which the API server takes no limit of a container;
	// PodRequest is what spec.resources.requests.memory leaves for this container beside the others. 0: the pod has none
	// of its own.
	PodLimit, PodRequest memory.Bytes
	// VolumesHold is what the memory-backed volumes of the container may hold (their size limits). A limit is not lowered
	// below it. 0: none has a size limit.
	VolumesHold memory.Bytes
	// Before is what the replaced program needed, whose owner's size was another. A limit is not lowered below it, nor
	// raised to it. 0: nothing.
	Before memory.Bytes
	// DecreaseNever is true if a recommendation is never below what the container has.
	DecreaseNever bool
	// SharesLimit is true if the pod has a limit as a whole: where the container has none, its recommendation is a part of
	// that.
	SharesLimit bool
	// IncreaseAfterKill is true if a limit is raised only after a kill or a stall at the one the container has.
	IncreaseAfterKill bool
	// OOMFactorPercent is the growth from the limit a container died at; quick repeats double instead.
	OOMFactorPercent int32
	// OOMMinIncrease is the smallest step after a kill.
	OOMMinIncrease memory.Bytes
	// MinChangePercent is the smallest change worth making; 0: every change is.
	MinChangePercent int32
}

// Ease is a limit with which a runtime collects no more often than by itself. Below, the program pays for it with its
// processor time, and no kill shows it.
type Ease struct {
	Limit memory.Bytes
	// Why names the pod, and what is alive in it.
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
	// Runs are the peaks of the last runs of a container that runs to completion, in any order. They are described; what
	// moves a size is that there are any: the container holds memory in hours with samples only.
	Runs   []memory.Bytes
	Traits Traits
	Policy Policy
	// Prior is what is known of its image; its zero value: nothing.
	Prior Prior
	// Current is what running containers have now.
	Current memory.Size
	// InUse is the demand that the fullest replica has had for the last readings. No request is recommended below it. 0:
	// not known.
	InUse memory.Bytes
	// InUseSeen is when the last of these readings was taken.
	InUseSeen time.Time
	// Unrelieved is the last stall of the week that a raise did not end; its zero value: there is none.
	Unrelieved memory.Stall
	// Ease is what an agent found of a heap that is too small for what is alive; its zero value: nothing.
	Ease Ease
	// LargestNode is the allocatable memory of the largest node, of which growth without a LimitMax takes a part at most.
	// 0: not known.
	LargestNode memory.Bytes
	// Leak describes the evidence that every process climbs from its start until it is killed; "": none. Growth stops
	// then, with an alarm.
	Leak string
	// Doubt is why Leak may be a start that still fills, and not a leak; "": it is one. Growth stops then, too, without an
	// alarm.
	Doubt string
	// Silent is why no samples arrive now; "": they do.
	Silent string
	// Unseen is the running container that has no readings, so that what the others use may be less than the need; "": all
	// have. Nothing is lowered below Last then, the last recommended size (zero: none).
	Unseen string
	Last   memory.Size
	// Climbing is true if the shape of memory is a steady climb that load does not explain. Growth then stops at the
	// bound, with an alarm.
	Climbing bool
	// Model is what the backtest sizes with when it asks what a constant is worth; nil, as everywhere else:
	// [DefaultModel].
	Model *Model
	Now   time.Time
}

// Evidence is what a recommendation rests on.
type Evidence struct {
	// PeakDemand is the highest demand seen in one container. Estimated: it was not exact for all of the last day, and
	// nothing is lowered by it.
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
	// Kills is the number of kills that moved the number.
	Kills int
}

// Recommendation is the answer for one container.
type Recommendation struct {
	Decision Decision
	// Size is the size recommended; zero with Hold.
	Size       memory.Size
	Confidence memory.Confidence
	// Reasons is the chain from evidence to number, in sentences with their figures.
	Reasons []string
	// Advice is what memfit does not carry out itself, for example a runtime setting to raise.
	Advice []string
	// Summary is the recommendation in one line.
	Summary string
	// RequeueAfter is when to evaluate again if nothing happens before.
	RequeueAfter time.Duration
	Evidence     Evidence
	// Urgent is true if a kill within the last hour asks for it, so that no cool-down may delay it, for any replica that
	// has less.
	Urgent bool
	// UseAboveRequest is true if the request goes up because more is in use than the request. No cool-down may delay that,
	// and nothing restarts for it.
	UseAboveRequest bool
	// Guess is a raise of memfit's own that was more than needed, so that taking it back needs no day of evidence; nil:
	// there is none.
	Guess *Raise
	// Teaches is [Prior.Young] by the bursts of this container while it is young; 0: it has shown none that every posture
	// does not hold.
	Teaches period.Evidence
	// Alarm is set when growth was stopped because memory grows steadily; the same words are in Reasons.
	Alarm string
}

// Raise is a limit that memfit raised because of kills or a stall, which show that more is needed and not how much.
type Raise struct {
	// From is the limit before it, At when the last of these kills, or the stall, was.
	From memory.Bytes
	At   time.Time
}
