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

// Pod is a running pod of a workload, as its status shows it.
type Pod struct {
	Name    string
	UID     types.UID
	Created time.Time
	// Terminating is true if it is being deleted or evicted.
	Ready, Terminating bool
	ReadyAt            time.Time // when it became ready; zero: it is not ready
	QoS                string    // Guaranteed, Burstable or BestEffort
	// Completes is true if it runs to completion, as a Job's pod, and would lose its work with a lower limit, by a restart
	// or an eviction.
	Completes bool
	// Undisturbed is the annotation by which its owner forbids restarts and evictions; empty: none.
	Undisturbed string
	NodeSize    memory.Bytes // the allocatable memory of its node; 0: unknown
	Resize      Resize
	// Writer is the field manager of the last resize if other than memfit, and WrittenAt its time; empty: memfit.
	Writer    string
	WrittenAt time.Time
	// Containers are the ones memfit sizes.
	Containers []Container
	Whole      *Whole // nil: no pod-level size
	// Inadmissible returns why LimitRanges would refuse the pod with these sizes of some containers; empty: they allow
	// it. Nil: no LimitRanges.
	Inadmissible func(sizes map[string]memory.Size) string
	// Given returns the sizes that the webhook sets on a successor of this pod, while no node takes a larger request,
	// and why they are less than sizes. Nil: it sets sizes.
	Given func(sizes map[string]memory.Size) (given map[string]memory.Size, why string)
}

// Resize has the pod's conditions PodResizePending and PodResizeInProgress.
type Resize struct {
	// Deferred is true if the node lacks memory now, and the kubelet retries. Infeasible is true if the node is too small.
	Deferred, Infeasible bool
	// Failed is true if the kubelet reports an error, and retries.
	InProgress, Failed bool
	// Message is the kubelet's.
	Message string
}

// Container is one container of a pod.
type Container struct {
	Name    string
	Program string // empty: unknown
	// Owner is the size in the owner's template, [NoLimit] without a limit; zero: unknown.
	Owner memory.Size
	// Owed is its limit at creation, at most its owner's, if memfit has resized it since; 0: not resized.
	Owed memory.Bytes
	// OwnerUntil is the time before which the container gets at least Owner, after a recent edit; zero: no bound.
	OwnerUntil time.Time
	// Outdated is true if the owner has set other numbers for its program since its pod was created.
	Outdated bool
	// Changed is true if its image was changed in its pod, which got its size for another program.
	Changed bool
	// Before is the highest limit that pods of its program had when its pod was created; 0: unknown.
	Before memory.Bytes
	// Spec is the size in the pod's spec, Actual the one in its status.
	Spec, Actual memory.Size
	// Effective is the limit that is proven to be effective if Actual shows more; 0: Actual is effective.
	Effective memory.Bytes
	// DoubtedUntil is when a death of the running instance no longer proves a raise ineffective; zero: no doubt.
	DoubtedUntil time.Time
	Restarts     int32
	Started      time.Time // of the running instance; zero: none runs
	// Brief is true if it is down, or has just started, and its last instance ended within moments of its start. Done is
	// true if it has ended and will not run again (an init container).
	Brief, Done bool
	// Ready is the container's own, not the pod's condition. EndedWell is true if its last instance ended with exit
	// code 0.
	Ready, EndedWell bool
	// Demand is the unreclaimable memory in use, Usage all that counts against the limit; 0: not measured. Measured is
	// the time of both. WorkingSetOnly: Demand contains page cache.
	Demand, Usage  memory.Bytes
	Measured       time.Time
	WorkingSetOnly bool
	// FrozenHeap is the heap cap of the running process, Overhead what its runtime needs besides; 0: none, or unknown.
	FrozenHeap, Overhead memory.Bytes
	// Literal is true if the cap is a number in the pod's environment, which a restart of the container does not change.
	Literal bool
	// CapFor is the limit for which such a cap was set, if the process needs more than the cap; 0: otherwise. A raise
	// helps only the next pod.
	CapFor           memory.Bytes
	RestartsOnResize bool // its resizePolicy is RestartContainer: also for a request alone (kubernetes/kubernetes#130917)
	Shared           bool // it has no limit of its own, only the pod-level one
	// PodLimit and PodRequest are what the pod-level size leaves it; 0: no bound.
	PodLimit, PodRequest memory.Bytes
}

// NoLimit represents a missing limit in comparisons: it is higher than any.
const NoLimit = memory.Max

// Key identifies containers that get the same size: of one program, in pods with the same numbers of their owner.
// Program is empty if unknown.
type Key struct {
	Container, Program string
	// Outdated is true for pods with earlier numbers of the owner ([Container.Outdated]).
	Outdated bool
}

// Key returns the key of the container.
func (c *Container) Key() Key { return Key{c.Name, c.Program, c.Outdated} }

// MarshalText returns "container@program", or "container"; followed by "!" for pods with earlier numbers.
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

// UnmarshalText reads the result of MarshalText. The name of a container has no "@", and a program no "!".
func (k *Key) UnmarshalText(text []byte) error {
	rest, outdated := strings.CutSuffix(string(text), "!")
	k.Container, k.Program, _ = strings.Cut(rest, "@")
	k.Outdated = outdated
	return nil
}

// Policy is the policy of the owner's profile for running pods.
type Policy struct {
	Evict bool // pods that cannot be resized in place are evicted (sizing.mode: InPlaceOrEvict)
	// OnlyWatch is true if running pods keep their size (sizing.mode: OnCreate), once they have what they are owed
	// ([Container.Owed]). New ones may get another, and are watched.
	OnlyWatch     bool
	OnlyRecommend bool // new pods keep their size as well (sizing.mode: Recommend)
	// NoEvict is why pods are not evicted although Evict is set ("no controller recreates this pod"); empty: evicted.
	NoEvict        string
	OnEachNode     bool  // there is one pod on each node, and its successor goes to the same one
	NoWebhook      bool  // new pods do not get the size, so that an eviction is useless
	MaxUnavailable int32 // the number of pods that may be changed at the same time; 0: 1

	SingleReplicaMayRestart bool // a workload of one pod may be restarted or evicted
	RestartsPerDay          int  // the maximum number of pods restarted for their memory in 24 hours
	// Watch is how long a pod with a lowered limit is watched, Cooldown the least time between two changes without a
	// kill, or between two restarts, both in real time.
	Watch, Cooldown time.Duration
	// Windows are the maintenance windows to lower, restart or evict; IncreasesInWindows: also to raise.
	Windows            maintenance.Windows
	IncreasesInWindows bool
}

// Desired is the recommendation for a container of every pod, with its bounds. A zero bound is unknown or none.
type Desired struct {
	Recommendation recommend.Recommendation
	Policy         recommend.Policy
	// WindowPeak is the highest use of the last day, on any pod; no limit is lowered below it.
	WindowPeak memory.Bytes
	Range      constraints.Range
	// Quota is what is left for all replicas of the workload. It already counts changed ones.
	Quota constraints.Quota
}

// Input is everything a decision depends on.
type Input struct {
	Now      time.Time
	Policy   Policy
	Paused   string // the object with memfit.dev/pause, or the kill switch; empty: not paused
	Conflict string // another object that sizes this workload's memory (a VPA, an HPA on memory); empty: none
	Pods     []Pod  // the workload's governed pods that have not ended
	Waiting  []Waiting
	// Unseen describes, by name, a container of a running pod without readings: the others' readings lower no limit
	// or request, and no lower limit counts as proven.
	Unseen  map[string]string
	Desired map[Key]Desired
	// Succeeded are pods that ran to completion, Elsewhere running ones that follow another profile, or none.
	Succeeded, Elsewhere map[types.UID]bool
	State                State
	Restart              *Candidate   // a pod to replace by a new one of the same size; nil: none
	Allowance            *Allowance   // the cluster's remaining change budget; nil: unlimited
	QueryResult          *QueryResult // nil: the owner has no rollbackQuery
	Namespace            string       // of the pods, for commands in messages
}

// Action is one change of one pod.
type Action struct {
	Pod string
	UID types.UID
	// Evict is true if the pod is evicted (eviction API). Otherwise Sizes are the new sizes of its containers and, by the
	// name [WholePod], of the whole pod; 0 leaves a request or limit unchanged.
	Evict bool
	Sizes map[string]memory.Size

	Restart bool   // evicted for a new one of the same size
	Undo    bool   // an ineffective resize is removed from the pod's spec
	Why     string // "limit of container app 64Mi to 160Mi"
}

// Transition is the result of [Decide].
type Transition struct {
	// State is to be written before Actions are carried out.
	State   State
	Actions []Action
	// RestartHeld is why Input.Restart is not evicted now; empty: evicted, or nil.
	RestartHeld string
	// TakesBack: memfit still has changes of its own to undo, in any mode.
	TakesBack bool
	// UpToDate: every pod has the recommended size. Reason and Message are for the condition Applied.
	UpToDate        bool
	Reason, Message string
	// RequeueAfter is when the result may differ with equal input; 0: never.
	RequeueAfter time.Duration
}

// Finding is an observed result, for an Event.
type Finding struct {
	Kind    FindingKind
	Pod     string
	UID     types.UID
	Message string // a sentence with numbers
	// At and ID are equal if it is reported again ([RolledBack]); zero: never.
	At time.Time
	ID string
}

// FindingKind is the reason of the Event.
type FindingKind string

// The findings.
const (
	// Resized: the new size is effective. Replaced: the successor of an evicted pod has it.
	Resized  FindingKind = v1alpha1.EventResized
	Replaced FindingKind = v1alpha1.EventReplaced
	// NotResized: the resize was ineffective and is undone.
	NotResized FindingKind = v1alpha1.EventNotResized
	// Reverted: a lower limit led to kills, restarts or a pod that is not ready, and is rolled back from every pod.
	Reverted FindingKind = v1alpha1.EventReverted
	// ConflictingWriter: another writer changed a size that memfit had set.
	ConflictingWriter FindingKind = v1alpha1.EventConflictingWriter
	// Restarted: a pod that was evicted for its memory has a ready successor. It is only stored as a [Change].
	Restarted FindingKind = v1alpha1.EventRestartedForMemory
	// Loaned: a container got a higher limit before a kill. It is stored as a [Change]; the sender writes the Event.
	// Returned: the loan has ended.
	Loaned   FindingKind = v1alpha1.EventMemoryLoaned
	Returned FindingKind = v1alpha1.EventLoanReturned
)

// Known reports whether this version has the kind: a newer one may have stored another.
func (k FindingKind) Known() bool {
	switch k {
	case Resized, Replaced, NotResized, Reverted, ConflictingWriter, Restarted, Loaned, Returned:
		return true
	}
	return false
}
