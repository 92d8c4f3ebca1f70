// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AgentTier is how deeply an agent inspects containers.
// +kubebuilder:validation:Enum=Watch;See
type AgentTier string

const (
	// AgentWatch reads the kernel's memory counters of each container, and no process memory.
	AgentWatch AgentTier = "Watch"
	// AgentSee also reads the mappings of processes, and the heap headers in them that distinguish used from free memory.
	AgentSee AgentTier = "See"
)

// Inspection is the outcome of an inspection of the processes of a container.
// +kubebuilder:validation:Enum=Inspected;NotEnabled;Declined;Unreadable
type Inspection string

const (
	// InspectionDone means that the agent read memory and runtime.
	InspectionDone Inspection = "Inspected"
	// InspectionNotEnabled means that the agent runs at tier Watch.
	InspectionNotEnabled Inspection = "NotEnabled"
	// InspectionDeclined means that the pod has the annotation memfit.dev/inspect: "false".
	InspectionDeclined Inspection = "Declined"
	// InspectionUnreadable means that the processes could not be read; inspectionMessage has the reason.
	InspectionUnreadable Inspection = "Unreadable"
)

// InspectedRuntime is the language runtime of a container's largest process; the first process is often a shell
// that started it. FoundRuntime merges this across replicas.
type InspectedRuntime struct {
	// allocator allocates memory outside of the managed heap: glibc, musl, jemalloc, tcmalloc, mimalloc or Go.
	// +kubebuilder:validation:MaxLength=64
	Allocator string `json:"allocator,omitempty"`
	// containerAware is whether the runtime sizes its heap by the limit (Yes) or by the memory of the node (No); absent:
	// unknown, or the runtime sizes no heap.
	// +kubebuilder:validation:Enum=Yes;No
	ContainerAware string `json:"containerAware,omitempty"`
	// evidence lists what identifies the runtime, each in a few words. Example: libjvm.so is mapped.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	Evidence []string `json:"evidence,omitempty"`
	// flags are the memory settings at start, and their source. Example: -Xmx300m (command line).
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	Flags []string `json:"flags,omitempty"`
	// heapSet is true if an option sets the maximum heap, or the memory limit that the runtime assumes, to a number of
	// bytes instead of a percentage.
	HeapSet bool `json:"heapSet,omitempty"`
	// libc is the C library and its version. Example: glibc 2.36.
	// +kubebuilder:validation:MaxLength=64
	Libc string `json:"libc,omitempty"`
	// maxHeap is the maximum heap of the process; absent: unreadable. JVM only.
	MaxHeap *resource.Quantity `json:"maxHeap,omitempty"`
	// type is the runtime, as runtime.type of a profile names it. Example: NodeJS.
	// +kubebuilder:validation:MaxLength=32
	Type string `json:"type"`
	// variables are the names of the process's environment variables with memory settings. Example: JAVA_TOOL_OPTIONS.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	Variables []string `json:"variables,omitempty"`
	// version of the runtime. Example: 20.18.1.
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
}

// PartGroup is what a part of a container's memory is used for.
type PartGroup string

// The groups of parts.
const (
	PartHeap   PartGroup = "Heap"
	PartNative PartGroup = "Native"
	PartFiles  PartGroup = "Files"
	PartShared PartGroup = "Shared"
)

// PartArenas is the name of the part with glibc's arenas, which keep freed memory.
const PartArenas = "glibc arenas"

// MemoryPart is a named part of a container's resident memory.
type MemoryPart struct {
	// free is the part's unused resident memory that the allocator could release.
	Free *resource.Quantity `json:"free,omitempty"`
	// group is what the part is used for: Heap is the heap that the runtime manages, Native memory from its allocator,
	// thread stacks and compiled code, Files the pages of programs, libraries and other mapped files, Shared memory that
	// processes share.
	// +kubebuilder:validation:Enum=Heap;Native;Files;Shared
	Group PartGroup `json:"group,omitempty"`
	// name of the part. Example: glibc arenas.
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// resident is its memory in RAM.
	Resident resource.Quantity `json:"resident"`
}

// PredictedSaving is the resident memory that one action would free.
type PredictedSaving struct {
	// action that may free memory. Example: malloc_trim.
	// +kubebuilder:validation:MaxLength=64
	Action string `json:"action"`
	// atMost is the upper bound where amount is a lower bound; absent: amount is exact.
	AtMost *resource.Quantity `json:"atMost,omitempty"`
	// amount is the reduction of resident memory; 0: the action frees nothing.
	Amount resource.Quantity `json:"amount"`
	// how to apply the action. Example: tuning.arenaMax: 2 in the profile, for new pods.
	// +kubebuilder:validation:MaxLength=256
	How string `json:"how,omitempty"`
	// limit is the container limit with which the setting causes no additional garbage collections; absent: the current
	// limit is enough, or unknown.
	Limit *resource.Quantity `json:"limit,omitempty"`
	// method is how amount was computed, with its numbers. For GOMEMLIMIT and a JVM's larger heap it includes the garbage
	// collector's share of processor time since the process started and, where known, how much of it a limit that is
	// 64Mi higher would save at least.
	// +kubebuilder:validation:MaxLength=256
	Method string `json:"method,omitempty"`
	// setting is memfit's setting for this action; absent: none. Example: MALLOC_ARENA_MAX.
	// +kubebuilder:validation:MaxLength=64
	Setting string `json:"setting,omitempty"`
}

// MemoryParts lists what fills a container. The sum of parts and unexplained is resident.
type MemoryParts struct {
	// coveragePercent is the share of bytes that were readable and consistent: the lowest of the shares of each heap and
	// of all resident memory. Below 95, amounts of free memory are lower bounds.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	CoveragePercent int32 `json:"coveragePercent,omitempty"`
	// savings are actions that may free memory, the most certain first, including actions that would free nothing.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Savings []PredictedSaving `json:"savings,omitempty"`
	// summary is a sentence about the largest saving, or why no action saves memory.
	// +kubebuilder:validation:MaxLength=512
	Summary string `json:"summary,omitempty"`
	// parts of the resident memory, the largest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=24
	Parts []MemoryPart `json:"parts,omitempty"`
	// processes is the number of processes in the container.
	// +kubebuilder:validation:Minimum=0
	Processes int32 `json:"processes,omitempty"`
	// resident is the resident memory of all processes of the container.
	Resident resource.Quantity `json:"resident"`
	// time is when it was read.
	Time metav1.Time `json:"time"`
	// unexplained is resident memory in no part. It is always set.
	Unexplained resource.Quantity `json:"unexplained"`
}

// MapRegion is a range of addresses, drawn in blocks. Many small ranges of one part are merged into one region.
type MapRegion struct {
	// block is the number of bytes that each block represents; the last may represent fewer.
	Block resource.Quantity `json:"block"`
	// free is the unused resident memory of the region.
	Free *resource.Quantity `json:"free,omitempty"`
	// pages are the blocks in the order of addresses, run-length encoded: L all resident memory is in use, M some of it
	// is free, F all of it is free, A nothing is resident. Example: L12F3A40.
	// +kubebuilder:validation:MaxLength=20480
	Pages string `json:"pages"`
	// part is the name of the region's part.
	// +kubebuilder:validation:MaxLength=64
	Part string `json:"part"`
	// process numbers the inspected processes of the container from 1, the largest first. It is not a PID.
	// +kubebuilder:validation:Minimum=0
	Process int32 `json:"process,omitempty"`
	// resident is its memory in RAM.
	Resident resource.Quantity `json:"resident"`
	// size is the size of the whole range.
	Size resource.Quantity `json:"size"`
}

// MemoryMap shows which pages of a container's address space are in use, free and absent. Its size is 32 KiB at most.
type MemoryMap struct {
	// regions with the most resident memory, the largest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=48
	Regions []MapRegion `json:"regions,omitempty"`
	// rest is the resident memory of all other regions.
	Rest *resource.Quantity `json:"rest,omitempty"`
	// time is when it was read.
	Time metav1.Time `json:"time"`
}

// UsagePoint is one reading before a kill or a stall.
type UsagePoint struct {
	// millisecondsBefore is the time from this reading until the agent noticed the kill or stall.
	// +kubebuilder:validation:Minimum=0
	MillisecondsBefore int32 `json:"millisecondsBefore"`
	// usage is what the kernel counted against the limit.
	Usage resource.Quantity `json:"usage"`
}

// ProcessDied is a process that was gone after a kill.
type ProcessDied struct {
	// name of the process, as the kernel shows it. The process chooses it.
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// pid in the container's PID namespace; 0 where unknown.
	// +kubebuilder:validation:Minimum=0
	PID int32 `json:"pid,omitempty"`
	// resident is its memory in the last reading.
	Resident *resource.Quantity `json:"resident,omitempty"`
}

// MinuteBefore is an agent's record of a container in the minute before a kill, or before the fifth second of a stall.
type MinuteBefore struct {
	// containerLimit is the effective limit of the container's own cgroup; absent: none.
	ContainerLimit *resource.Quantity `json:"containerLimit,omitempty"`
	// growthMilliseconds is how long usage had been growing.
	// +kubebuilder:validation:Minimum=0
	GrowthMilliseconds int32 `json:"growthMilliseconds,omitempty"`
	// growthPerSecond is the average growth of usage per second.
	GrowthPerSecond *resource.Quantity `json:"growthPerSecond,omitempty"`
	// memory is what filled the container at the last inspection before the kill, or before the stall was confirmed, half
	// a minute after it started. memory.time is the time of that inspection.
	Memory *MemoryParts `json:"memory,omitempty"`
	// podLimit is the effective limit of the pod's cgroup, which its containers share; absent: none.
	PodLimit *resource.Quantity `json:"podLimit,omitempty"`
	// series are the readings of the minute, oldest first: up to 40 single readings of the last ten seconds, and before
	// them the highest of every 2.5 seconds.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=60
	Series []UsagePoint `json:"series,omitempty"`
	// summary is one sentence with the numbers.
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary"`
	// usage is the last reading; absent without readings in the minute.
	Usage *resource.Quantity `json:"usage,omitempty"`
}

// KillSnapshot is an agent's record of an OOM kill and of the minute before it.
type KillSnapshot struct {
	MinuteBefore `json:",inline"`

	// evidence is what showed the kill: CounterRose (the kernel's count of kills) or PodStatus (the container was gone
	// before the count was read, and the kubelet reports OOMKilled).
	// +kubebuilder:validation:Enum=CounterRose;PodStatus
	Evidence string `json:"evidence"`
	// kind is MainProcess when the kill ended the container, and ChildProcess when the container continued.
	// +kubebuilder:validation:Enum=MainProcess;ChildProcess
	Kind string `json:"kind"`
	// lastReadMillisecondsBefore is the time from the last reading of the memory until the agent noticed the kill; what
	// happened in between is unknown.
	// +kubebuilder:validation:Minimum=0
	LastReadMillisecondsBefore int32 `json:"lastReadMillisecondsBefore,omitempty"`
	// limitReached is whether the limit of the container or its pod was reached in the minute before, according to the
	// kernel (memory.events): Yes, or No, which means that the node ran out of memory. Absent: unknown, as on cgroup v1.
	// +kubebuilder:validation:Enum=Yes;No
	LimitReached string `json:"limitReached,omitempty"`
	// limitsChanged is true if containerLimit or podLimit changed before the agent noticed the kill, so the limit at the
	// kill is uncertain; the lower values are reported.
	LimitsChanged bool `json:"limitsChanged,omitempty"`
	// processes are those that existed before the kill and not after it, the largest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	Processes []ProcessDied `json:"processes,omitempty"`
	// time is when the agent noticed the kill.
	Time metav1.Time `json:"time"`
}

// StallSnapshot is a period in which a container was stalled at its limit and not OOM-killed, and the minute before it.
type StallSnapshot struct {
	MinuteBefore `json:",inline"`

	// anonymous is the anonymous memory when the stall was confirmed.
	Anonymous *resource.Quantity `json:"anonymous,omitempty"`
	// ended is when the stall ended; absent while it continues.
	Ended *metav1.Time `json:"ended,omitempty"`
	// high is the memory.high, below the limit, at which the container stalled; absent: it stalled at the limit.
	High *resource.Quantity `json:"high,omitempty"`
	// majorFaultsPerSecond is the rate of page faults that read from disk, when the stall was confirmed.
	// +kubebuilder:validation:Minimum=0
	MajorFaultsPerSecond int32 `json:"majorFaultsPerSecond,omitempty"`
	// stalledPercent is the share of time in which every task of the container waited for memory (PSI memory full), where
	// the kernel reports it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	StalledPercent int32 `json:"stalledPercent,omitempty"`
	// started is when the stall began.
	Started metav1.Time `json:"started"`
}

// ContainerSnapshot is the agent's data about one container. kubectl describe sorts fields by name and prints list
// items without a separator, so container comes first and summary has the essentials.
type ContainerSnapshot struct {
	// container is the container's name.
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container"`
	// demand is the memory that the kernel cannot reclaim: usage without page cache, plus swap.
	Demand *resource.Quantity `json:"demand,omitempty"`
	// high is the memory.high that the kernel enforces for the container's own cgroup, below its limit: above it, the
	// kernel slows the processes down instead of killing one. The kubelet sets it with MemoryQoS; absent: not set.
	High *resource.Quantity `json:"high,omitempty"`
	// inspection is the result of the last inspection. NotEnabled: tier Watch; Declined: annotation memfit.dev/inspect.
	Inspection Inspection `json:"inspection"`
	// inspectionMessage is the reason why processes could not be read.
	// +kubebuilder:validation:MaxLength=512
	InspectionMessage string `json:"inspectionMessage,omitempty"`
	// lastKill is the last OOM kill that the agent saw in this container.
	LastKill *KillSnapshot `json:"lastKill,omitempty"`
	// lastStall is the last stall that the agent saw in this container.
	LastStall *StallSnapshot `json:"lastStall,omitempty"`
	// limit is the memory limit that the kernel enforces for the container's own cgroup; absent: none. It differs from
	// the pod's spec while a resize is in progress.
	Limit *resource.Quantity `json:"limit,omitempty"`
	// map is the map of its memory for kubectl memfit map, while the pod has the annotation memfit.dev/map: "true".
	Map *MemoryMap `json:"map,omitempty"`
	// memory is what fills the container, at tier See.
	Memory *MemoryParts `json:"memory,omitempty"`
	// oomKills is the number of OOM kills that this agent saw in this container since the agent started.
	// +kubebuilder:validation:Minimum=0
	OOMKills int32 `json:"oomKills,omitempty"`
	// peak is the highest usage that the agent read since the container started.
	Peak *resource.Quantity `json:"peak,omitempty"`
	// runtime is the detected runtime, at tier See.
	Runtime *InspectedRuntime `json:"runtime,omitempty"`
	// summary is one line with the findings.
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary"`
	// swap is the memory of the container that was swapped out. It counts against no memory limit in cgroup v2.
	Swap *resource.Quantity `json:"swap,omitempty"`
	// usage is what the kernel counts against the limit, page cache included.
	Usage *resource.Quantity `json:"usage,omitempty"`
}

// Alarm is the last prediction that a container of a pod will reach its memory limit before memfit could raise it,
// which takes about half a second. It is not removed when the container stops growing. The manager compares it with the
// pod before it lends memory (sizing.rescue of a profile).
type Alarm struct {
	// container is the container's name.
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container"`
	// containerID is the instance of the container: the pod's status.containerStatuses[].containerID after its "://".
	// +kubebuilder:validation:MaxLength=128
	ContainerID string `json:"containerID"`
	// demand is the container's memory that the kernel could not reclaim at time: usage without page cache, plus swap.
	Demand resource.Quantity `json:"demand"`
	// growthPerSecond is the average growth of demand per second over the last readings. Example: 100Mi.
	GrowthPerSecond resource.Quantity `json:"growthPerSecond"`
	// limit is the memory limit that the kernel enforced at time: the lower of those of the container's and the pod's
	// cgroup.
	Limit resource.Quantity `json:"limit"`
	// sequence is higher than in every earlier alarm of the pod, even after a restart of the agent. The manager ignores an
	// alarm whose sequence is not above that of the last handled alarm.
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`
	// time is when demand and limit were read, on the node's clock.
	Time metav1.MicroTime `json:"time"`
	// timeToLimitMilliseconds is (limit - demand) / growthPerSecond at time: the time until the limit is reached. 0: the
	// limit is reached.
	// +kubebuilder:validation:Minimum=0
	TimeToLimitMilliseconds int32 `json:"timeToLimitMilliseconds"`
}

// MemorySnapshotStatus is what the agent of a node reports about one pod.
type MemorySnapshotStatus struct {
	// alarm is the last prediction that a container of the pod is about to reach its memory limit; absent: no prediction
	// since the agent started. It is written immediately, in a request of its own, at most once a second for each
	// container; that request leaves all other fields unchanged, also observedTime.
	Alarm *Alarm `json:"alarm,omitempty"`

	// cgroupVersion of the node: v1 or v2.
	// +kubebuilder:validation:Enum=v1;v2
	CgroupVersion string `json:"cgroupVersion"`

	// containers are those of the pod that ran at the time of the write.
	// +listType=map
	// +listMapKey=container
	// +kubebuilder:validation:MaxItems=32
	Containers []ContainerSnapshot `json:"containers,omitempty"`

	// nodeName is the node whose agent wrote this; an admission policy allows an agent only its own node's name.
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName"`

	// observedTime is when the numbers were read. They are written at most six times an hour, up to three times in quick
	// succession, and only when they changed by an eighth; a kill or a stall is written immediately.
	ObservedTime metav1.Time `json:"observedTime"`

	// podLimit is the memory limit that the kernel enforces for the pod's cgroup, shared by its containers; absent: none.
	PodLimit *resource.Quantity `json:"podLimit,omitempty"`

	// podUsage is what the kernel counts against podLimit.
	PodUsage *resource.Quantity `json:"podUsage,omitempty"`

	// summary is one line about the container that needs attention most.
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary,omitempty"`

	// tier is how deeply the agent inspects containers: Watch or See.
	Tier AgentTier `json:"tier"`
}

// MemorySnapshot is what the agent on a pod's node (config/agent) knows about the pod's memory: its effective limits,
// its runtime, what fills it, and the minute before the last OOM kill. It has the pod's name and is owned by the pod.
// The agent writes it in one request, so status is not a subresource.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=memsnap,categories=memory
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Tier",type=string,JSONPath=`.status.tier`,priority=1
// +kubebuilder:printcolumn:name="Observed",type=date,JSONPath=`.status.observedTime`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`
type MemorySnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status has the agent's findings.
	Status MemorySnapshotStatus `json:"status,omitempty,omitzero"`
}

// IsOf reports whether the agent on the pod's node wrote the snapshot for this pod. An agent may write snapshots under
// any name, but only for its own node (config/agent/watch/admission_policy.yaml), so readers must check this first.
func (s *MemorySnapshot) IsOf(pod types.UID, node string) bool {
	return len(s.OwnerReferences) == 1 && s.OwnerReferences[0].UID == pod && node != "" && s.Status.NodeName == node
}

// MemorySnapshotList is a list of MemorySnapshot.
//
// +kubebuilder:object:root=true
type MemorySnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemorySnapshot `json:"items"`
}
