// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Libc names the C library, which decides whether MALLOC_* settings have an effect.
// +kubebuilder:validation:Enum=Auto;Glibc;Musl
type Libc string

// The C libraries. Auto is treated as glibc: the settings are harmless on musl.
const (
	LibcAuto  Libc = "Auto"
	LibcGlibc Libc = "Glibc"
	LibcMusl  Libc = "Musl"
)

// RuntimeSpec declares what a container runs.
// +kubebuilder:validation:XValidation:rule="!has(self.variant) || self.type == 'JVM'",message="variant is only known for type JVM: remove variant or set type: JVM"
type RuntimeSpec struct {
	// type is the language runtime. Default: Auto: until the runtime is known, memfit injects only settings that cannot
	// make a process fail. Example: NodeJS.
	// +kubebuilder:default=Auto
	Type RuntimeType `json:"type,omitempty"`

	// version is the version of the runtime, or its first numbers. It enables advisories, and settings that older versions
	// reject. Default: unknown, which enables only settings that every supported version accepts. Example: "20", "17.0.9".
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+){0,3}([+_u][0-9]+)?$')",message="version is up to four numbers joined by dots, without a leading v: for example 20 or 17.0.9, in quotes"
	Version string `json:"version,omitempty"`

	// variant distinguishes builds of one language. JVM only: HotSpot (default), OpenJ9, NativeImage (GraalVM) or
	// Buildpack (a paketo image whose launcher calculates -Xmx itself). Example: Buildpack.
	Variant RuntimeVariant `json:"variant,omitempty"`

	// libc is the C library of the image. Default: Auto. With Musl (Alpine images), memfit sets no MALLOC_* variables.
	// +kubebuilder:default=Auto
	Libc Libc `json:"libc,omitempty"`
}

// TuningMode selects what the webhook does with runtime settings.
// +kubebuilder:validation:Enum=Inject;DryRun;Disabled
type TuningMode string

// The tuning modes.
const (
	TuningInject   TuningMode = "Inject"
	TuningDryRun   TuningMode = "DryRun"
	TuningDisabled TuningMode = "Disabled"
)

// ConflictPolicy selects what happens to a setting that the user already set.
// +kubebuilder:validation:Enum=KeepUser;Replace
type ConflictPolicy string

// The conflict policies.
const (
	KeepUser ConflictPolicy = "KeepUser"
	Replace  ConflictPolicy = "Replace"
)

// MemoryResizePolicy is the memory resizePolicy that the webhook adds to a container.
// +kubebuilder:validation:Enum=RestartContainer;NotRequired;Keep
type MemoryResizePolicy string

// The resize policies.
const (
	ResizeRestartContainer MemoryResizePolicy = "RestartContainer"
	ResizeNotRequired      MemoryResizePolicy = "NotRequired"
	ResizeKeep             MemoryResizePolicy = "Keep"
)

// TuningSpec selects the runtime settings to inject. It has no field for arbitrary environment variables, because the
// author of a profile must not be able to run code in other users' pods.
//
// No field has a default in the schema: the API server would also set it in entries of spec.containers, where it would
// override the value for all containers.
// +kubebuilder:validation:XValidation:rule="!(has(self.heapPercent) && has(self.heapLimit))",message="heapPercent and heapLimit both set the managed heap: keep one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.replace) || size(self.replace) == 0 || (has(self.conflictPolicy) && self.conflictPolicy == 'Replace')",message="replace lists settings to overwrite, which needs conflictPolicy: Replace"
type TuningSpec struct {
	// mode is Inject (default), DryRun (only record in the annotation memfit.dev/injected what would be set) or Disabled.
	Mode TuningMode `json:"mode,omitempty"`

	// heapPercent is the share of the effective memory limit for the managed heap, in percent (10-100). Default by runtime
	// (docs/guide/runtimes.md): NodeJS 75 (minus three semi-spaces), Go 90 (80 with cgo; 100 causes a warning), JVM not
	// set (the JVM's own default is 25). Example: 60.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=100
	HeapPercent *int32 `json:"heapPercent,omitempty"`

	// heapLimit is an absolute size for the managed heap instead of a share, at least 16Mi. NodeJS: the old space. Go:
	// GOMEMLIMIT. JVM: refused, use heapPercent. If it does not fit below the memory limit, memfit ignores it and reports
	// the reason. With processes, each process gets a heap of this size. Example: 256Mi.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('16Mi')) >= 0",message="heapLimit must be at least 16Mi: write it with a unit, for example 256Mi"
	HeapLimit *MemoryQuantity `json:"heapLimit,omitempty"`

	// processes is how many processes of the runtime share the container's limit, each with a heap of its own (1-256):
	// workers of PM2 or node:cluster, Go's prefork, several JVMs. memfit subtracts reserve from the limit and divides the
	// rest equally. Default: unset, which assumes one process; memfit then sets no heap cap for PM2. Example: 4.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Processes *int32 `json:"processes,omitempty"`

	// reserve is the part of the limit for everything but the runtime (process managers, log shippers, mapped files), at
	// least 1Mi. memfit subtracts it before it computes settings. If it is not below the limit, memfit derives no setting
	// and warns the creator of the pod. Default: none. Example: 256Mi.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="reserve must be at least 1Mi: write it with a unit, for example 256Mi"
	Reserve *MemoryQuantity `json:"reserve,omitempty"`

	// arenaMax is MALLOC_ARENA_MAX, the number of glibc malloc arenas of each process (1-64); 0: do not set it. Default: 2
	// for Ruby. For other runtimes memfit only suggests it, because it saved memory in some measurements only. Example: 2.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	ArenaMax *int32 `json:"arenaMax,omitempty"`

	// trimThreshold is MALLOC_TRIM_THRESHOLD_ for glibc, 64Ki to 1Gi. Setting it also disables glibc's dynamic mmap
	// threshold. Default: not set. Example: 128Ki.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self)) || (quantity(string(self)).compareTo(quantity('64Ki')) >= 0 && quantity(string(self)).compareTo(quantity('1Gi')) <= 0)",message="trimThreshold must be between 64Ki and 1Gi, for example 128Ki"
	TrimThreshold *MemoryQuantity `json:"trimThreshold,omitempty"`

	// trimInterval is how often a HotSpot JVM on glibc returns free native memory to the kernel
	// (-XX:TrimNativeHeapInterval), 1s to 1h; 0s: never. Default: 60s. Example: 30s.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && (duration(self) == duration('0s') || (duration(self) >= duration('1s') && duration(self) <= duration('1h')))",message="trimInterval must be 0s (off) or between 1s and 1h, for example 30s"
	TrimInterval *metav1.Duration `json:"trimInterval,omitempty"`

	// conflictPolicy is KeepUser (default: a flag or variable that the user set keeps its value) or Replace, which
	// overwrites only the settings listed in replace.
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// replace names settings (variables or flags) that memfit may overwrite when conflictPolicy is Replace; at most 16.
	// Values from valueFrom and envFrom are never replaced. Example: [GOMEMLIMIT, --max-old-space-size].
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	Replace []Setting `json:"replace,omitempty"`

	// resizePolicy is the memory resizePolicy for containers with a setting that the runtime computes from the limit when
	// it starts (MaxRAMPercentage, .NET's percentages): RestartContainer (default: a resized container restarts and
	// adapts), NotRequired, or Keep (add no policy). Other settings (GOMEMLIMIT, --max-old-space-size) do not change in a
	// restart and add no policy. A policy of the pod has precedence. Containers that run to completion (restartPolicy
	// Never or OnFailure) get no RestartContainer, because a restart would lose their work.
	ResizePolicy MemoryResizePolicy `json:"resizePolicy,omitempty"`

	// go holds settings for Go only.
	Go *GoTuning `json:"go,omitempty"`

	// jvm holds settings for the JVM only.
	JVM *JVMTuning `json:"jvm,omitempty"`

	// nodejs holds settings for Node.js only.
	NodeJS *NodeJSTuning `json:"nodejs,omitempty"`

	// dotnet holds settings for .NET only.
	DotNet *DotNetTuning `json:"dotnet,omitempty"`
}

// GoTuning holds settings for Go only.
type GoTuning struct {
	// memoryLimitBy is the variable that limits memory: GOMEMLIMIT (default), or AUTOMEMLIMIT for programs with the
	// automemlimit library. The library follows an in-place resize; GOMEMLIMIT would disable it.
	// +kubebuilder:validation:Enum=GOMEMLIMIT;AUTOMEMLIMIT
	MemoryLimitBy string `json:"memoryLimitBy,omitempty"`

	// gc is Default (GOGC is not set) or OnlyAtLimit, which sets GOGC=off and causes an admission warning: the collector
	// runs only near GOMEMLIMIT, and a live heap above GOMEMLIMIT causes a severe slowdown instead of an OOM kill.
	// +kubebuilder:validation:Enum=Default;OnlyAtLimit
	GC string `json:"gc,omitempty"`

	// cgo is Used when the program links C code, whose memory the Go runtime cannot see: GOMEMLIMIT then defaults to 80 %
	// of the limit instead of 90 %. Default: Unused.
	// +kubebuilder:validation:Enum=Used;Unused
	Cgo string `json:"cgo,omitempty"`
}

// JVMTuning holds settings for the JVM only.
type JVMTuning struct {
	// g1PeriodicGCInterval lets an idle G1 heap shrink (-XX:G1PeriodicGCInterval), 10s to 1h. It has no effect if -Xms
	// equals -Xmx, or with another collector. Default: not set. Example: 5m.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && (duration(self) >= duration('10s') && duration(self) <= duration('1h'))",message="g1PeriodicGCInterval must be between 10s and 1h, for example 5m"
	G1PeriodicGCInterval *metav1.Duration `json:"g1PeriodicGCInterval,omitempty"`
}

// NodeJSTuning holds settings for Node.js only.
type NodeJSTuning struct {
	// semiSpace is --max-semi-space-size, 1Mi to 128Mi in whole MiB; needs runtime.version 18.13 or later, because older
	// releases do not start with it. Default: not set (Node.js 24 quadrupled its own default). Example: 16Mi.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self)) || (quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('128Mi')) <= 0)",message="semiSpace must be between 1Mi and 128Mi, for example 16Mi"
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self)) || (quantity(string(self)).isInteger() && quantity(string(self)).asInteger() % 1048576 == 0)",message="semiSpace must be whole MiB, because Node.js takes no less: for example 16Mi"
	SemiSpace *MemoryQuantity `json:"semiSpace,omitempty"`

	// workerThreads is Inherit (default), or OwnLimits for programs that start worker threads with resourceLimits: memfit
	// then sets neither --max-old-space-size nor --max-semi-space-size, which would override resourceLimits
	// (nodejs/node#43991).
	// +kubebuilder:validation:Enum=Inherit;OwnLimits
	WorkerThreads string `json:"workerThreads,omitempty"`
}

// DotNetTuning holds settings for .NET only.
type DotNetTuning struct {
	// conserveMemory is DOTNET_GCConserveMemory (0-9): how hard the collector works to keep the large object heap compact.
	// Default: not set. Example: 5.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	ConserveMemory *int32 `json:"conserveMemory,omitempty"`
}

// SizingMode selects what memfit does with a recommendation.
// +kubebuilder:validation:Enum=Disabled;Recommend;OnCreate;InPlace;InPlaceOrEvict
type SizingMode string

// The sizing modes.
const (
	SizingDisabled       SizingMode = "Disabled"
	SizingRecommend      SizingMode = "Recommend"
	SizingOnCreate       SizingMode = "OnCreate"
	SizingInPlace        SizingMode = "InPlace"
	SizingInPlaceOrEvict SizingMode = "InPlaceOrEvict"
)

// SizesNewPods reports whether new pods get the recommended size: true for every mode that applies sizes.
func (m SizingMode) SizesNewPods() bool {
	return m == SizingOnCreate || m == SizingInPlace || m == SizingInPlaceOrEvict
}

// RequestPolicy selects how the memory request is computed.
// +kubebuilder:validation:Enum=Percentile;EqualsLimit
type RequestPolicy string

// The request policies.
const (
	RequestPercentile  RequestPolicy = "Percentile"
	RequestEqualsLimit RequestPolicy = "EqualsLimit"
)

// DecreasePolicy selects whether memfit may lower a size.
// +kubebuilder:validation:Enum=Allowed;Never
type DecreasePolicy string

// The decrease policies.
const (
	DecreaseAllowed DecreasePolicy = "Allowed"
	DecreaseNever   DecreasePolicy = "Never"
)

// IncreasePolicy selects when memfit may raise a size.
// +kubebuilder:validation:Enum=Allowed;AfterKill
type IncreasePolicy string

// The increase policies.
const (
	IncreaseAllowed   IncreasePolicy = "Allowed"
	IncreaseAfterKill IncreasePolicy = "AfterKill"
)

// RescuePolicy selects whether memfit raises a limit before an OOM kill.
// +kubebuilder:validation:Enum=Disabled;Enabled
type RescuePolicy string

// The rescue policies.
const (
	RescueDisabled RescuePolicy = "Disabled"
	RescueEnabled  RescuePolicy = "Enabled"
)

// SizingPosture is the price of an OOM kill: a name, or an amount of memory. Example: 20Gi.
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self in ['Frugal', 'Balanced', 'Cautious'] || !self.matches('[eE][-+]?[0-9]{3}') && isQuantity(self) && quantity(self).compareTo(quantity('1Gi')) >= 0 && quantity(self).compareTo(quantity('1Ti')) <= 0",message="posture must be Frugal, Balanced, Cautious, or the price of a kill between 1Gi and 1Ti, for example 20Gi"
type SizingPosture string

// The postures that have a name.
const (
	PostureFrugal   SizingPosture = "Frugal"
	PostureBalanced SizingPosture = "Balanced"
	PostureCautious SizingPosture = "Cautious"
)

// Bounds limit a size.
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || string(self.min).matches('[eE][-+]?[0-9]{3}') || string(self.max).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self.min)) || !isQuantity(string(self.max)) || quantity(string(self.min)).compareTo(quantity(string(self.max))) <= 0",message="min must not be above max: swap them or raise max"
type Bounds struct {
	// min is the smallest size memfit recommends, at least 1Mi. Default: 16Mi. Example: 64Mi.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="min is below 1Mi: write it with a unit, for example 64Mi"
	Min *MemoryQuantity `json:"min,omitempty"`
	// max is the largest size memfit recommends, at least 1Mi; it also bounds growth after OOM kills. Default: unset.
	// Without limit.max, a limit grows to at most half of the largest node's allocatable memory (no node known: 8Gi).
	// Example: 4Gi.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="max is below 1Mi: write it with a unit, for example 4Gi"
	Max *MemoryQuantity `json:"max,omitempty"`
}

// SizingSpec configures requests and limits.
// +kubebuilder:validation:XValidation:rule="!has(self.request) || !has(self.request.min) || !has(self.limit) || !has(self.limit.max) || string(self.request.min).matches('[eE][-+]?[0-9]{3}') || string(self.limit.max).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self.request.min)) || !isQuantity(string(self.limit.max)) || quantity(string(self.request.min)).compareTo(quantity(string(self.limit.max))) <= 0",message="request.min must not be above limit.max: no size could satisfy both"
// +kubebuilder:validation:XValidation:rule="!has(self.increase) || self.increase != 'AfterKill' || has(self.decrease) && self.decrease == 'Never'",message="increase: AfterKill needs decrease: Never: a limit that memfit lowers would be raised again only after a kill"
// +kubebuilder:validation:XValidation:rule="!has(self.rescue) || self.rescue != 'Enabled' || !has(self.mode) || self.mode in ['InPlace', 'InPlaceOrEvict']",message="rescue: Enabled needs mode: InPlace or InPlaceOrEvict: a rescue resizes a running pod"
type SizingSpec struct {
	// mode is Disabled, Recommend (default: change nothing), OnCreate (size new pods), InPlace (also resize running pods,
	// without a restart where the kubelet can) or InPlaceOrEvict (also evict pods that cannot be resized in place, within
	// PodDisruptionBudgets).
	Mode SizingMode `json:"mode,omitempty"`

	// requestPolicy is Percentile (default: the 90th percentile of hourly peaks plus a third of the headroom, and at
	// least current use) or EqualsLimit.
	RequestPolicy RequestPolicy `json:"requestPolicy,omitempty"`

	// headroomPercent is the headroom of a recommended limit, in percent (0-200). In the first two days it is added to the
	// highest demand (at least 8Mi), later to the last day's peak. A raise below minChangePercent waits until a third of
	// the headroom is left. After an OOM kill, twice the headroom is added. Default: 15, and 5 from the third day.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=200
	HeadroomPercent *int32 `json:"headroomPercent,omitempty"`

	// posture is the price of an OOM kill, expressed as memory allocated for a day: Frugal 3Gi, Balanced (default) 10Gi,
	// Cautious 200Gi, or an amount between 1Gi and 1Ti. A higher price results in higher limits and fewer kills. See
	// docs/design/sizing.md. Example: 20Gi.
	Posture SizingPosture `json:"posture,omitempty"`

	// limit bounds the recommended memory limit. Example: {min: 64Mi, max: 4Gi}.
	Limit *Bounds `json:"limit,omitempty"`

	// request bounds the recommended memory request. Example: {min: 32Mi, max: 4Gi}.
	Request *Bounds `json:"request,omitempty"`

	// decrease is Allowed (default) or Never: whether a recommendation may be below the pod's current size.
	Decrease DecreasePolicy `json:"decrease,omitempty"`

	// increase is Allowed (default) or AfterKill: raise a limit only after the container was OOM-killed or stalled at it.
	// A request still rises with use, up to the limit. Bounds, and loans of rescue: Enabled, are unaffected.
	Increase IncreasePolicy `json:"increase,omitempty"`

	// rescue is Disabled (default) or Enabled: when the agent of a node predicts that a container reaches its limit within
	// about half a second, memfit raises that limit in place before the OOM kill. The raise is a loan to one pod: four
	// times the limit, bounded by limit.max, a LimitRange and half of what the node, a ResourceQuota and the change budget
	// have left. The loan ends, even with decrease: Never, when the container has needed less than its previous or its
	// recommended limit for 1h, or when the recommendation covers it. A container that uses up its loan is treated as a
	// leak and gets no further loan. A rescue never restarts or evicts. It needs the agent (config/agent) and mode InPlace
	// or InPlaceOrEvict; with any other inherited mode it has no effect. Leave it Disabled where an early failure is
	// better than a late one.
	Rescue RescuePolicy `json:"rescue,omitempty"`

	// oom configures the growth of a limit after an OOM kill: to at most four times that limit, unless demand was higher.
	OOM *OOMSpec `json:"oom,omitempty"`

	// disruption limits how often and how much running pods are changed.
	Disruption *DisruptionSpec `json:"disruption,omitempty"`
}

// OOMSpec configures how the limit grows after an OOM kill.
type OOMSpec struct {
	// factorPercent is the least new limit after an OOM kill, in percent of the limit at the kill (110-400). For an hour,
	// memfit adds twice headroomPercent, or more for a container younger than two days; after that, usage decides. If the
	// container was OOM-killed at a lower limit within the hour before, the factor is at least 200, unless it ran longer
	// this time. Default: 150.
	// +kubebuilder:validation:Minimum=110
	// +kubebuilder:validation:Maximum=400
	FactorPercent *int32 `json:"factorPercent,omitempty"`

	// minIncrease is the least increase after an OOM kill, where factorPercent results in less; at least 1Mi. Default:
	// 64Mi. Example: 128Mi.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{3}') || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="minIncrease is below 1Mi: write it with a unit, for example 64Mi"
	MinIncrease *MemoryQuantity `json:"minIncrease,omitempty"`
}

// MaintenanceWindow is a recurring period.
type MaintenanceWindow struct {
	// schedule is when the window opens, in the five fields of a CronJob's schedule. Example: "0 2 * * 1-5".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|([0-9*?,/-]+ +){3}[0-9A-Za-z*?,/-]+ +[0-9A-Za-z*?,/-]+) *$')",message="schedule has the five fields of a CronJob's schedule, for example 0 2 * * 1-5, and no time zone: set timeZone"
	Schedule string `json:"schedule"`

	// duration is how long the window stays open, 1m to 168h. Example: 3h.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && (duration(self) >= duration('1m') && duration(self) <= duration('168h'))",message="duration must be between 1m and 168h, for example 3h"
	Duration metav1.Duration `json:"duration"`

	// timeZone is the IANA name of the schedule's time zone. Default: UTC. Example: Europe/Berlin.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self != 'Local' && self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$')",message="timeZone is a name of the IANA time zone database, for example Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
}

// IncreasesPolicy selects whether an increase waits for a maintenance window.
// +kubebuilder:validation:Enum=AnyTime;InWindows
type IncreasesPolicy string

// The policies for increases.
const (
	IncreasesAnyTime   IncreasesPolicy = "AnyTime"
	IncreasesInWindows IncreasesPolicy = "InWindows"
)

// DisruptionSpec limits changes to running pods.
// +kubebuilder:validation:XValidation:rule="!has(self.increases) || self.increases != 'InWindows' || has(self.windows) && size(self.windows) > 0",message="increases: InWindows needs windows: name at least one, or remove increases"
type DisruptionSpec struct {
	// windows are the maintenance windows. Outside of them, memfit lowers no limit of a running pod, and restarts or
	// evicts no pod, except for an increase after an OOM kill or stall (see increases) and for a rollback. Watches,
	// rollbacks, loans (rescue) and the sizes of new pods do not wait. At most 16. Default: none, no change waits.
	// Example: [{schedule: "0 2 * * 1-5", duration: 3h, timeZone: Europe/Berlin}].
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Windows []MaintenanceWindow `json:"windows,omitempty"`

	// increases selects whether a higher limit waits for a window. AnyTime (default): an in-place increase without a
	// restart does not wait, nor does an increase after an OOM kill, even if it restarts or evicts. InWindows: these
	// increases wait as well, so an OOM-killed container keeps its limit until a window opens. Rollbacks and loans of
	// rescue never wait.
	Increases IncreasesPolicy `json:"increases,omitempty"`

	// cooldown is the least time between two changes of one workload, 0s to 168h; a change after an OOM kill does not
	// wait. Default: 1h.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && (duration(self) >= duration('0s') && duration(self) <= duration('168h'))",message="cooldown must be between 0s and 168h, for example 1h"
	Cooldown *metav1.Duration `json:"cooldown,omitempty"`

	// maxUnavailable is how many pods of one workload may be unavailable while memfit changes them: 1 to 1000000, or a
	// share of the workload's replicas (1% to 100%), rounded down and at least 1. Pods that are not ready for other
	// reasons count. Default: 1. Example: 25%.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 1000000 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable must be at least 1, or a share of the replicas between 1% and 100%, for example 25%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// watch is how long memfit watches a pod with a lowered limit for OOM kills, restarts and readiness before it lowers
	// other pods' limits: 10s to 168h. Default: 10m. Example: 30m for applications whose demand rises slowly.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && (duration(self) >= duration('10s') && duration(self) <= duration('168h'))",message="watch must be between 10s and 168h, for example 10m"
	Watch *metav1.Duration `json:"watch,omitempty"`

	// rollbackQuery is a PromQL query that returns no series while the workload is healthy, like the expression of an
	// alerting rule. memfit queries the manager's Prometheus (--prometheus-url) at most every 15s. While the query returns
	// a series or fails, memfit lowers no limit. If it returns a series during a watch, memfit rolls the lower limit back
	// on every pod. A watch ends only after a query within the watch that returned no series. Needs the manager's flag
	// --rollback-queries: a query reads all namespaces. At most 1024 characters. Default: none. Example:
	// sum(rate(http_requests_total{namespace="shop",code=~"5.."}[2m])) > 1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RollbackQuery string `json:"rollbackQuery,omitempty"`

	// minChangePercent is the smallest change of a size that memfit makes, in percent (0-100). Default: 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MinChangePercent *int32 `json:"minChangePercent,omitempty"`

	// singleReplica is Never (default) or Allowed: whether memfit may restart or evict the only replica of a workload.
	// Even with Never, a resize may restart a container within an hour of its OOM kill or stall and for a rollback, and
	// memfit may evict a pod that is not ready.
	// +kubebuilder:validation:Enum=Allowed;Never
	SingleReplica string `json:"singleReplica,omitempty"`
}

// DriftAction is the action for a pod that retains or leaks memory.
// +kubebuilder:validation:Enum=Report;Restart
type DriftAction string

// The drift actions.
const (
	DriftReport  DriftAction = "Report"
	DriftRestart DriftAction = "Restart"
)

// DriftSpec configures how memfit detects memory that grows steadily or is retained after load, and how it reacts.
type DriftSpec struct {
	// window is the length of the history that is classified, 1h to 168h. Default: 24h.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && (duration(self) >= duration('1h') && duration(self) <= duration('168h'))",message="window must be between 1h and 168h, for example 24h"
	Window *metav1.Duration `json:"window,omitempty"`

	// action is Report (default) or Restart: evict pods that retain or leak memory, one at a time, before the kernel kills
	// them. Restart needs the permissions in config/rbac/evict-pods.
	Action DriftAction `json:"action,omitempty"`

	// maxPerDay is the largest number of pods of one workload that Restart evicts in 24 hours (1-100). maxUnavailable,
	// singleReplica, windows and cooldown of sizing.disruption apply as well. Default: 3.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxPerDay *int32 `json:"maxPerDay,omitempty"`
}

// ContainerPolicy overrides the profile for one container.
// +kubebuilder:validation:XValidation:rule="!has(self.runtime) || self.runtime.type != 'JVM' || !has(self.tuning) || !has(self.tuning.heapLimit)",message="heapLimit is not for type JVM, whose flags for a fixed heap would overrule the user's: use heapPercent"
type ContainerPolicy struct {
	// name is the container's name, or "*" for every container that no other entry names. memfit manages an init container
	// only if an entry names it or it is a native sidecar.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="self + ' is not a container name: it has lower-case letters, digits and hyphens; or write * for all others'",message="not a container name: it has lower-case letters, digits and hyphens; or write * for all others"
	Name string `json:"name"`

	// mode is Managed (default) or Ignored: memfit neither sizes nor tunes this container.
	// +kubebuilder:default=Managed
	// +kubebuilder:validation:Enum=Managed;Ignored
	Mode string `json:"mode,omitempty"`

	// runtime replaces the profile's runtime for this container.
	Runtime *RuntimeSpec `json:"runtime,omitempty"`

	// tuning overrides the profile's tuning for this container, field by field.
	Tuning *TuningSpec `json:"tuning,omitempty"`

	// limit bounds this container's limit. Unset bounds default to those of sizing.limit.
	Limit *Bounds `json:"limit,omitempty"`

	// request bounds this container's request. Unset bounds default to those of sizing.request.
	Request *Bounds `json:"request,omitempty"`
}

// IdentitySpec selects how memfit identifies pods that their owner does not identify: pods whose owner does not outlive
// them, and pods of DaemonSets, whose use differs by node.
type IdentitySpec struct {
	// labels are 1 to 4 label keys. Pods of one namespace that have all of these labels, with equal values, are one
	// workload, whichever object owns them. This applies to pods whose owner does not outlive them (bare pods, Jobs
	// without a CronJob, custom resources); other pods are identified by their owner. Do not name a label whose value
	// differs from run to run. Default: none; for platforms that memfit knows, such as Tekton, the labels in
	// docs/reference/platforms.md. Example: [app.kubernetes.io/name, step].
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +listType=set
	Labels []LabelKey `json:"labels,omitempty"`

	// nodeClass is the key of a node label. DaemonSet pods on nodes with the same value of this label share a request, a
	// limit and a history. It applies to DaemonSets only, because pods of other workloads may run on any node. A pod whose
	// node is unknown or lacks the label has no class, and belongs to the DaemonSet as a whole. A class does not use the
	// history of the whole DaemonSet. Do not name a label whose value differs on each node. Default: none. Example:
	// node.kubernetes.io/instance-type.
	NodeClass LabelKey `json:"nodeClass,omitempty"`
}

// LabelKey is the key of a label.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="not the key of a label: it has letters, digits, hyphens, underscores and dots, and may begin with a domain and a slash, for example tekton.dev/pipelineTask"
type LabelKey string

// ProfileRole is the purpose of a profile.
// +kubebuilder:validation:Enum=Profile;Defaults
type ProfileRole string

// The roles.
const (
	RoleProfile  ProfileRole = "Profile"
	RoleDefaults ProfileRole = "Defaults"
)

// MemoryProfileSpec declares the runtime of workloads and how memfit may change their memory.
//
// No field of tuning, sizing and drift has a default in the schema: a default could not be distinguished from a value
// of the author, and a profile with role Defaults would never take effect. Their defaults are in
// internal/profile/merge.go, and in the code that reads drift and disruption.
// +kubebuilder:validation:XValidation:rule="!has(self.role) || self.role != 'Defaults' || !has(self.selector) && (!has(self.containers) || size(self.containers) == 0)",message="selector and containers must not be set when role is Defaults, which governs no pod: remove them, or set them in the profile of those pods"
// +kubebuilder:validation:XValidation:rule="!has(self.role) || self.role != 'Defaults' || !has(self.runtime) || (!has(self.runtime.type) || self.runtime.type == 'Auto') && (!has(self.runtime.libc) || self.runtime.libc == 'Auto') && !has(self.runtime.version)",message="runtime must not be set when role is Defaults: remove it, and set it in the profiles that govern the pods"
// +kubebuilder:validation:XValidation:rule="!has(self.runtime) || self.runtime.type != 'JVM' || !has(self.tuning) || !has(self.tuning.heapLimit)",message="heapLimit is not for type JVM, whose flags for a fixed heap would overrule the user's: use heapPercent"
type MemoryProfileSpec struct {
	// role is Profile (default) or Defaults. A profile with role Defaults governs no pod: it provides the fields of
	// tuning, sizing, drift and identity that other profiles leave unset. A ClusterMemoryProfile provides them to all
	// profiles, a MemoryProfile to those of its namespace, with precedence over the cluster's. Each scope can have one; of
	// two, only the older one takes effect.
	Role ProfileRole `json:"role,omitempty"`

	// selector selects pods by label, in addition to those with the memfit.dev/profile annotation: pods of this namespace
	// (ClusterMemoryProfile: of the namespaces in namespaceSelector). Default: none, the annotation only. An empty
	// selector ({}) selects every pod. Example: {matchLabels: {app: websocket}}.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// runtime declares what the containers run. Default: Auto. Example: {type: NodeJS, version: "20"}.
	// +kubebuilder:default={}
	Runtime RuntimeSpec `json:"runtime,omitempty,omitzero"`

	// containers overrides runtime, tuning and bounds per container; at most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	Containers []ContainerPolicy `json:"containers,omitempty"`

	// tuning selects the runtime settings of new pods.
	// +kubebuilder:default={}
	Tuning TuningSpec `json:"tuning,omitempty,omitzero"`

	// sizing configures how requests and limits are recommended and applied.
	// +kubebuilder:default={}
	Sizing SizingSpec `json:"sizing,omitempty,omitzero"`

	// drift configures the reaction to memory that grows steadily or is retained after load.
	// +kubebuilder:default={}
	Drift DriftSpec `json:"drift,omitempty,omitzero"`

	// identity selects how memfit identifies pods whose owner does not outlive them (steps of pipelines, runners,
	// executors), and pods of DaemonSets on different nodes.
	Identity *IdentitySpec `json:"identity,omitempty"`
}

// ClusterMemoryProfileSpec has the fields of a MemoryProfile, and selects namespaces.
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || !has(self.role) || self.role != 'Defaults'",message="namespaceSelector must not be set when role is Defaults, which is for the profiles of every namespace: remove it"
type ClusterMemoryProfileSpec struct {
	MemoryProfileSpec `json:",inline"`

	// namespaceSelector limits the profile to namespaces with these labels, even if an annotation names the profile. It
	// does not affect precedence: of two ClusterMemoryProfiles that select the same pod, the older one wins, and a
	// MemoryProfile of the namespace wins over both. Default: every namespace. Example: {matchLabels: {team: shop}}.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// Coverage counts the pods a profile governs.
type Coverage struct {
	// governed is the number of running pods that the profile governs.
	Governed int32 `json:"governed"`
	// injected is the number of governed pods that run with the current settings of the profile.
	Injected int32 `json:"injected"`
	// missed is the number of governed pods created before the profile existed, or while the webhook was unavailable.
	Missed int32 `json:"missed"`
	// stale is the number of governed pods that run with older settings of the profile.
	Stale int32 `json:"stale"`
	// skipped is the number of governed pods on which memfit skipped every setting, for example because the user set it.
	Skipped int32 `json:"skipped"`
	// skippedReason is the reason for one skipped pod; absent in the status of profiles. Example: pod web-0: container
	// app: GOMEMLIMIT skipped: the pod sets GOMEMLIMIT=1GiB itself.
	// +kubebuilder:validation:MaxLength=1024
	SkippedReason string `json:"skippedReason,omitempty"`
}

// WorkloadSummary is one line about one workload. kubectl describe sorts fields by name, so the name comes first.
type WorkloadSummary struct {
	// name is the kind and name of the workload, for a ClusterMemoryProfile with its namespace. Example: Deployment web.
	Name string `json:"name"`
	// oomKills is the number of OOM kills counted so far.
	OOMKills int64 `json:"oomKills"`
	// recommendation is the name of the workload's MemoryRecommendation.
	Recommendation string `json:"recommendation,omitempty"`
	// summary is one line with memfit's findings and recommendation.
	Summary string `json:"summary"`
}

// MemoryProfileStatus is the observed state of the profile.
type MemoryProfileStatus struct {
	// observedGeneration is the generation of the spec that this status describes; -1: memfit has not read the profile.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, InjectionUpToDate, UsageAvailable, Conflicted; IdentitiesBounded while the profile has the
	// maximum number of pod identities; Stalled while the spec is invalid, or contradicts a profile it inherits from. A
	// profile with role Defaults has only Ready, Conflicted and Stalled.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// summary is one line about the state of the profile.
	Summary string `json:"summary,omitempty"`

	// problem is the reason of the first condition that needs attention: Ready, Conflicted, UsageAvailable,
	// IdentitiesBounded, InjectionUpToDate; its message has the next step. NoPodsMatched: no pod is governed. Absent:
	// none.
	// +kubebuilder:validation:MaxLength=64
	Problem string `json:"problem,omitempty"`

	// sizingMode is the effective mode, the profile's own or an inherited one, for the print column.
	SizingMode SizingMode `json:"sizingMode,omitempty"`

	// coverage counts governed pods and how many run with the profile's settings.
	Coverage *Coverage `json:"coverage,omitempty"`

	// pods is "injected/governed", for the print column.
	Pods string `json:"pods,omitempty"`

	// oomKills is the number of OOM kills counted in governed workloads so far.
	OOMKills int64 `json:"oomKills,omitempty"`

	// workloads are the governed workloads, sorted by OOM kills (most first), then by name; at most 20.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Workloads []WorkloadSummary `json:"workloads,omitempty"`

	// workloadsOmitted is the number of governed workloads beyond those listed; kubectl get memrec shows them all.
	WorkloadsOmitted int32 `json:"workloadsOmitted,omitempty"`
}

// MemoryProfile declares the runtime of workloads in its namespace and how memfit may change their memory.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mprof,categories=memory
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.spec.runtime.type`
// +kubebuilder:printcolumn:name="Sizing",type=string,JSONPath=`.status.sizingMode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Problem",type=string,JSONPath=`.status.problem`,description="Reason of the first condition that needs attention"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.pods`,description="Pods that run with the profile's settings / pods it governs"
// +kubebuilder:printcolumn:name="OOMs",type=integer,JSONPath=`.status.oomKills`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`,priority=1
type MemoryProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares runtime and policy.
	// +kubebuilder:default={}
	Spec MemoryProfileSpec `json:"spec,omitempty,omitzero"`
	// status is written by memfit. Until memfit has seen the profile, observedGeneration is -1, for clients that wait for
	// it by kstatus (Flux, kubectl wait).
	// +kubebuilder:default={"observedGeneration":-1}
	Status MemoryProfileStatus `json:"status,omitempty,omitzero"`
}

// MemoryProfileList is a list of MemoryProfile.
//
// +kubebuilder:object:root=true
type MemoryProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemoryProfile `json:"items"`
}

// ClusterMemoryProfile is a MemoryProfile for every namespace, or for those that namespaceSelector selects. A
// MemoryProfile that selects the same pod wins.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cmprof,categories=memory
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.spec.runtime.type`
// +kubebuilder:printcolumn:name="Sizing",type=string,JSONPath=`.status.sizingMode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Problem",type=string,JSONPath=`.status.problem`,description="Reason of the first condition that needs attention"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.pods`,description="Pods that run with the profile's settings / pods it governs"
// +kubebuilder:printcolumn:name="OOMs",type=integer,JSONPath=`.status.oomKills`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`,priority=1
type ClusterMemoryProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares runtime and policy.
	// +kubebuilder:default={}
	Spec ClusterMemoryProfileSpec `json:"spec,omitempty,omitzero"`
	// status is written by memfit. Until memfit has seen the profile, observedGeneration is -1, for clients that wait for
	// it by kstatus (Flux, kubectl wait).
	// +kubebuilder:default={"observedGeneration":-1}
	Status MemoryProfileStatus `json:"status,omitempty,omitzero"`
}

// ClusterMemoryProfileList is a list of ClusterMemoryProfile.
//
// +kubebuilder:object:root=true
type ClusterMemoryProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterMemoryProfile `json:"items"`
}
