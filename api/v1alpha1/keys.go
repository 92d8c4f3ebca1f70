// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations that people write.
const (
	// ProfileAnnotation opts a workload in and names the MemoryProfile of the same namespace, or the
	// ClusterMemoryProfile, that governs it. It works on the workload, on its pod template and on the Namespace;
	// the pod template wins over the workload, the workload over the Namespace.
	ProfileAnnotation = Group + "/profile"
	// InjectAnnotation set to "false" on a pod template, workload or Namespace opts out, whatever selects the pod.
	InjectAnnotation = Group + "/inject"
	// RuntimeAnnotation declares the runtime of every container of the pod ("NodeJS", "JVM:17.0.9") when the profile says
	// Auto.
	RuntimeAnnotation = Group + "/runtime"
	// PauseAnnotation set to "true" on a workload or Namespace stops every change memfit would make there; it keeps
	// watching.
	PauseAnnotation = Group + "/pause"
	// InspectAnnotation set to "false" on a pod keeps the agent from looking into its processes; what the kernel counts
	// for its containers is still read. Each other value, such as the time, asks the agent of its node, at tier See, for
	// an inspection now: what memory holds before and after something is done can be compared then.
	InspectAnnotation = Group + "/inspect"
	// MapAnnotation set to "true" on a pod asks the agent of its node, at tier See, for the map of its pages, which
	// `kubectl memfit map` draws. Its snapshot has the map for as long as the annotation is there.
	MapAnnotation = Group + "/map"
)

// LabLabel set to "true" on memfit's own Namespace says that this cluster is a lab: only there does the manager start
// with --lab-compress-evidence.
const LabLabel = Group + "/lab"

// Annotations that memfit writes, on pods only.
const (
	// InjectedAnnotation records, as JSON, what memfit set on this pod and why it left other things alone.
	InjectedAnnotation = Group + "/injected"
)

// Condition types of MemoryProfile and ClusterMemoryProfile.
const (
	// ConditionReady is True when the profile is valid and effective. MemoryRecommendation has it too: True when a number
	// stands.
	ConditionReady = "Ready"
	// ConditionInjectionUpToDate is False while governed pods run without what the profile would set; the message counts
	// them and says why.
	ConditionInjectionUpToDate = "InjectionUpToDate"
	// ConditionUsageAvailable is False when memory usage cannot be read, with the nodes and the error.
	ConditionUsageAvailable = "UsageAvailable"
	// ConditionConflicted is True when something else sizes the same workload, or two profiles claim one pod; the message
	// names both.
	ConditionConflicted = "Conflicted"
)

// Condition types of MemoryRecommendation.
const (
	// ConditionOOMObserved is True when an OOM kill was seen within the drift window (24h by default).
	ConditionOOMObserved = "OOMObserved"
	// ConditionMemoryStalled is True while a container stands still just below its limit, without being killed: anonymous
	// memory leaves no room for its own program and files, which are read back from the disk over and over.
	ConditionMemoryStalled = "MemoryStalled"
	// ConditionDriftDetected is True when memory climbs or was retained after load.
	ConditionDriftDetected = "DriftDetected"
	// ConditionSettingsMatchLimit is False when a running container's frozen settings no longer fit its limit.
	ConditionSettingsMatchLimit = "SettingsMatchLimit"
	// ConditionApplied is True when running pods have the recommended size; its reason is the guard that refused
	// otherwise.
	ConditionApplied = "Applied"
	// ConditionStalled is kstatus's: True while nothing goes on until somebody changes something, and absent otherwise.
	// Of a recommendation: reconciles of the workload take too long, or its checkpoint is refused or cannot be read. Of a
	// profile: its spec is invalid.
	ConditionStalled = "Stalled"
)
