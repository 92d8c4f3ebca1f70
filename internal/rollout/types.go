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
	// Terminating is true if the pod is being deleted or evicted.
	Ready, Terminating bool
	ReadyAt            time.Time // when the pod became ready; zero: it is not ready
	QoS                string    // Guaranteed, Burstable or BestEffort
	// Completes is true if the pod runs to completion, as a Job's pod. It may lose its work by a lower limit, a restart or
	// an eviction.
	Completes bool
	// DoNotDisrupt is the annotation by which the owner forbids restarts and evictions; empty: none.
	DoNotDisrupt string
	NodeSize     memory.Bytes // the allocatable memory of the pod's node; 0: unknown
	Resize       Resize
	Writer       string      // the field manager of the last resize, quoted; empty: memfit, or not resized
	WrittenAt    time.Time   // when Writer resized the pod
	Containers   []Container // the containers that memfit sizes
	Whole        *Whole      // the pod-level size; nil: none
	// Inadmissible returns why LimitRanges would refuse the pod if these containers had these sizes; empty: they allow it.
	// Nil: no LimitRanges.
	Inadmissible func(sizes map[string]memory.Size) string
	// WebhookSizes returns the sizes that the webhook would set on a successor of the pod instead of sizes, because no
	// node has memory for the requests, and the reason. Nil: the webhook would set sizes.
	WebhookSizes func(sizes map[string]memory.Size) (given map[string]memory.Size, why string)
}

// Resize holds the pod's conditions PodResizePending and PodResizeInProgress.
type Resize struct {
	Deferred   bool // the node lacks free memory now, and the kubelet retries
	Infeasible bool // the node is too small
	InProgress bool
	Failed     bool   // the kubelet reports an error, and retries
	Message    string // the kubelet's message
}

// Container is one container of a pod.
type Container struct {
	Name    string
	Program string // empty: unknown
	// Owner is the size in the owner's template, [NoLimit] without a limit; zero: unknown.
	Owner memory.Size
	// RestoreLimit is the limit at creation, at most the owner's, if memfit has resized the container since; 0: not
	// resized.
	RestoreLimit memory.Bytes
	// OwnerUntil is the time before which nothing is lowered below Owner, after an edit by the owner; zero: none.
	OwnerUntil time.Time
	// Outdated is true if the owner has set other sizes for the program since the pod was created.
	Outdated bool
	// ImageChanged is true if the image was changed in the running pod, whose size was meant for another program.
	ImageChanged bool
	// PreviousMax is the highest limit that pods of the program had when the pod was created; 0: unknown.
	PreviousMax memory.Bytes
	Spec        memory.Size // in the pod's spec
	Actual      memory.Size // in the pod's status
	// Effective is the limit that is proven to be effective if Actual is higher; 0: Actual is effective.
	Effective memory.Bytes
	// RevertibleUntil is the time until which the end of the running instance may prove a raise ineffective; zero: none.
	RevertibleUntil time.Time
	Restarts        int32
	Started         time.Time // of the running instance; zero: none runs
	// EndedEarly is true if the last instance ended within moments of its start, and none has run for longer since.
	EndedEarly bool
	Done       bool // the container has ended and will not run again (an init container)
	Ready      bool // the container is ready; the pod may not be
	EndedWell  bool // the last instance ended with exit code 0

	Demand         memory.Bytes // the unreclaimable memory in use; 0: not measured
	Usage          memory.Bytes // all memory that counts against the limit; 0: not measured
	Measured       time.Time    // when both were measured
	WorkingSetOnly bool         // Demand includes page cache
	FrozenHeap     memory.Bytes // the heap cap of the running process; 0: none, or unknown
	Overhead       memory.Bytes // the memory that the runtime needs outside the heap; 0: unknown
	// Literal is true if the cap is a number in the pod's environment, which a restart of the container does not change.
	Literal bool
	// CapFor is the limit for which a literal cap was set, if the process needs more than the cap: only a new pod can use
	// a higher limit. 0: otherwise.
	CapFor           memory.Bytes
	RestartsOnResize bool // resizePolicy is RestartContainer, also for a request alone (kubernetes/kubernetes#130917)
	Shared           bool // the container has no limit of its own, only the pod-level one
	// PodLimit and PodRequest are the share that the pod-level size leaves for the container; 0: no bound.
	PodLimit, PodRequest memory.Bytes
}

// NoLimit represents a missing limit in comparisons: it is higher than any limit.
const NoLimit = memory.Max

// Key identifies containers that get the same size.
type Key struct {
	Container, Program string // Program is empty if unknown
	Outdated           bool   // [Container.Outdated]
}

// Key returns the key of the container.
func (c *Container) Key() Key { return Key{c.Name, c.Program, c.Outdated} }

// MarshalText returns "container@program", or "container" without a program, followed by "!" if k is outdated.
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

// UnmarshalText parses the result of MarshalText. A container's name contains no "@", and a program no "!".
func (k *Key) UnmarshalText(text []byte) error {
	rest, outdated := strings.CutSuffix(string(text), "!")
	k.Container, k.Program, _ = strings.Cut(rest, "@")
	k.Outdated = outdated
	return nil
}

// Policy is the policy of the owner's profile for running pods.
type Policy struct {
	Evict bool // pods that cannot be resized in place are evicted (sizing.mode: InPlaceOrEvict)
	// KeepRunningPods is true if running pods keep their size (sizing.mode: OnCreate or Recommend), except that lowered
	// limits are restored ([Container.RestoreLimit]). New pods may get another size, and are watched.
	KeepRunningPods bool
	OnlyRecommend   bool // new pods keep their size as well (sizing.mode: Recommend)
	// NoEvict is why pods are not evicted although Evict is set ("no controller recreates this pod"); empty: evicted.
	NoEvict        string
	OnEachNode     bool  // there is one pod on each node, and its successor runs on the same node
	NoWebhook      bool  // new pods do not get the recommended size, so that an eviction is useless
	MaxUnavailable int32 // how many pods may be unavailable during changes; 0: 1

	SingleReplicaMayRestart bool          // a workload of one pod may be restarted or evicted
	RestartsPerDay          int           // the maximum number of pods restarted for their memory in 24 hours
	Watch                   time.Duration // how long a pod with a lower limit is watched, in real time
	// Cooldown is the minimum real time between two changes, except after a kill, and between two restarts.
	Cooldown           time.Duration
	Windows            maintenance.Windows // when limits may be lowered, and pods restarted or evicted
	IncreasesInWindows bool                // increases need an open window as well
}

// Desired is the recommendation for a container of every pod, with its bounds. A bound is zero if unknown or missing.
type Desired struct {
	Recommendation recommend.Recommendation
	Policy         recommend.Policy
	WindowPeak     memory.Bytes      // the highest use of the last day in any pod; no limit is lowered below it
	Range          constraints.Range // of the namespace's LimitRanges
	Quota          constraints.Quota // what quotas leave for all pods; the sizes in their specs are deducted
}

// Input is everything that a decision depends on.
type Input struct {
	Now      time.Time
	Policy   Policy
	Paused   string // the object with memfit.dev/pause, or the kill switch; empty: not paused
	Conflict string // another object that sizes this workload's memory (a VPA, an HPA on memory); empty: none
	Pods     []Pod  // the workload's pods that follow its profile and have not ended
	Waiting  []Waiting
	// Unmeasured has a sentence for each container, by name, that some running pod has no readings of. Its limit and
	// request are not lowered, and a lower limit does not count as proven.
	Unmeasured  map[string]string
	Desired     map[Key]Desired
	Succeeded   map[types.UID]bool // pods that ran to completion
	Elsewhere   map[types.UID]bool // running pods that follow another profile, or none
	State       State
	Restart     *Candidate   // a pod to replace by a new one of the same size; nil: none
	Allowance   *Allowance   // the cluster's remaining change budget; nil: unlimited
	QueryResult *QueryResult // nil: the owner has set no rollbackQuery
	Namespace   string       // of the pods, for commands in messages
}

// Action is one change of one pod.
type Action struct {
	Pod   string
	UID   types.UID
	Evict bool // the pod is evicted (eviction API); otherwise it is resized
	// Sizes are the new sizes by container and, by the name [WholePod], of the whole pod. A request or limit of 0 is
	// unchanged.
	Sizes   map[string]memory.Size
	Restart bool   // the eviction is for a new pod of the same size
	Undo    bool   // an ineffective resize is removed from the pod's spec
	Why     string // "limit of container app 64Mi to 160Mi"
}

// Transition is the result of [Decide].
type Transition struct {
	// State must be stored before Actions are carried out.
	State          State
	Actions        []Action
	RestartBlocked string // why Input.Restart is not evicted now; empty: evicted, or nil
	RollsBack      bool   // memfit still has to undo changes of its own, in any mode
	UpToDate       bool   // every pod has the recommended size
	// Reason and Message are for the condition Applied.
	Reason, Message string
	// RequeueAfter is the time after which Decide may return another result for the same input; 0: never.
	RequeueAfter time.Duration
}

// Finding is an observed result, for an Event.
type Finding struct {
	Kind    FindingKind
	Pod     string
	UID     types.UID
	Message string // a sentence with numbers
	// At and ID identify a finding that may be reported again ([RolledBack]); zero: it is reported once.
	At time.Time
	ID string
}

// FindingKind is the reason of the Event.
type FindingKind string

// The findings.
const (
	// Resized: the new size is effective.
	Resized FindingKind = v1alpha1.EventResized
	// Replaced: the successor of an evicted pod has the new size.
	Replaced FindingKind = v1alpha1.EventReplaced
	// NotResized: the resize was ineffective and is undone.
	NotResized FindingKind = v1alpha1.EventNotResized
	// Reverted: a lower limit led to kills, restarts or an unready pod, and is rolled back from every pod.
	Reverted FindingKind = v1alpha1.EventReverted
	// ConflictingWriter: another writer changed a size that memfit had set.
	ConflictingWriter FindingKind = v1alpha1.EventConflictingWriter
	// Restarted: a pod that was evicted for its memory has a ready successor. This is stored as a [Change], not reported.
	Restarted FindingKind = v1alpha1.EventRestartedForMemory
	// Loaned: a container got a higher limit before a kill. This is stored as a [Change]; the sender writes the Event.
	Loaned FindingKind = v1alpha1.EventMemoryLoaned
	// Returned: a loan has ended.
	Returned FindingKind = v1alpha1.EventLoanReturned
)

// Known reports whether this version of memfit has the kind. A newer version may have stored another kind.
func (k FindingKind) Known() bool {
	switch k {
	case Resized, Replaced, NotResized, Reverted, ConflictingWriter, Restarted, Loaned, Returned:
		return true
	}
	return false
}
