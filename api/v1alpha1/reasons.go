// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// This file has every reason of memfit's conditions and Events, with its meaning and what to do. test/arch checks that
// the rest of memfit uses only these.

// Reasons of the conditions Ready and Stalled of profiles, InjectionUpToDate, UsageAvailable, Conflicted and
// IdentitiesBounded.
const (
	// ReasonEffective: the profile is valid and governs pods. There is nothing to do.
	ReasonEffective = "Effective"
	// ReasonNoPodsMatched: the profile governs no running pod. Annotate a workload with memfit.dev/profile, or compare
	// spec.selector with the labels of its pod template.
	ReasonNoPodsMatched = "NoPodsMatched"
	// ReasonInvalidSpec: the profile contradicts itself or the profiles that it inherits from; memfit changes no size.
	// The message names the fields, where each is from, and what to correct.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonInherited: the profile has role Defaults, and other profiles inherit from it. There is nothing to do.
	ReasonInherited = "Inherited"
	// ReasonAmbiguousDefaults: an older profile of the same scope has role Defaults as well and takes effect instead.
	// Move the values into one of the two, and delete the other.
	ReasonAmbiguousDefaults = "AmbiguousDefaults"
	// ReasonAllInjected: every governed pod runs with the profile's settings.
	ReasonAllInjected = "AllInjected"
	// ReasonPodsOutOfDate: some running pods were created before the profile or its last change, or without the webhook.
	// Restart their workloads at a convenient time.
	ReasonPodsOutOfDate = "PodsOutOfDate"
	// ReasonInjectionDisabled: tuning.mode is Disabled or DryRun, so nothing is set on pods.
	ReasonInjectionDisabled = "InjectionDisabled"
	// ReasonUsageRead: every node that hosts governed pods reports their usage.
	ReasonUsageRead = "UsageRead"
	// ReasonUsageMissing: some or all nodes do not report usage, and memfit changes nothing without usage. The message has
	// the node and the error; docs/guide/troubleshooting.md has the fix for each error. Also a reason of the condition
	// Ready of recommendations: no node of the workload reports usage.
	ReasonUsageMissing = "UsageMissing"
	// ReasonNoConflict: no other controller sizes these pods, and no other profile selects them.
	ReasonNoConflict = "NoConflict"
	// ReasonAmbiguousProfile: the selectors of two profiles match the same pods, and the older one takes effect. Narrow
	// one of them, or name a profile by annotation, which has precedence.
	ReasonAmbiguousProfile = "AmbiguousProfile"
	// ReasonConflict: another controller or user sizes this memory: a VPA, an HPA on memory, a writer in a pod's managed
	// fields, or a manifest of a bare pod that sets its memory. memfit applies nothing until only one of them sizes it.
	// Also a reason of Applied and of an Event.
	ReasonConflict = "Conflict"
	// ReasonTooManyIdentities: the profile has 1,000 pod identities, the maximum, and pods of further identities keep
	// their own size. Set spec.identity.labels to labels that do not differ from run to run, or split the profile.
	ReasonTooManyIdentities = "TooManyIdentities"
)

// Reasons of the condition Ready of recommendations.
const (
	// ReasonRecommendationReady: at least one container has a recommended size.
	ReasonRecommendationReady = "RecommendationReady"
	// ReasonNotEnoughEvidence: the measurements do not suffice to recommend a size, to lower a limit or to classify memory
	// over time. The message lists what is missing; wait for it. Also a reason of Applied and DriftDetected.
	ReasonNotEnoughEvidence = "NotEnoughEvidence"
	// ReasonModeDisabled: sizing.mode is Disabled: nothing is recommended or applied. Also a reason of Applied.
	ReasonModeDisabled = "ModeDisabled"
)

// Reasons of the condition OOMObserved.
const (
	// ReasonOOMKilled: a container was OOM-killed within the drift window. Apply the recommendation.
	ReasonOOMKilled = "OOMKilled"
	// ReasonNoOOMKill: no container was OOM-killed within the drift window.
	ReasonNoOOMKill = "NoOOMKill"
	// ReasonLedgerFull: the workload's ledger of OOM kills is full, and kills of further pods are not counted. Find out
	// why about 10,000 of its pods restart, or split the workload. Also a reason of an Event.
	ReasonLedgerFull = "LedgerFull"
)

// Reasons of the condition MemoryStalled.
const (
	// ReasonStallOngoing: a container is stalled. Apply the recommended limit, or restart the pod.
	ReasonStallOngoing = "StallOngoing"
	// ReasonIncreaseIneffective: a container stalled, and a higher limit did not end the major page faults. Inspect the
	// files that the process maps, and its disk. Also a reason of an Event.
	ReasonIncreaseIneffective = "IncreaseIneffective"
	// ReasonStallEnded: the last stall within the drift window has ended. Also a reason of an Event.
	ReasonStallEnded = "StallEnded"
	// ReasonNoStall: there was no stall within the drift window.
	ReasonNoStall = "NoStall"
	// ReasonFaultsNotCounted: the source of usage counts no major page faults, so stalls are unknown. Allow memfit to read
	// kubelets (nodes/stats).
	ReasonFaultsNotCounted = "FaultsNotCounted"
)

// Reasons of the condition DriftDetected.
const (
	// ReasonNoDrift: memory neither climbs nor stays high after load.
	ReasonNoDrift = "NoDrift"
	// ReasonClimb: memory grows steadily, and no limit is large enough. Find the leak; until it is fixed, set
	// drift.action: Restart.
	ReasonClimb = "Climb"
	// ReasonStepRetention: memory stays high after load. Try arenaMax with glibc, trimInterval with HotSpot; until it is
	// fixed, set drift.action: Restart.
	ReasonStepRetention = "StepRetention"
	// ReasonLeak: every container instance grows from its start until it is OOM-killed, within minutes. memfit raises the
	// limit by one step only: find the leak.
	ReasonLeak = "Leak"
	// ReasonOutlierReplica: a pod uses far more memory than the other replicas. Find out what this pod does before you
	// raise any limit. Also a reason of an Event on the pod.
	ReasonOutlierReplica = "OutlierReplica"
)

// Reasons of the condition SettingsMatchLimit.
const (
	// ReasonSettingsMatch: no running container has settings that were derived from a limit other than its current one.
	ReasonSettingsMatch = "SettingsMatch"
	// ReasonRestartRequired: a container was resized, and its process keeps the settings it was started with. The
	// message lists the settings of a new pod; restart the pod at a convenient time.
	ReasonRestartRequired = "RestartRequired"
)

// Reasons of the condition Stalled of recommendations, also used for Events.
const (
	// ReasonCheckpointRefused: the API server refuses to store the MemoryCheckpoint of the workload. The message quotes
	// its error: for example a full etcd, a quota or a missing permission. Until it is stored, memfit counts, recommends
	// and changes nothing, and loses nothing; it retries at least every minute.
	ReasonCheckpointRefused = "CheckpointRefused"
	// ReasonCheckpointTooNew: a newer memfit wrote the workload's MemoryCheckpoint, and this version does not manage the
	// workload. Upgrade memfit, or delete the MemoryCheckpoint to start without its history.
	ReasonCheckpointTooNew = "CheckpointTooNew"
	// ReasonCheckpointUnreadable: the workload's MemoryCheckpoint is damaged, and memfit does not manage the workload.
	// Restore the MemoryCheckpoint, or delete it to start without its history.
	ReasonCheckpointUnreadable = "CheckpointUnreadable"
	// ReasonReconcileTimedOut: a reconcile of the workload took too long and was canceled. The message names the step,
	// usually a request that the API server did not answer; memfit retries with increasing delays.
	ReasonReconcileTimedOut = "ReconcileTimedOut"
)

// Reasons of the condition Applied from guards. The first guard that refuses is the one that users see.
const (
	// ReasonPaused: memfit.dev/pause is set on the workload, its Namespace or memfit's own. Remove it to continue.
	ReasonPaused = "Paused"
	// ReasonUpToDate: every running pod has the recommended size; the condition is True.
	ReasonUpToDate = "UpToDate"
	// ReasonReverted: the size was rolled back because kills, restarts or an unready pod followed it. memfit does not
	// retry it for a week.
	ReasonReverted = "Reverted"
	// ReasonCoolingDown: the last change is too recent. memfit continues after sizing.disruption.cooldown.
	ReasonCoolingDown = "CoolingDown"
	// ReasonDisruptionBudget: the maximum number of pods is being changed or not ready, or a PodDisruptionBudget does not
	// allow an eviction. memfit continues when the pods are ready.
	ReasonDisruptionBudget = "DisruptionBudget"
	// ReasonSingleReplica: the only replica would restart. Set sizing.disruption.singleReplica: Allowed, or restart it.
	ReasonSingleReplica = "SingleReplica"
	// ReasonQoSClass: the resize would move the pod to another QoS class, which the API server refuses. New pods get the
	// size with sizing.mode: OnCreate.
	ReasonQoSClass = "QoSClass"
	// ReasonPodLimit: the size exceeds that of the whole pod (spec.resources), which memfit did not change; the message
	// has the reason. If the size of a running pod cannot be changed, restart the workload: new pods get a larger one. If
	// the need of a container without a limit is unknown, set its limit.
	ReasonPodLimit = "PodLimit"
	// ReasonLimitRange: a LimitRange of the namespace does not allow the size. Change the LimitRange, or set bounds in the
	// profile that it allows.
	ReasonLimitRange = "LimitRange"
	// ReasonResourceQuota: a ResourceQuota has too little left for all replicas. Raise the quota, or free some of it.
	ReasonResourceQuota = "ResourceQuota"
	// ReasonUsageTooHigh: current usage, or usage within the last day, is above the lower limit. memfit continues when
	// usage is below it.
	ReasonUsageTooHigh = "UsageTooHigh"
	// ReasonHeapCapFixed: the process keeps the heap cap it was started with, which exceeds the lower limit. The limit
	// fits after the next start; sizing.mode: InPlaceOrEvict replaces the pod.
	ReasonHeapCapFixed = "HeapCapFixed"
	// ReasonNodeTooSmall: the request exceeds the allocatable memory of the node. Add a larger node, or set limit.max.
	ReasonNodeTooSmall = "NodeTooSmall"
)

// Reasons of the condition Applied while memfit applies a size, besides those of the guards.
const (
	// ReasonModeRecommend: sizing.mode is Recommend. Set OnCreate to size new pods, InPlace to size running pods as well.
	ReasonModeRecommend = "ModeRecommend"
	// ReasonWaitingForNewPods: only new pods get the size: the mode is OnCreate, no pod runs, no controller would recreate
	// the pod, it runs to completion, its annotation karpenter.sh/do-not-disrupt or
	// cluster-autoscaler.kubernetes.io/safe-to-evict forbids its restart or eviction, the successor of an evicted pod
	// lacks the size, or the pod has no limit yet, and a resize could not remove a new one.
	ReasonWaitingForNewPods = "WaitingForNewPods"
	// ReasonApplying: memfit is changing a pod.
	ReasonApplying = "Applying"
	// ReasonWatching: memfit watches the pods with a lower limit before it lowers the others.
	ReasonWatching = "Watching"
	// ReasonStarting: a container has run for less than the watch period, so the memory that its start needs is
	// unknown. memfit lowers its limit later.
	ReasonStarting = "Starting"
	// ReasonWaitingForWindow: no maintenance window of sizing.disruption.windows is open. memfit continues when the next
	// one opens; the message has the time.
	ReasonWaitingForWindow = "WaitingForWindow"
	// ReasonWaitingForBudget: the change budget of all workloads for this hour is spent (--change-budget-bytes,
	// --change-budget-pods). memfit continues when the budget allows it; the message has the time.
	ReasonWaitingForBudget = "WaitingForBudget"
	// ReasonWaitingForQuery: sizing.disruption.rollbackQuery returns a series or fails, so memfit lowers no limit. It
	// continues when the query returns no series.
	ReasonWaitingForQuery = "WaitingForQuery"
	// ReasonDeferred: the kubelet waits for free memory on the node. Meanwhile memfit raises only the limit, unless the
	// pod is Guaranteed. sizing.mode: InPlaceOrEvict evicts the pod after 5 minutes.
	ReasonDeferred = "Deferred"
	// ReasonInfeasible: the kubelet reports that the node cannot hold the size. memfit retries after an hour, or evicts
	// the pod where the mode allows it.
	ReasonInfeasible = "Infeasible"
	// ReasonResizeFailed: the kubelet failed to resize the container; the message has its error. memfit retries after an
	// hour, or evicts the pod where the mode allows it.
	ReasonResizeFailed = "ResizeFailed"
	// ReasonNotActuated: the kubelet has not answered for 5 minutes. memfit retries after an hour, or evicts the pod
	// where the mode allows it.
	ReasonNotActuated = "NotActuated"
	// ReasonVolumeKeepsSize: a pod was resized in place, its memory-backed volume keeps the size from its creation, and
	// the container keeps restarting. Delete the pod, or set emptyDir.sizeLimit.
	ReasonVolumeKeepsSize = "VolumeKeepsSize"
	// ReasonNotEffective: the container's status shows the new limit, but its pod's cgroup still has the old limit, or its
	// process the old heap cap. Delete the pod that the message names, unless the mode allows its eviction.
	ReasonNotEffective = "NotEffective"
	// ReasonUnschedulable: no node has memory for the request that memfit set on a pod. memfit restores the template's
	// request on this pod and uses it for new pods; if it cannot, the message has what to do. memfit evicts no pod whose
	// successor would need such a request.
	ReasonUnschedulable = "Unschedulable"
	// ReasonRefused: the API server refused the resize, or the eviction where the mode allows one. The message quotes the
	// error; grant the permission it names, or fix the cause. memfit retries after an hour, or 10 minutes for a missing
	// permission.
	ReasonRefused = "Refused"
)

// Reasons of Events on a pod; its workload gets one as well.
const (
	// EventOOMKilled: the kernel killed a process of the container. The note has limit, peak and recommendation.
	EventOOMKilled = "OOMKilled"
	// EventOOMKillExplained: the agent's record of the kill in an earlier Event: the killed process, the minute before,
	// and what filled the memory. `kubectl memfit why pod/NAME` shows it on one page.
	EventOOMKillExplained = "OOMKillExplained"
	// EventHeapExhausted: the process exited because its heap reached the runtime's own cap. This is not an OOM kill, and
	// the limit may be large enough: raise heapPercent.
	EventHeapExhausted = "HeapExhausted"
	// EventMemoryStalled: a container began to stall just below its limit. See [ConditionMemoryStalled].
	EventMemoryStalled = "MemoryStalled"
	// EventStallExplained: the agent's record of the stall in an earlier Event: the limit, the minute before, and what
	// filled the memory. `kubectl memfit why pod/NAME` shows it on one page.
	EventStallExplained = "StallExplained"
	// EventRestartedForMemory: the pod was evicted before an OOM kill, because the profile has drift.action: Restart.
	// Find out why its memory grows.
	EventRestartedForMemory = "RestartedForMemory"
	// EventResizing: memfit requested a resize in place, or rolled back one that did not take effect.
	EventResizing = "Resizing"
	// EventEvictedForResize: the pod was evicted so that its successor gets a size that this pod cannot get in place.
	EventEvictedForResize = "EvictedForResize"
	// EventResizeRefused: the API server refused a resize or an eviction. The note quotes the error; fix its cause.
	EventResizeRefused = "ResizeRefused"
	// EventResized: the new size is effective.
	EventResized = "Resized"
	// EventReplaced: the successor of an evicted pod runs with the new size.
	EventReplaced = "Replaced"
	// EventNotResized: a resize failed and is rolled back. The note has the kubelet's answer.
	EventNotResized = "NotResized"
	// EventReverted: kills, restarts or an unready pod followed a lower limit, and it is rolled back from every pod.
	// memfit does not retry it for a week.
	EventReverted = "Reverted"
	// EventMemoryLoaned: memfit raised the limit of a container that was about to reach it, before the kernel killed it
	// (sizing.rescue: Enabled). The note has the old and the new limit, the growth and when the loan ends. If it happens
	// again, raise limit.max, or find out why memory grows.
	EventMemoryLoaned = "MemoryLoaned"
	// EventLoanReturned: a loan has ended: memfit restored the previous limit, or the recommendation covers the loan.
	EventLoanReturned = "LoanReturned"
	// EventOOMExpected: a container is about to be OOM-killed, and memfit lends it no memory. The note has the number of
	// seconds and the reason, for example a leak, limit.max or a node short of memory; fix the cause.
	EventOOMExpected = "OOMExpected"
	// EventConflictingWriter: another writer changed a size that memfit had set, and memfit changes no running pod of the
	// workload for 24 hours. Let only one of the two write the size.
	EventConflictingWriter = "ConflictingWriter"
)

// Reasons of Events about a workload.
const (
	// EventRecommendationChanged: the recommended size of a container changed.
	EventRecommendationChanged = "RecommendationChanged"
	// EventInjectionOutOfDate: some pods run without the current settings of the profile. Restart the workload at a
	// convenient time; if memfit was installed without its webhook, install the webhook first.
	EventInjectionOutOfDate = "InjectionOutOfDate"
	// EventPodsNotCreated: an admission policy refuses the pods that memfit changes: none of them was created, but two
	// unchanged ones were. memfit changes no new pods until the time in the note; the Event FailedCreate of the pods'
	// controller quotes the policy. Set limit.max or requestPolicy to what the policy allows, or exclude the workload.
	EventPodsNotCreated = "PodsNotCreated"
	// EventDriftDetected: memory began to grow or to stay high. See the reasons of [ConditionDriftDetected].
	EventDriftDetected = "DriftDetected"
	// EventProfileNotFound: the annotation names a profile that does not exist, or one with role Defaults, which governs
	// no pod. Create it, or correct the name.
	EventProfileNotFound = "ProfileNotFound"
	// EventProfileAmbiguous: the selectors of two profiles match the workload's pods, and the older profile takes effect.
	// Narrow one selector, or name a profile by annotation.
	EventProfileAmbiguous = "ProfileAmbiguous"
)
