// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadReference names the workload of a recommendation, in the same namespace.
type WorkloadReference struct {
	// apiVersion of the workload. Example: apps/v1.
	APIVersion string `json:"apiVersion"`
	// kind of the workload. Example: Deployment.
	Kind string `json:"kind"`
	// name of the workload. Example: web.
	Name string `json:"name"`
}

// PodIdentity identifies pods whose owner does not show what they run, such as the pods of a CI system: by their
// labels, by a label of their nodes, or by the platform that creates them.
type PodIdentity struct {
	// labels are the label keys in the profile: of pods (spec.identity.labels), or of nodes (spec.identity.nodeClass).
	// Absent for pods of a platform.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	Labels []string `json:"labels,omitempty"`
	// lastSeen is the last day on which a pod existed. memfit deletes the records of the identity 35 days later.
	LastSeen metav1.Time `json:"lastSeen"`
	// platform is the platform of the pods (docs/reference/platforms.md), "labels" for labels that the profile names, or
	// "nodeclass" for pods of a DaemonSet on one class of nodes. Example: tekton.
	// +kubebuilder:validation:MaxLength=63
	Platform string `json:"platform"`
	// values identify the pods: values of the platform (docs/reference/platforms.md), values of the profile's
	// spec.identity.labels, or the name of the DaemonSet and the class of nodes. Example: [build-and-test, unit].
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Values []string `json:"values"`
}

// ProfileReference names the effective profile.
type ProfileReference struct {
	// kind is MemoryProfile or ClusterMemoryProfile.
	// +kubebuilder:validation:Enum=MemoryProfile;ClusterMemoryProfile
	Kind string `json:"kind"`
	// name of the profile.
	Name string `json:"name"`
}

// Size is a memory request and limit; absent: not set.
type Size struct {
	// limit is the memory limit.
	Limit *resource.Quantity `json:"limit,omitempty"`
	// request is the memory request.
	Request *resource.Quantity `json:"request,omitempty"`
}

// Canary permits one new pod to be the first with a lower limit.
type Canary struct {
	// number increases with each permission. memfit issues the next one if the pod was not created.
	Number int64 `json:"number"`
	// replica is the manager pod whose webhook may use the permission, once; empty: every manager pod may use it until a
	// pod has the lower limit.
	// +kubebuilder:validation:MaxLength=253
	Replica string `json:"replica"`
}

// Evidence is the basis of a recommendation.
type Evidence struct {
	// certainty is how demand was measured: Exact, or estimated as RSSOnly (shared memory is missing) or WorkingSetOnly
	// (page cache is included). memfit lowers no limit because of an estimate. Absent: unknown.
	// +kubebuilder:validation:Enum=Exact;RSSOnly;WorkingSetOnly
	Certainty string `json:"certainty,omitempty"`
	// heapCap is the lowest heap cap of running replicas; absent while a replica has no cap.
	HeapCap *resource.Quantity `json:"heapCap,omitempty"`
	// historySource is the source of usage before memfit's own readings: prometheus; absent: no source.
	// +kubebuilder:validation:Enum=prometheus
	HistorySource string `json:"historySource,omitempty"`
	// liveSet is the largest live heap of a replica without a heap cap: the highest minimum of any six hours. memfit sets
	// no heap cap below it. Only for runtimes whose heap can be capped.
	LiveSet *resource.Quantity `json:"liveSet,omitempty"`
	// liveSetSeen is the last day on which a live heap was close to liveSet. memfit lowers liveSet eight days later.
	LiveSetSeen *metav1.Time `json:"liveSetSeen,omitempty"`
	// peakDemand is the highest demand seen in one container, in the window: the memory that the kernel cannot reclaim,
	// which is anonymous memory, shared memory (tmpfs, /dev/shm), kernel memory and swap. With certainty RSSOnly it may be
	// too low; with WorkingSetOnly it includes page cache.
	PeakDemand *resource.Quantity `json:"peakDemand,omitempty"`
	// peakRSS is the highest anonymous memory seen in one container, in the window.
	PeakRSS *resource.Quantity `json:"peakRSS,omitempty"`
	// peakSwap is the most swap that one container used, in the window; absent: none. It is part of demand.
	PeakSwap *resource.Quantity `json:"peakSwap,omitempty"`
	// peakWorkingSet is the highest working set seen in one container, in the window.
	PeakWorkingSet *resource.Quantity `json:"peakWorkingSet,omitempty"`
	// replicas is the number of running containers.
	Replicas int32 `json:"replicas,omitempty"`
	// samples is the number of measurements.
	Samples int64 `json:"samples,omitempty"`
	// source is where usage is read, as in --usage-sources; absent: not read yet.
	// +kubebuilder:validation:Enum=kubelet;prometheus;metrics-api
	// +optional
	Source string `json:"source,omitempty"`
	// liveSetMedian is the live heap of a typical replica: the median of the minima between garbage collections.
	LiveSetMedian *resource.Quantity `json:"liveSetMedian,omitempty"`
	// windowSeconds is how far back the evidence goes.
	// +kubebuilder:validation:Minimum=0
	WindowSeconds int64 `json:"windowSeconds,omitempty"`
}

// Shape describes a container's memory over time.
type Shape struct {
	// confidence is Low, Medium or High.
	// +kubebuilder:validation:Enum=Low;Medium;High
	Confidence string `json:"confidence,omitempty"`
	// kind is Flat, Sawtooth, StepRetention, Climb, FollowsLimit, Burst or Unknown.
	// +kubebuilder:validation:Enum=Flat;Sawtooth;StepRetention;Climb;FollowsLimit;Burst;Unknown
	Kind string `json:"kind"`
	// ratePerDay is the growth per day.
	RatePerDay *resource.Quantity `json:"ratePerDay,omitempty"`
	// outlierPods names pods that use far more memory than the other replicas.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	OutlierPods []string `json:"outlierPods,omitempty"`
	// summary is one sentence with the numbers.
	Summary string `json:"summary"`
	// timeToLimitMaxSeconds is the longest time until the limit is reached, at the lowest rate of growth in the 95 %
	// confidence interval.
	// +kubebuilder:validation:Minimum=0
	TimeToLimitMaxSeconds int64 `json:"timeToLimitMaxSeconds,omitempty"`
	// timeToLimitMinSeconds is the shortest time until the limit is reached, at the highest rate of growth in the 95 %
	// confidence interval.
	// +kubebuilder:validation:Minimum=0
	TimeToLimitMinSeconds int64 `json:"timeToLimitMinSeconds,omitempty"`
}

// ContainerRecommendation is the recommendation for one container. kubectl describe sorts fields by name and prints
// list items without a separator; summary has the essentials.
type ContainerRecommendation struct {
	// advice lists suggestions that memfit does not carry out itself, for example a runtime setting to try.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Advice []string `json:"advice,omitempty"`
	// confidence is Low, Medium or High.
	// +kubebuilder:validation:Enum=Low;Medium;High
	Confidence string `json:"confidence,omitempty"`
	// container is the container's name.
	Container string `json:"container"`
	// current is the size of running pods.
	Current Size `json:"current,omitempty,omitzero"`
	// decision is Hold (too little evidence), Keep (the size is right), Increase or Decrease.
	// +kubebuilder:validation:Enum=Hold;Keep;Increase;Decrease
	Decision string `json:"decision"`
	// evidence is the basis of the recommendation.
	Evidence Evidence `json:"evidence,omitempty,omitzero"`
	// breakdown lists the memory of the replica with the highest use, as its agent read it: the replica and the time, the
	// three largest parts, and the rest. It is updated only when another field changes. Absent without agents
	// (config/agent, tier See).
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Breakdown []string `json:"breakdown,omitempty"`
	// breakdownOutlier is the pod in breakdown, if it uses far more memory than the other replicas.
	BreakdownOutlier string `json:"breakdownOutlier,omitempty"`
	// foundRuntime is the runtime that agents (config/agent) found in the replicas; absent without agents, and while
	// replicas differ. Where runtime.type is Auto, new pods get the settings of that runtime.
	FoundRuntime *FoundRuntime `json:"foundRuntime,omitempty"`
	// identity is the runtime that memfit assumes for the container; absent: unknown. runtime describes it.
	Identity *RuntimeIdentity `json:"identity,omitempty"`
	// newPods is the size that memfit gives to new pods of this program; absent if sizing.mode gives them none. It is the
	// recommended size or more: until one pod has been watched with a lower limit, it is the larger of the sizes of
	// running pods and the template.
	NewPods *Size `json:"newPods,omitempty"`
	// oomKills is the number of OOM kills of this container so far.
	OOMKills int64 `json:"oomKills,omitempty"`
	// otherPrograms are sizes for new pods of other releases of this container: releases that still run during a rollout,
	// and earlier ones in case of a rollback. A release is listed only if its size exceeds its pod template's.
	// +listType=map
	// +listMapKey=program
	// +kubebuilder:validation:MaxItems=2
	OtherPrograms []ProgramSize `json:"otherPrograms,omitempty"`
	// owner is the container's size in its owner's pod template.
	Owner *Size `json:"owner,omitempty"`
	// program is a fingerprint of what the container runs (image, command, args, env, tuning). The recommendation is for
	// pods with this fingerprint in their annotation memfit.dev/injected.
	// +kubebuilder:validation:MaxLength=64
	Program string `json:"program,omitempty"`
	// reasons are the steps from the evidence to the size, with their numbers.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Reasons []string `json:"reasons,omitempty"`
	// recommended is the size memfit recommends; absent while decision is Hold.
	Recommended *Size `json:"recommended,omitempty"`
	// runtime is a sentence about the assumed runtime (see identity), or the reason why it is unknown.
	Runtime string `json:"runtime,omitempty"`
	// settings are the runtime settings memfit derives for the current limit.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Settings []string `json:"settings,omitempty"`
	// shape describes memory over time.
	Shape *Shape `json:"shape,omitempty"`
	// stalls is the number of times this container was stalled just below its limit without being OOM-killed.
	Stalls int64 `json:"stalls,omitempty"`
	// summary is one line: what was found and what to do.
	Summary string `json:"summary"`
	// unexplainedRestarts are restarts that no OOM kill explains; absent if there are fewer than three, or if the last is
	// older than drift.window.
	UnexplainedRestarts *UnexplainedRestarts `json:"unexplainedRestarts,omitempty"`
	// usage is the highest demand of any running replica in the last two hours (see evidence.peakDemand), or its working
	// set where demand is unknown. It is updated when it has changed by about an eighth; unless another field changes, at
	// most every ten minutes (the manager's --checkpoint-interval).
	Usage *resource.Quantity `json:"usage,omitempty"`
	// usageTime is when the replica of usage was last read before usage was written.
	UsageTime *metav1.Time `json:"usageTime,omitempty"`
	// suggestions are actions that would free memory of the replica in breakdown: a summary, and for each action the
	// amount, which may be 0, and how it was computed. Absent without agents (config/agent, tier See).
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=6
	Suggestions []string `json:"suggestions,omitempty"`
}

// ProgramSize is the size of new pods of one release of a container.
type ProgramSize struct {
	// newPods is the memory request and limit of new pods of that release.
	NewPods Size `json:"newPods"`
	// owner is the size in that release's pod template; absent if the template sets none. A new pod whose template has
	// another size keeps that size.
	Owner *Size `json:"owner,omitempty"`
	// program is the fingerprint of what the container runs.
	// +kubebuilder:validation:MaxLength=64
	Program string `json:"program"`
}

// UnexplainedRestarts are restarts of a container in existing pods that neither an OOM kill nor a full heap explains.
type UnexplainedRestarts struct {
	// count is the number of such restarts, or a lower bound if many OOM kills occurred in between.
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
	// exitCode is the exit code before the last restart. 128+n means killed by signal n: 135 is SIGBUS, which a full
	// memory-backed volume causes.
	ExitCode int32 `json:"exitCode"`
	// lastLines are the last lines of its termination message; with terminationMessagePolicy FallbackToLogsOnError, these
	// are the last lines of its log.
	// +kubebuilder:validation:MaxLength=256
	LastLines string `json:"lastLines,omitempty"`
	// memoryVolumes are the memory-backed volumes that the container can write to. They keep their files and their size
	// when the container restarts.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	MemoryVolumes []string `json:"memoryVolumes,omitempty"`
	// pod is the pod of the last restart.
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod"`
	// resized is true if the pod was resized in place: memory-backed volumes without sizeLimit keep their original size.
	Resized bool `json:"resized,omitempty"`
	// time is when the container last exited, by the clock of its node.
	Time metav1.Time `json:"time"`
}

// RuntimeSource is how memfit knows what a container runs.
// +kubebuilder:validation:Enum=Declared;Command;Found
type RuntimeSource string

// The sources of a runtime.
const (
	// RuntimeDeclared: a profile or an annotation declares it.
	RuntimeDeclared RuntimeSource = "Declared"
	// RuntimeFromCommand: the container's command is a program of that runtime.
	RuntimeFromCommand RuntimeSource = "Command"
	// RuntimeFromReplicas: agents found it in running replicas.
	RuntimeFromReplicas RuntimeSource = "Found"
)

// RuntimeIdentity is the runtime of a container, and how memfit knows it.
type RuntimeIdentity struct {
	// evidence is the source in words. Example: declared by the profile.
	// +kubebuilder:validation:MaxLength=512
	Evidence string `json:"evidence,omitempty"`
	// source is Declared, Command or Found.
	Source RuntimeSource `json:"source"`
	// type is the runtime.
	Type RuntimeType `json:"type"`
	// variant is HotSpot, OpenJ9, NativeImage or Buildpack. JVM only.
	Variant RuntimeVariant `json:"variant,omitempty"`
	// version is the runtime's version.
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version,omitempty"`
}

// FoundRuntime is the runtime that agents detected in the processes of replicas.
type FoundRuntime struct {
	// declared is a sentence about how the found runtime differs from the declared one, and what to do; absent if they
	// agree.
	// +kubebuilder:validation:MaxLength=512
	Declared string `json:"declared,omitempty"`
	// evidence is what identifies the runtime. Example: libjvm.so has version 17.0.15+6.
	// +kubebuilder:validation:MaxLength=256
	Evidence string `json:"evidence,omitempty"`
	// heapPercent is the maximum heap in percent of the limit, as read in the replicas. Absent if a flag sets the heap in
	// bytes, if replicas differ, and if it was not read: memfit then assumes that the heap does not grow with the limit,
	// unless memfit itself set the percentage.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HeapPercent int32 `json:"heapPercent,omitempty"`
	// image of the replicas. A pod with the same image gets settings for this version; with another tag, settings that
	// every supported version accepts; from another repository, none.
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`
	// imageVariables are variables for memory settings that come from the image or its start script. memfit sets none of
	// them, because an entry in env would replace the image's value.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	ImageVariables []string `json:"imageVariables,omitempty"`
	// libc is the C library; absent: unknown.
	Libc Libc `json:"libc,omitempty"`
	// nodeHeap is the maximum heap of a replica, if it exceeds the memory limit although no option sets it: the runtime
	// does not detect the limit and sizes its heap by the node's memory (JDK-8349988, kernels without CONFIG_MEMCG_V1).
	// memfit then also sets -XX:MaxRAM, in addition to -XX:MaxRAMPercentage. Absent: not observed.
	NodeHeap *resource.Quantity `json:"nodeHeap,omitempty"`
	// replicas is the number of inspected replicas, all of which run this runtime. It is updated at most every ten
	// minutes, unless another field changes.
	// +kubebuilder:validation:Minimum=1
	Replicas int32 `json:"replicas"`
	// type is the runtime.
	Type RuntimeType `json:"type"`
	// variant is HotSpot, OpenJ9, NativeImage or Buildpack. JVM only.
	Variant RuntimeVariant `json:"variant,omitempty"`
	// version is the runtime's version, absent while replicas run several.
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version,omitempty"`
}

// OOMKillRecord is one OOM kill.
type OOMKillRecord struct {
	// confidence is Low, Medium or High.
	// +kubebuilder:validation:Enum=Low;Medium;High
	Confidence string `json:"confidence"`
	// container that was killed.
	Container string `json:"container"`
	// kind is MainProcess, ChildProcess, AtStart, HeapAbort, PodLimit or Suspected.
	// +kubebuilder:validation:Enum=MainProcess;ChildProcess;AtStart;HeapAbort;PodLimit;Suspected
	Kind string `json:"kind"`
	// limit is the memory limit at the time of the kill.
	Limit *resource.Quantity `json:"limit,omitempty"`
	// peak is the highest demand seen in that container instance before the kill.
	Peak *resource.Quantity `json:"peak,omitempty"`
	// pod that was killed.
	Pod string `json:"pod"`
	// summary is one sentence with the evidence.
	Summary string `json:"summary"`
	// time of the kill as the kubelet reported it.
	Time metav1.Time `json:"time"`
}

// StallRecord is a period in which a container was stalled just below its limit without being OOM-killed.
type StallRecord struct {
	// anonymous is the anonymous memory when the stall was confirmed.
	Anonymous *resource.Quantity `json:"anonymous,omitempty"`
	// container that stalled.
	Container string `json:"container"`
	// ended is when the stall ended; absent while it continues.
	Ended *metav1.Time `json:"ended,omitempty"`
	// limit is the memory limit in effect.
	Limit resource.Quantity `json:"limit"`
	// majorFaultsPerSecond is the rate of page faults that read from disk.
	MajorFaultsPerSecond int32 `json:"majorFaultsPerSecond,omitempty"`
	// pod that stalled.
	Pod string `json:"pod"`
	// increasedTo is the higher limit that took effect during the stall.
	IncreasedTo *resource.Quantity `json:"increasedTo,omitempty"`
	// increaseIneffective is true if the major faults continued at increasedTo: memory is not the bottleneck.
	IncreaseIneffective bool `json:"increaseIneffective,omitempty"`
	// summary is one sentence with the evidence.
	Summary string `json:"summary"`
	// time is the time of the first sample that showed the stall.
	Time metav1.Time `json:"time"`
}

// SizeChange is a change of one container's size.
type SizeChange struct {
	// container that was changed; absent: the pod as a whole.
	Container string `json:"container,omitempty"`
	// from is the size before.
	From Size `json:"from,omitempty,omitzero"`
	// to is the size after.
	To Size `json:"to,omitempty,omitzero"`
}

// ChangeRecord is a change that memfit made to running pods, and its outcome.
type ChangeRecord struct {
	// change is the change of sizes in words, at most 512 bytes; absent if the size is unchanged.
	// +kubebuilder:validation:MaxLength=512
	Change string `json:"change,omitempty"`
	// kind is the outcome: Resized, Replaced (by eviction), NotResized, Reverted, ConflictingWriter (another writer
	// changed the pod), RestartedForMemory, MemoryLoaned or LoanReturned (sizing.rescue).
	// +kubebuilder:validation:Enum=Resized;Replaced;NotResized;Reverted;ConflictingWriter;RestartedForMemory;MemoryLoaned;LoanReturned
	Kind string `json:"kind"`
	// pod is the last changed pod.
	Pod string `json:"pod"`
	// pods is the number of changed pods, one after the other.
	Pods int32 `json:"pods"`
	// sizes are the sizes in change, by container; absent if the size is unchanged.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Sizes []SizeChange `json:"sizes,omitempty"`
	// since is when memfit observed the outcome for the first pod; absent if there is only one pod.
	Since *metav1.Time `json:"since,omitempty"`
	// time is when memfit observed the outcome for the last pod.
	Time metav1.Time `json:"time"`
	// why is the reason for the change, which is the recommendation when it began, or the reason why it failed.
	// +kubebuilder:validation:MaxLength=512
	Why string `json:"why,omitempty"`
}

// MemoryRecommendationStatus is memfit's findings and recommendation.
type MemoryRecommendationStatus struct {
	// observedGeneration is the generation of this object that the status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// profile is the profile that governs the workload.
	Profile ProfileReference `json:"profile,omitempty,omitzero"`

	// identity identifies the pods if their owner does not. workload.kind is then DaemonSet for a class of nodes, and
	// otherwise PodIdentity, which is not a kind of the API.
	Identity *PodIdentity `json:"identity,omitempty"`

	// profileGeneration is the generation of the profile that this status is about.
	ProfileGeneration int64 `json:"profileGeneration,omitempty"`

	// advisories are known problems of the declared runtime version.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Advisories []string `json:"advisories,omitempty"`

	// remedies are actions against OOM kills that memfit cannot take itself, for example for an init container that the
	// profile does not name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Remedies []string `json:"remedies,omitempty"`

	// conditions: Ready, OOMObserved, MemoryStalled, DriftDetected, SettingsMatchLimit, Applied; Stalled while memfit
	// cannot continue with the workload.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// containers are the recommendations per container.
	// +listType=map
	// +listMapKey=container
	// +kubebuilder:validation:MaxItems=32
	Containers []ContainerRecommendation `json:"containers,omitempty"`

	// canary permits one new pod to be the first with the lower recommended limit; absent: not permitted.
	Canary *Canary `json:"canary,omitempty"`

	// coverage counts the workload's pods and how many run with the profile's settings.
	Coverage *Coverage `json:"coverage,omitempty"`

	// currentLimit lists the current limits of the containers, for the print column.
	CurrentLimit string `json:"currentLimit,omitempty"`

	// recommendedLimit lists the recommended limits of the containers, for the print column.
	RecommendedLimit string `json:"recommendedLimit,omitempty"`

	// largestNode is the allocatable memory of the largest node that ran a pod of this workload in the last 35 days.
	// memfit raises the memory request of a new pod to this at most, even if the cluster has larger nodes. It remains when
	// no such node exists, because an autoscaler may add one. memfit lowers it when a pod has waited 10 minutes for such a
	// node, or when pods have run on smaller nodes for two days and no such node is left. Set where sizing.mode sizes new
	// pods.
	LargestNode *resource.Quantity `json:"largestNode,omitempty"`

	// refusedRequest is the lowest memory request, with the pod's overhead, that memfit set on a pod of this workload and
	// for which no node had memory for 10 minutes (PodScheduled is False, reason Unschedulable, and the message contains
	// "Insufficient memory"). For a day, new pods that would request as much keep their template's requests, with memfit's
	// limits. Absent: none.
	RefusedRequest *resource.Quantity `json:"refusedRequest,omitempty"`

	// oomKills is the number of OOM kills counted so far.
	OOMKills int64 `json:"oomKills,omitempty"`

	// problem is the reason of the most urgent condition that needs attention, in this order: Stalled, MemoryStalled,
	// DriftDetected, OOMObserved (while running pods lack the recommended size), SettingsMatchLimit, Ready (while usage is
	// missing). The message of that condition, or of Applied, has the next step. Absent: none.
	// +kubebuilder:validation:MaxLength=64
	Problem string `json:"problem,omitempty"`

	// recentChanges are the last 16 changes that memfit made to running pods, newest first (see kubectl memfit history).
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	RecentChanges []ChangeRecord `json:"recentChanges,omitempty"`

	// recentOOMKills are the last 20 kills, newest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	RecentOOMKills []OOMKillRecord `json:"recentOOMKills,omitempty"`

	// recentStalls are the last 8 stalls of the containers, newest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	RecentStalls []StallRecord `json:"recentStalls,omitempty"`

	// stalls is the number of times a container was stalled just below its limit without being OOM-killed, so far.
	Stalls int64 `json:"stalls,omitempty"`

	// summary is one line: what was found and what to do.
	Summary string `json:"summary,omitempty"`

	// workload is the workload of the recommendation, and the owner of this object.
	Workload WorkloadReference `json:"workload,omitempty,omitzero"`
}

// MemoryRecommendation is memfit's recommendation for one workload: evidence, computation, size and decision. memfit
// writes it; the workload owns it. It has no spec: the profile has the policy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=memrec,categories=memory
// +kubebuilder:printcolumn:name="Workload",type=string,JSONPath=`.status.workload.name`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.status.workload.kind`,priority=1
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.status.profile.name`,priority=1
// +kubebuilder:printcolumn:name="Current",type=string,JSONPath=`.status.currentLimit`,description="Limit of the running pods per container"
// +kubebuilder:printcolumn:name="Recommended",type=string,JSONPath=`.status.recommendedLimit`,description="Recommended limit per container"
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].reason`,description="Reason of the condition Applied"
// +kubebuilder:printcolumn:name="Problem",type=string,JSONPath=`.status.problem`,description="Reason of the first condition that needs attention"
// +kubebuilder:printcolumn:name="OOMs",type=integer,JSONPath=`.status.oomKills`
// +kubebuilder:printcolumn:name="Stalls",type=integer,JSONPath=`.status.stalls`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`,priority=1
type MemoryRecommendation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is memfit's findings and recommendation.
	Status MemoryRecommendationStatus `json:"status,omitempty,omitzero"`
}

// MemoryRecommendationList is a list of MemoryRecommendation.
//
// +kubebuilder:object:root=true
type MemoryRecommendationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemoryRecommendation `json:"items"`
}
