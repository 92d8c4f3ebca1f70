// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations that users write.
const (
	// ProfileAnnotation opts a workload in and names its MemoryProfile (of the same namespace) or ClusterMemoryProfile. It
	// may be set on the pod template, the workload or the Namespace; the first of these three that has it takes effect.
	ProfileAnnotation = Group + "/profile"
	// InjectAnnotation set to "false" on a pod template, workload or Namespace opts its pods out, despite any selector.
	InjectAnnotation = Group + "/inject"
	// RuntimeAnnotation declares the runtime of every container of the pod ("NodeJS", "JVM:17.0.9") where the profile
	// has runtime.type: Auto.
	RuntimeAnnotation = Group + "/runtime"
	// PauseAnnotation set to "true" on a workload, its Namespace or memfit's own Namespace freezes sizes: running pods
	// keep their size, and new pods get the size of running pods. memfit continues to measure, to recommend and to set
	// runtime settings. It still rolls back a lower limit that caused harm, and a resize that failed.
	PauseAnnotation = Group + "/pause"
	// InspectAnnotation set to "false" on a pod prevents the agent from inspecting its processes; the agent still reads
	// the kernel's counters of its containers. Any other value, such as the time, requests an inspection now (agents at
	// tier See), for example to compare memory before and after an action.
	InspectAnnotation = Group + "/inspect"
	// MapAnnotation set to "true" on a pod requests a map of its memory pages (agents at tier See), which `kubectl memfit
	// map` draws. The pod's MemorySnapshot has the map while the annotation exists.
	MapAnnotation = Group + "/map"
	// PriorsAnnotation holds, on the MemoryCheckpoint memfit-priors, what memfit in another cluster observed about young
	// containers; `kubectl memfit export priors` writes it. memfit merges it with its own observations.
	PriorsAnnotation = Group + "/priors"
)

// PriorsName is the MemoryCheckpoint in memfit's own namespace that holds what memfit observed about young containers.
const PriorsName = "memfit-priors"

// LabLabel set to "true" on memfit's own Namespace marks the cluster as a lab. The manager refuses
// --lab-compress-evidence in any other cluster.
const LabLabel = Group + "/lab"

// IdentityLabel marks the MemoryRecommendations and MemoryCheckpoints of pods that their owner does not identify. Its
// value is PodIdentity.platform: "tekton", "labels" or "nodeclass", for example.
const IdentityLabel = Group + "/identity"

// Annotations that memfit writes, on pods only.
const (
	// InjectedAnnotation records, as JSON, what memfit set on the pod, what it skipped, and why.
	InjectedAnnotation = Group + "/injected"
)

// Condition types of MemoryProfile and ClusterMemoryProfile.
const (
	// ConditionReady is True when the profile is valid and effective; of MemoryRecommendations, when a size is
	// recommended.
	ConditionReady = "Ready"
	// ConditionInjectionUpToDate is False while governed pods run without the current settings of the profile; the
	// message has their number and the reason.
	ConditionInjectionUpToDate = "InjectionUpToDate"
	// ConditionUsageAvailable is False when memory usage cannot be read; the message has the nodes and the error.
	ConditionUsageAvailable = "UsageAvailable"
	// ConditionConflicted is True when another controller or user sizes the same workload, or two profiles select one pod;
	// the message names both.
	ConditionConflicted = "Conflicted"
	// ConditionIdentitiesBounded is True while a profile has 1,000 pod identities, the maximum, and absent otherwise.
	ConditionIdentitiesBounded = "IdentitiesBounded"
)

// Condition types of MemoryRecommendation.
const (
	// ConditionOOMObserved is True when an OOM kill occurred within the drift window (24h by default).
	ConditionOOMObserved = "OOMObserved"
	// ConditionMemoryStalled is True while a container is stalled just below its limit without being OOM-killed: the
	// kernel reclaims the pages of its program and files, and reads them from disk again and again.
	ConditionMemoryStalled = "MemoryStalled"
	// ConditionDriftDetected is True when memory grows steadily or is retained after load.
	ConditionDriftDetected = "DriftDetected"
	// ConditionSettingsMatchLimit is False when the settings of a running container were derived from a limit other than
	// its current one.
	ConditionSettingsMatchLimit = "SettingsMatchLimit"
	// ConditionApplied is True when running pods have the recommended size; otherwise its reason is the guard that
	// refused the change.
	ConditionApplied = "Applied"
	// ConditionStalled is a standard condition of kstatus: True while memfit cannot continue without a change by a user,
	// and absent otherwise. On a recommendation: reconciles of the workload time out, or its MemoryCheckpoint is refused
	// or unreadable. On a profile: its spec is invalid.
	ConditionStalled = "Stalled"
)
