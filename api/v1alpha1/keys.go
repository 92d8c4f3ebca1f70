// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations that users write.
const (
	// ProfileAnnotation opts a workload in and names the MemoryProfile of the same namespace, or the
	// ClusterMemoryProfile, that governs it. It works on the workload, on its pod template and on the Namespace;
	// the pod template wins over the workload, the workload over the Namespace.
	ProfileAnnotation = Group + "/profile"
	// InjectAnnotation set to "false" on a pod template, workload or Namespace opts out, even where a selector matches
	// the pod.
	InjectAnnotation = Group + "/inject"
	// RuntimeAnnotation declares the runtime of every container of the pod ("NodeJS", "JVM:17.0.9") where the profile
	// has runtime.type: Auto.
	RuntimeAnnotation = Group + "/runtime"
	// PauseAnnotation set to "true" on a workload, its Namespace or memfit's own Namespace freezes sizes: running pods
	// keep theirs, and new pods get the same. memfit continues to measure, to recommend and to set runtime settings; it
	// still rolls back a lower limit that caused harm, and removes a resize that failed.
	PauseAnnotation = Group + "/pause"
	// InspectAnnotation set to "false" on a pod prevents the agent from inspecting its processes; the kernel's counters
	// of its containers are still read. Any other value, such as the time, asks the agent of its node, at tier See, for
	// an inspection now, for example to compare memory before and after an action.
	InspectAnnotation = Group + "/inspect"
	// MapAnnotation set to "true" on a pod asks the agent of its node, at tier See, for the map of its pages, which
	// `kubectl memfit map` draws. Its snapshot has the map as long as the annotation exists.
	MapAnnotation = Group + "/map"
	// PriorsAnnotation holds, on the MemoryCheckpoint PriorsName, what memfit in another cluster learned about young
	// containers; `kubectl memfit export priors` writes it. memfit adds it to what it learned itself.
	PriorsAnnotation = Group + "/priors"
)

// PriorsName is the MemoryCheckpoint in memfit's own namespace that holds what memfit learned about young containers.
const PriorsName = "memfit-priors"

// LabLabel set to "true" on memfit's own Namespace marks the cluster as a lab. The manager refuses
// --lab-compress-evidence in any other cluster.
const LabLabel = Group + "/lab"

// IdentityLabel is on the records of pods that share an identity other than their owner. Its value is the platform
// ("tekton"), or "labels" for labels that a profile names.
const IdentityLabel = Group + "/identity"

// Annotations that memfit writes, on pods only.
const (
	// InjectedAnnotation records, as JSON, what memfit set on this pod, and what it skipped and why.
	InjectedAnnotation = Group + "/injected"
)

// Condition types of MemoryProfile and ClusterMemoryProfile.
const (
	// ConditionReady is True when the profile is valid and effective. MemoryRecommendation has it as well: True when a
	// size is recommended.
	ConditionReady = "Ready"
	// ConditionInjectionUpToDate is False while governed pods run without the current settings of the profile; the
	// message has their number and the reason.
	ConditionInjectionUpToDate = "InjectionUpToDate"
	// ConditionUsageAvailable is False when memory usage cannot be read; the message has the nodes and the error.
	ConditionUsageAvailable = "UsageAvailable"
	// ConditionConflicted is True when something else sizes the same workload, or two profiles select one pod; the
	// message names both.
	ConditionConflicted = "Conflicted"
	// ConditionIdentitiesBounded is True while a profile has reached its maximum of 1,000 pod identities, and absent
	// otherwise.
	ConditionIdentitiesBounded = "IdentitiesBounded"
)

// Condition types of MemoryRecommendation.
const (
	// ConditionOOMObserved is True when an OOM kill occurred within the drift window (24h by default).
	ConditionOOMObserved = "OOMObserved"
	// ConditionMemoryStalled is True while a container is stalled just below its limit without being OOM-killed: its
	// anonymous memory displaces its own program and files, which are read back from the disk again and again.
	ConditionMemoryStalled = "MemoryStalled"
	// ConditionDriftDetected is True when memory grows steadily or is retained after load.
	ConditionDriftDetected = "DriftDetected"
	// ConditionSettingsMatchLimit is False when the settings of a running container were derived from a limit other than
	// its current one.
	ConditionSettingsMatchLimit = "SettingsMatchLimit"
	// ConditionApplied is True when running pods have the recommended size; otherwise its reason is the guard that
	// refused the change.
	ConditionApplied = "Applied"
	// ConditionStalled is the condition of kstatus: True while memfit cannot continue without a change by a user, and
	// absent otherwise. Of a recommendation: reconciles of the workload take too long, or its checkpoint is refused or
	// unreadable. Of a profile: its spec is invalid.
	ConditionStalled = "Stalled"
)
