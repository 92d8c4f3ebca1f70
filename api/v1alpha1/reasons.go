// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// This file has every reason that conditions and Events of memfit have: what it means, and what to do where something
// is to be done. test/arch holds the rest of memfit to it.

// Reasons of the conditions Ready and Stalled of profiles, InjectionUpToDate, UsageAvailable and Conflicted.
const (
	// ReasonEffective: the profile is valid, and pods are governed by it. There is nothing to do.
	ReasonEffective = "Effective"
	// ReasonNoPodsMatched: no running pod is governed. Annotate a workload with memfit.dev/profile, or compare
	// spec.selector with the labels of its pod template.
	ReasonNoPodsMatched = "NoPodsMatched"
	// ReasonInvalidSpec: the profile contradicts itself, or what it inherits; then no size is changed. The message names
	// the fields, where each is from, and what to correct.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonInherited: the profile has role Defaults, and others take from it what they leave open. There is nothing to
	// do.
	ReasonInherited = "Inherited"
	// ReasonAmbiguousDefaults: an older profile of the same scope has role Defaults, too, and is the one that counts. Put
	// the values into one of them, and delete the other.
	ReasonAmbiguousDefaults = "AmbiguousDefaults"
	// ReasonAllInjected: every governed pod runs with the profile's settings.
	ReasonAllInjected = "AllInjected"
	// ReasonPodsOutOfDate: pods run that were created before the profile or its last change, or past the webhook.
	// Restart their workloads when it suits you.
	ReasonPodsOutOfDate = "PodsOutOfDate"
	// ReasonInjectionDisabled: tuning.mode is Disabled or DryRun, so that nothing is set on pods.
	ReasonInjectionDisabled = "InjectionDisabled"
	// ReasonUsageRead: every node that hosts governed pods tells what they use.
	ReasonUsageRead = "UsageRead"
	// ReasonUsageMissing: some nodes, or all, do not tell what pods use, and nothing is concluded from that. The
	// message has the node and its error; docs/troubleshooting.md says what to do about each. It is a reason of the
	// condition Ready of recommendations, too: none of the workload's nodes tells.
	ReasonUsageMissing = "UsageMissing"
	// ReasonNoConflict: nobody else claims these pods or sizes them.
	ReasonNoConflict = "NoConflict"
	// ReasonAmbiguousProfile: the selectors of two profiles choose the same pods, and neither is applied. Narrow one
	// of them, or name one by annotation, which always wins.
	ReasonAmbiguousProfile = "AmbiguousProfile"
	// ReasonConflict: something else sizes this memory: a VPA, an HPA on memory, a writer that was seen in a pod's
	// managed fields, or whoever applies a bare pod as a manifest that sets its memory. memfit recommends only, until one
	// of the two is told to leave it. It is a reason of Applied and of an Event, too.
	ReasonConflict = "Conflict"
)

// Reasons of the condition Ready of recommendations.
const (
	// ReasonRecommendationReady: at least one container has a recommended size.
	ReasonRecommendationReady = "RecommendationReady"
	// ReasonNotEnoughEvidence: too little was measured to recommend, to lower a limit or to say what memory does over
	// time. The message says what is missing; it comes with time. It is a reason of Applied and DriftDetected, too.
	ReasonNotEnoughEvidence = "NotEnoughEvidence"
	// ReasonModeDisabled: sizing.mode is Disabled: nothing is recommended or applied. It is a reason of Applied, too.
	ReasonModeDisabled = "ModeDisabled"
)

// Reasons of the condition OOMObserved.
const (
	// ReasonOOMKilled: a container was killed for its memory within the drift window. Apply the recommendation.
	ReasonOOMKilled = "OOMKilled"
	// ReasonNoOOMKill: none was.
	ReasonNoOOMKill = "NoOOMKill"
	// ReasonLedgerFull: the record of kills has no room for further pods, whose kills are not counted. Find out why
	// some 10,000 pods of one workload restart, or split the workload. It is an Event, too.
	ReasonLedgerFull = "LedgerFull"
)

// Reasons of the condition MemoryStalled.
const (
	// ReasonStallOngoing: a container stalls now. Apply the recommended limit, or restart the pod.
	ReasonStallOngoing = "StallOngoing"
	// ReasonIncreaseIneffective: one stalled, and a higher limit did not end the major faults. Look at the files that the
	// process maps, and at its disk. It is an Event, too.
	ReasonIncreaseIneffective = "IncreaseIneffective"
	// ReasonStallEnded: the last stall within the drift window is over. It is an Event, too.
	ReasonStallEnded = "StallEnded"
	// ReasonNoStall: there was no stall within the drift window.
	ReasonNoStall = "NoStall"
	// ReasonFaultsNotCounted: the source of usage counts no major page faults, so that nobody knows. Let memfit read
	// kubelets (nodes/stats).
	ReasonFaultsNotCounted = "FaultsNotCounted"
)

// Reasons of the condition DriftDetected.
const (
	// ReasonNoDrift: memory neither climbs nor stays high after load.
	ReasonNoDrift = "NoDrift"
	// ReasonClimb: memory grows without end, and no limit is large enough. Find the leak; drift.action: Restart buys
	// time.
	ReasonClimb = "Climb"
	// ReasonStepRetention: memory stays high after load. On glibc try arenaMax, on HotSpot trimInterval; drift.action:
	// Restart buys time.
	ReasonStepRetention = "StepRetention"
	// ReasonLeak: every instance climbs from its start until it is killed, within minutes. The limit gets one step and
	// no more: find the leak.
	ReasonLeak = "Leak"
	// ReasonOutlierReplica: a pod uses far more memory than its replicas. Find out what this pod does before anybody's
	// limit is raised. It is an Event on the pod, too.
	ReasonOutlierReplica = "OutlierReplica"
)

// Reasons of the condition SettingsMatchLimit.
const (
	// ReasonSettingsMatch: no running container has settings that were derived from another limit than its own.
	ReasonSettingsMatch = "SettingsMatch"
	// ReasonRestartRequired: a container was resized, and its process keeps the settings it was started with. The
	// message says what a new pod gets; restart the pod when it suits you.
	ReasonRestartRequired = "RestartRequired"
)

// Reasons of the condition Stalled of recommendations, which are Events, too.
const (
	// ReasonCheckpointRefused: the API server refuses to store memfit's memory of the workload, and the message has its
	// words: etcd is full, a quota, a right that is missing. Nothing is counted, recommended or changed until it is
	// stored, and nothing is lost; it is tried again every minute at the latest.
	ReasonCheckpointRefused = "CheckpointRefused"
	// ReasonCheckpointTooNew: a newer memfit wrote the workload's MemoryCheckpoint, and this one does not manage the
	// workload. Upgrade memfit, or delete the MemoryCheckpoint to start without its history.
	ReasonCheckpointTooNew = "CheckpointTooNew"
	// ReasonCheckpointUnreadable: the workload's MemoryCheckpoint is damaged, and memfit does not manage the workload.
	// Restore the MemoryCheckpoint, or delete it to start without its history.
	ReasonCheckpointUnreadable = "CheckpointUnreadable"
	// ReasonReconcileTimedOut: a reconcile of the workload took too long and was given up. The message has the step,
	// mostly an API server that does not answer; memfit tries again, later each time.
	ReasonReconcileTimedOut = "ReconcileTimedOut"
)

// Reasons of the condition Applied that the guards give: the first that refuses is the one that users see.
const (
	// ReasonPaused: memfit.dev/pause is set on the workload, its namespace or memfit's own. Remove it to go on.
	ReasonPaused = "Paused"
	// ReasonUpToDate: every running pod has the recommended size; the condition is True.
	ReasonUpToDate = "UpToDate"
	// ReasonReverted: the size was rolled back because kills or restarts followed it, or a pod that was not ready any
	// more, and is not tried again for a week.
	ReasonReverted = "Reverted"
	// ReasonCoolingDown: the last change is too recent. It goes on by itself; sizing.disruption.cooldown says how long
	// it takes.
	ReasonCoolingDown = "CoolingDown"
	// ReasonDisruptionBudget: as many pods as may be are under change or not ready, or a PodDisruptionBudget does not
	// allow an eviction now. It goes on by itself when they are ready.
	ReasonDisruptionBudget = "DisruptionBudget"
	// ReasonSingleReplica: the only replica would restart. Set sizing.disruption.singleReplica to Allowed, or restart
	// it yourself.
	ReasonSingleReplica = "SingleReplica"
	// ReasonQoSClass: the resize would move the pod to another QoS class, which the API server refuses. New pods get
	// the size with sizing.mode: OnCreate.
	ReasonQoSClass = "QoSClass"
	// ReasonPodLimit: the size does not fit in the whole pod (spec.resources), which keeps its own: the message says why,
	// and what to do. Where it cannot be changed while the pod runs, restart the workload, so that new pods get a larger
	// one; where nobody knows what a container without a limit needs, give it one.
	ReasonPodLimit = "PodLimit"
	// ReasonLimitRange: a LimitRange of the namespace does not allow the size. Change it, or set bounds in the profile
	// that fit it.
	ReasonLimitRange = "LimitRange"
	// ReasonResourceQuota: a ResourceQuota leaves too little for all replicas. Raise it, or make room.
	ReasonResourceQuota = "ResourceQuota"
	// ReasonUsageTooHigh: more is in use, or was within the last day, than the lower limit would hold. It goes on when
	// use is lower.
	ReasonUsageTooHigh = "UsageTooHigh"
	// ReasonHeapCapFixed: the process keeps the heap cap it was started with, which the lower limit would not hold.
	// It fits after the next start; sizing.mode: InPlaceOrEvict replaces the pod.
	ReasonHeapCapFixed = "HeapCapFixed"
	// ReasonNodeTooSmall: the request is more than the whole node. A larger node is needed, or limit.max in the
	// profile.
	ReasonNodeTooSmall = "NodeTooSmall"
)

// Reasons of the condition Applied that carrying a size out gives, besides those of the guards.
const (
	// ReasonModeRecommend: sizing.mode is Recommend. Set OnCreate to let new pods have the size, or InPlace for
	// running ones, too.
	ReasonModeRecommend = "ModeRecommend"
	// ReasonWaitingForNewPods: running pods keep the size they have: the mode is OnCreate, no pod runs, or the pod is
	// one that nobody would start again. New pods get it.
	ReasonWaitingForNewPods = "WaitingForNewPods"
	// ReasonApplying: a pod is being changed now.
	ReasonApplying = "Applying"
	// ReasonWatching: pods run with a lower limit and are watched before the others get it.
	ReasonWatching = "Watching"
	// ReasonStarting: a container has not been up for as long as it will be watched, so that what starting takes has
	// not been seen. Its limit is lowered later.
	ReasonStarting = "Starting"
	// ReasonWaitingForWindow: no maintenance window of sizing.disruption.windows is open. It goes on by itself when the
	// next one opens, which the message tells.
	ReasonWaitingForWindow = "WaitingForWindow"
	// ReasonWaitingForBudget: what may be raised or disturbed in all workloads together within an hour is used up
	// (--change-budget-bytes, --change-budget-pods). It goes on by itself when there is room, which the message tells.
	ReasonWaitingForBudget = "WaitingForBudget"
	// ReasonWaitingForQuery: sizing.disruption.rollbackQuery has a series in its answer, or no answer, so that no limit is
	// lowered. It goes on by itself when the answer is empty.
	ReasonWaitingForQuery = "WaitingForQuery"
	// ReasonWaitingForStart: the container is down, and a raise that meets it down may never become effective. It is
	// asked for as soon as the container runs.
	ReasonWaitingForStart = "WaitingForStart"
	// ReasonDeferred: the kubelet waits for room on the node. sizing.mode: InPlaceOrEvict evicts the pod after 5
	// minutes.
	ReasonDeferred = "Deferred"
	// ReasonInfeasible: the kubelet says that the node cannot hold the size. It is tried again after an hour, or the
	// pod is evicted where the mode allows it.
	ReasonInfeasible = "Infeasible"
	// ReasonResizeFailed: the kubelet has failed at the resize, with the error in the message. It is tried again after
	// an hour, or the pod is evicted where the mode allows it.
	ReasonResizeFailed = "ResizeFailed"
	// ReasonNotActuated: the kubelet does not answer for 5 minutes. It is tried again after an hour, or the pod is
	// evicted where the mode allows it.
	ReasonNotActuated = "NotActuated"
	// ReasonVolumeKeepsSize: a pod was raised in place, its memory-backed volume has the size that it got at creation, and
	// the container keeps restarting. Delete the pod, or set emptyDir.sizeLimit.
	ReasonVolumeKeepsSize = "VolumeKeepsSize"
	// ReasonNotEffective: the container's status shows the new limit, and the cgroup of its pod still holds it to the
	// old one. The message says which pod to delete, unless the mode allows its eviction.
	ReasonNotEffective = "NotEffective"
	// ReasonRefused: the API server took neither the resize nor the eviction. The message quotes it; it is tried again
	// after an hour.
	ReasonRefused = "Refused"
)

// Reasons of Events about what happened to a pod; its workload gets one, too.
const (
	// EventOOMKilled: the kernel killed a process of the container. The note has the limit, the peak and what is
	// recommended.
	EventOOMKilled = "OOMKilled"
	// EventOOMKillExplained: the agent of the node tells what it saw of a kill that was told before: what died, the
	// minute before, what filled the memory. `kubectl memfit why pod/NAME` has it on one page.
	EventOOMKillExplained = "OOMKillExplained"
	// EventHeapExhausted: the runtime gave up at its own heap cap. No kernel killed, and the limit may be fine: raise
	// heapPercent.
	EventHeapExhausted = "HeapExhausted"
	// EventMemoryStalled: a container began to stall just below its limit. See [ConditionMemoryStalled].
	EventMemoryStalled = "MemoryStalled"
	// EventStallExplained: the agent of the node tells what it saw of a stall that was told before: the limit that held
	// it, the minute before, what filled the memory. `kubectl memfit why pod/NAME` has it on one page.
	EventStallExplained = "StallExplained"
	// EventRestartedForMemory: the pod was evicted before the kernel kills it, because the profile says drift.action:
	// Restart. Find out why its memory grows.
	EventRestartedForMemory = "RestartedForMemory"
	// EventResizing: a resize in place was asked for, or one that did not come about was rolled back.
	EventResizing = "Resizing"
	// EventEvictedForResize: the pod was evicted so that its successor gets a size that this pod cannot get in place.
	EventEvictedForResize = "EvictedForResize"
	// EventResizeRefused: the API server did not take a resize or an eviction. The note quotes it; mend what it names.
	EventResizeRefused = "ResizeRefused"
	// EventResized: the new size is effective.
	EventResized = "Resized"
	// EventReplaced: the successor of an evicted pod runs with the new size.
	EventReplaced = "Replaced"
	// EventNotResized: a resize was given up and is rolled back. The note has the kubelet's answer.
	EventNotResized = "NotResized"
	// EventReverted: a lower limit led to kills, restarts or a pod that is not ready any more, and is rolled back from
	// every pod. It is not tried again for a week.
	EventReverted = "Reverted"
	// EventConflictingWriter: somebody else changed a size that memfit had set, and memfit leaves these pods alone for 24
	// hours. Let only one of the two do it.
	EventConflictingWriter = "ConflictingWriter"
)

// Reasons of Events about a workload.
const (
	// EventRecommendationChanged: a container has another recommended size than before.
	EventRecommendationChanged = "RecommendationChanged"
	// EventInjectionOutOfDate: pods run without what the profile sets today. Restart the workload when it suits you.
	EventInjectionOutOfDate = "InjectionOutOfDate"
	// EventDriftDetected: memory began to climb or to stay high. See the reasons of [ConditionDriftDetected].
	EventDriftDetected = "DriftDetected"
	// EventProfileNotFound: the annotation names a profile that does not exist, or one with role Defaults, which governs
	// no pod. Create it, or correct the name.
	EventProfileNotFound = "ProfileNotFound"
	// EventProfileAmbiguous: the selectors of two profiles choose its pods, and neither is applied. Narrow one, or
	// name one by annotation.
	EventProfileAmbiguous = "ProfileAmbiguous"
)
