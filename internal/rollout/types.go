// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/maintenance"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// Pod is one running pod of a workload, as its status shows it.
type Pod struct {
	Name    string
	UID     types.UID
	Created time.Time
	// Ready is the pod's condition; Leaving: it is being deleted or evicted.
	Ready, Leaving bool
	// ReadyAt is since when it has been ready; zero: it is not.
	ReadyAt time.Time
	// QoS is the pod's class: Guaranteed, Burstable or BestEffort.
	QoS string
	// Run: it ends by itself, as a Job's does, and a lower limit or an eviction would cost its work.
	Run bool
	// NodeSize is the allocatable memory of its node; 0: not known.
	NodeSize memory.Bytes
	// Resize is what the kubelet reports about a resize that is not effective yet.
	Resize Resize
	// Writer is the field manager of the last resize, if that was not memfit's, and WrittenAt its time; empty: it was.
	Writer    string
	WrittenAt time.Time
	// Containers are those that memfit sizes.
	Containers []Container
	// Whole is the size of all its containers together (spec.resources); nil: it sets none.
	Whole *Whole
	// Inadmissible returns why the LimitRanges would not admit the pod with these sizes of some containers; empty: they
	// would. Nil: there are none.
	Inadmissible func(sizes map[string]memory.Size) string
}

// Resize is the state of an in-place resize according to the pod's conditions PodResizePending and PodResizeInProgress.
type Resize struct {
	// Deferred: the node has no capacity now, and the kubelet retries by itself. Infeasible: it never will have.
	Deferred, Infeasible bool
	// InProgress: the kubelet is at it; Failed: it tried and reports an error.
	InProgress, Failed bool
	// Message is the kubelet's.
	Message string
}

// Container is one container of a pod, as far as its size goes.
type Container struct {
	Name string
	// Program is what it runs; empty: unknown.
	Program string
	// Owner is what the owner of its pod asks for, without memfit, with [NoLimit] where that is none; zero: unknown.
	Owner memory.Size
	// Owed is the limit that it was created with, at most its owner's, if memfit resized it since; 0: it did not.
	Owed memory.Bytes
	// OwnerUntil is until when the container gets no less than Owner, because the owner set it so recently; zero: it may.
	OwnerUntil time.Time
	// Outdated: the owner has set other numbers for its program since its pod was created.
	Outdated bool
	// Changed: its image was changed in its pod, which got its size for another program.
	Changed bool
	// Before is the highest limit that pods of its program had when its pod was created; 0: unknown.
	Before memory.Bytes
	// Spec is what the pod asks for, Actual what the kubelet has made effective.
	Spec, Actual memory.Size
	// Effective is the limit that is proven to be effective for it and its pod where Actual shows more; 0: Actual is
	// effective.
	Effective memory.Bytes
	// DoubtedUntil is how long a death of the instance that runs would tell that a raise is not effective; zero: none
	// would.
	DoubtedUntil time.Time
	Restarts     int32
	// Started is when the running instance began; zero: none runs.
	Started time.Time
	// Brief: it is down, or has just started, and its last instance ended within moments of its start. Done: it has ended
	// and will not run again (an init container).
	Brief, Done bool
	// Ready: it is, whatever its node or other containers are. EndedWell: its last instance ended with exit code 0.
	Ready, EndedWell bool
	// Demand is the memory in use now that the kernel cannot reclaim, Usage all that counts against the limit, page cache
	// included; 0: not measured. Measured is when; WorkingSetOnly: Demand contains page cache.
	Demand, Usage  memory.Bytes
	Measured       time.Time
	WorkingSetOnly bool
	// FrozenHeap is the heap cap the process runs with, Overhead what its runtime needs besides; 0: there is none, or it
	// is unknown.
	FrozenHeap, Overhead memory.Bytes
	// Literal: the cap is a number in the pod's environment, which not even a restart of the container changes.
	Literal bool
	// CapFor is the limit that such a cap is for, if the process needs more than the cap; 0: it does not. A higher limit
	// helps the next pod only.
	CapFor memory.Bytes
	// RestartsOnResize: its resizePolicy is RestartContainer.
	RestartsOnResize bool
	// Shared: it has no limit of its own, and is held by that of the whole pod.
	Shared bool
	// PodLimit and PodRequest are what the pod as a whole leaves it; 0: anything.
	PodLimit, PodRequest memory.Bytes
}

// NoLimit is the limit of what has none, as the size before a lower one: it is higher than any.
const NoLimit = memory.Max

// Key names containers that get the same size: a recommendation rests on the evidence of one program and is for pods
// with the same numbers of its owner. Program is empty where it is unknown.
type Key struct {
	Container, Program string
	// Outdated: of pods with earlier numbers of the owner ([Container.Outdated]).
	Outdated bool
}

// Key returns the key of a running container.
func (c *Container) Key() Key { return Key{c.Name, c.Program, c.Outdated} }

// MarshalText returns "container@program", or "container"; with "!" behind it for pods with earlier numbers.
func (k Key) MarshalText() ([]byte, error) {
	text := k.Container
	if k.Program != "" {
		text += "@" + k.Program
	}
	if k.Outdated {
		text += "!"
	}
	return []byte(text), nil
}

// UnmarshalText reads what MarshalText wrote. The name of a container has no "@", and a program no "!".
func (k *Key) UnmarshalText(text []byte) error {
	rest, outdated := strings.CutSuffix(string(text), "!")
	k.Container, k.Program, _ = strings.Cut(rest, "@")
	k.Outdated = outdated
	return nil
}

// Policy is what the owner's profile allows to be done to running pods.
type Policy struct {
	// Evict: what cannot be resized in place is evicted (sizing.mode: InPlaceOrEvict).
	Evict bool
	// OnlyWatch: running pods keep their size (sizing.mode: OnCreate), once they have what they are owed
	// ([Container.Owed]). New ones may get another, and are watched.
	OnlyWatch bool
	// OnlyRecommend: new pods keep their size as well (sizing.mode: Recommend).
	OnlyRecommend bool
	// NoEvict is why pods are not evicted although Evict is set ("no controller recreates this pod"); empty: they may be.
	NoEvict string
	// OnEachNode: there is one pod on each node, and its successor goes to the same one.
	OnEachNode bool
	// NoWebhook: new pods do not get the size, so that an eviction helps nothing.
	NoWebhook bool
	// MaxUnavailable is the number of pods that may be changed at the same time. 0: 1.
	MaxUnavailable int32
	// SingleReplicaMayRestart: a workload of one pod may be restarted or evicted.
	SingleReplicaMayRestart bool
	// RestartsPerDay is the most pods that are restarted for their memory in 24 hours.
	RestartsPerDay int
	// Watch is how long a pod whose limit was lowered is watched, and Cooldown the least time between two changes that no
	// kill asked for, or between two restarts, both in real time.
	Watch, Cooldown time.Duration
	// Windows are the maintenance windows for what lowers, restarts or evicts; IncreasesInWindows: for every raise, too.
	Windows            maintenance.Windows
	IncreasesInWindows bool
}

// Desired is the recommendation for a container of every pod, and what bounds it. A zero bound is unknown or none.
type Desired struct {
	Recommendation recommend.Recommendation
	Policy         recommend.Policy
	// WindowPeak is the highest use of the last day, on any pod; a limit is not lowered onto it.
	WindowPeak memory.Bytes
	Range      constraints.Range
	// Quota is what is left for this workload, for all replicas together, of which those have theirs that were changed.
	Quota constraints.Quota
}

// Input is everything a decision depends on.
type Input struct {
	Now    time.Time
	Policy Policy
	// Paused names the object that carries memfit.dev/pause, or the kill switch; empty: nothing pauses.
	Paused string
	// Conflict names another object that sizes this workload's memory (a VPA, an HPA on memory); empty: none.
	Conflict string
	// Pods are the workload's governed pods that have not ended.
	Pods []Pod
	// Desired are the recommendations.
	Desired map[Key]Desired
	// Succeeded are pods that ran to completion, and Elsewhere those that run and follow another profile, or none.
	Succeeded, Elsewhere map[types.UID]bool
	State                State
	// Restart is a pod that should be replaced by a fresh one; nil: none.
	Restart *Candidate
	// Allowance is what the change budget of the cluster leaves this workload; nil: there is no budget.
	Allowance *Allowance
	// QueryResult is the answer of Prometheus to the owner's rollbackQuery; nil: there is no such query.
	QueryResult *QueryResult
	// Namespace of the pods, for commands in messages.
	Namespace string
}

// Action is one thing to do to one pod.
type Action struct {
	Pod string
	UID types.UID
	// Evict: by the eviction API. Otherwise Sizes are what its containers are resized to, and the pod as a whole where
	// they name it ([WholePod]); 0 leaves a request or limit as it is.
	Evict bool
	Sizes map[string]memory.Size
	// Restart: evicted for a fresh one of the same size.
	Restart bool
	// Undo: a resize that did not come about is taken out of the pod's spec again.
	Undo bool
	// Why describes it in words: "limit of container app 64Mi to 160Mi".
	Why string
}

// Transition is the result of the state machine: the next state, what to do now, and what to report.
type Transition struct {
	// State is to be written before Actions are carried out.
	State   State
	Actions []Action
	// RestartHeld is why Input.Restart is not evicted now; empty: it is, or there is none.
	RestartHeld string
	// UpToDate: every pod has what is recommended. Reason and Message are those of the Applied condition.
	UpToDate        bool
	Reason, Message string
	// RequeueAfter is when the answer may differ without news; 0: only with news.
	RequeueAfter time.Duration
}

// Finding is something that turned out since the last decision, for an event.
type Finding struct {
	Kind FindingKind
	Pod  string
	UID  types.UID
	// Message is a sentence with numbers.
	Message string
}

// FindingKind is the event's reason.
type FindingKind string

// The findings.
const (
	// Resized: the kubelet made the new size effective. Replaced: an evicted pod's successor runs with it.
	Resized  FindingKind = v1alpha1.EventResized
	Replaced FindingKind = v1alpha1.EventReplaced
	// NotResized: the resize was given up and is rolled back.
	NotResized FindingKind = v1alpha1.EventNotResized
	// Reverted: a lower limit led to kills, restarts or a pod that is not ready, and is rolled back from every pod.
	Reverted FindingKind = v1alpha1.EventReverted
	// ConflictingWriter: another writer changed a size that memfit had set.
	ConflictingWriter FindingKind = v1alpha1.EventConflictingWriter
	// Fresh: a pod that was evicted for its memory has a successor that is ready. It is kept as a change, and no event.
	Fresh FindingKind = v1alpha1.EventRestartedForMemory
	// Loaned: a container got a higher limit before the kernel would have killed it. It is kept as a change; its Event is
	// of whoever sent it. Returned: the loan has ended.
	Loaned   FindingKind = v1alpha1.EventMemoryLoaned
	Returned FindingKind = v1alpha1.EventLoanReturned
)

// Known reports whether this version knows a kind. What a newer one kept may have others.
func (k FindingKind) Known() bool {
	switch k {
	case Resized, Replaced, NotResized, Reverted, ConflictingWriter, Fresh, Loaned, Returned:
		return true
	}
	return false
}
