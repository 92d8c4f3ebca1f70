// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// Guard says whether a recommendation may be applied to running pods now. reason is one CamelCase word for a condition, message a
// sentence with numbers; both are empty when the guard lets it pass.
type Guard func(in GuardInput) (reason, message string, refused bool)

// Guards are asked in order; the first refusal is the one users see.
type Guards []Guard

// GuardInput is what guards look at. A zero field means "not known" or "no such bound", and then its guard lets pass.
type GuardInput struct {
	Recommendation Recommendation
	Current        Size
	Policy         Policy
	Now            time.Time

	// Paused names the object that carries memfit.dev/pause, or the kill switch; "" when nothing pauses.
	Paused string
	// Conflict names the other object that writes or steers this workload's memory: a VPA that controls memory, an HPA on memory.
	Conflict string
	// LastChange is when memfit last changed this workload.
	LastChange time.Time
	// RevertedAt and RevertedFrom tell of the last change that was rolled back because it led to kills or restarts.
	RevertedAt   time.Time
	RevertedFrom memory.Bytes
	// Changing is the number of pods of the workload with a change under way or being watched, Unavailable those not ready.
	Changing, Unavailable int32
	Replicas              int32
	MaxUnavailable        int32 // 0: 1
	// OwnersBound: the owner's bounds ask for it, whatever the evidence says.
	OwnersBound bool
	// Restarts: applying it here restarts the container (eviction, or resizePolicy RestartContainer).
	Restarts bool
	// SingleReplicaMayRestart: the owner allows a workload of one replica to be restarted.
	SingleReplicaMayRestart bool

	// RSS is use right now, WindowPeak the highest of the last day; a limit is not lowered onto either.
	RSS, WindowPeak memory.Bytes
	// FrozenHeap is the heap cap the process was started with and keeps until it restarts; NativeOverhead what it needs on top.
	FrozenHeap, NativeOverhead memory.Bytes

	// QoS is the pod's class; OthersGuaranteed: but for this container's memory the pod would be Guaranteed.
	QoS              string
	OthersGuaranteed bool

	// RangeMin and RangeMax are the LimitRange's for a container's limit; RangeName names it.
	RangeName          string
	RangeMin, RangeMax memory.Bytes
	// RangeRefusal is why the LimitRanges would not admit the pod as a whole with the new size: its sum, or a ratio of limit to request.
	RangeRefusal string
	// QuotaName names a ResourceQuota; QuotaLimits and QuotaRequests are what it leaves for this workload, for all replicas together:
	// one byte when it leaves nothing.
	QuotaName                  string
	QuotaLimits, QuotaRequests memory.Bytes
	// NodeFree is the request the node can still take; NodeSize is its allocatable memory.
	NodeFree, NodeSize memory.Bytes
}

// DefaultGuards decide whether a recommendation may be applied now. Order matters: the first refusal is the one users see.
func DefaultGuards() Guards {
	return Guards{
		NotPaused,       // the owner's hand on the switch
		NoConflict,      // two writers make an eviction loop
		HasEvidence,     // a young container teaches nothing
		WorthIt,         // a small gain does not pay for a disruption
		NotJustReverted, // what has just failed fails again
		CooledDown,      // one change at a time; a kill does not wait
		WithinBudget,    // enough replicas stay up
		KeepsQoS,        // the API server refuses a resize that changes the class
		WithinPod,       // and a limit above that of the whole pod
		WithinRange,     // so does admission with a LimitRange
		WithinQuota,     // or a ResourceQuota
		RoomToLower,     // a lower limit must hold what is used now
		HeapFits,        // and the heap cap the process started with
		FitsNode,        // a request beyond the node is never actuated
	}
}

// Refusal asks the guards in order. refused is false when all let the recommendation pass.
func (g Guards) Refusal(in GuardInput) (reason, message string, refused bool) {
	for _, guard := range g {
		if reason, message, refused := guard(in); refused {
			return reason, message, true
		}
	}
	return "", "", false
}

// refuse is a refusal with its sentence.
func refuse(reason, format string, args ...any) (string, string, bool) {
	return reason, sprintf(format, args...), true
}

func pass() (string, string, bool) { return "", "", false }

// lowering and urgent are what many guards ask first: is the limit to go down, and did a kill ask for this?
func (in GuardInput) lowering() bool { return in.Recommendation.Size.Limit < in.Current.Limit }
func (in GuardInput) urgent() bool {
	return in.Recommendation.Decision == Raise && in.Recommendation.Urgent
}

// NotPaused refuses everything while memfit.dev/pause or the global switch says so.
func NotPaused(in GuardInput) (string, string, bool) {
	if in.Paused != "" {
		return refuse(v1alpha1.ReasonPaused, "paused by %s", in.Paused)
	}
	return pass()
}

// NoConflict refuses when another controller owns this workload's memory.
func NoConflict(in GuardInput) (string, string, bool) {
	if in.Conflict != "" {
		return refuse(v1alpha1.ReasonConflict, "recommend only: %s also steers this workload's memory; let only one of the two do it", in.Conflict)
	}
	return pass()
}

// HasEvidence refuses a recommendation that holds, and one that lowers on less than a day of use: most demand has a daily rhythm.
func HasEvidence(in GuardInput) (string, string, bool) {
	r := in.Recommendation
	if r.Decision == Hold {
		return refuse(v1alpha1.ReasonNotEnoughEvidence, "%s", r.Summary)
	}
	if in.lowering() && r.Evidence.Window < day && !in.OwnersBound && !in.rollsBack() {
		return refuse(v1alpha1.ReasonNotEnoughEvidence, "%s of use is too little to lower a limit: %s are needed", ago(r.Evidence.Window), ago(day))
	}
	return pass()
}

// WorthIt refuses when nothing would change.
func WorthIt(in GuardInput) (string, string, bool) {
	if r := in.Recommendation; r.Decision == Keep || r.Size == in.Current {
		return refuse(v1alpha1.ReasonUpToDate, "limit %s and request %s are right as they are", orNone(in.Current.Limit), orNone(in.Current.Request))
	}
	return pass()
}

// revertHold is how long a size that led to kills is not tried again.
const revertHold = 7 * day

// NotJustReverted refuses to go back to a size that was rolled back within the last week.
func NotJustReverted(in GuardInput) (string, string, bool) {
	since := in.Now.Sub(in.RevertedAt)
	if !in.RevertedAt.IsZero() && since < revertHold && in.lowering() && in.Recommendation.Size.Limit <= in.RevertedFrom.Percent(110) {
		return refuse(v1alpha1.ReasonReverted, "a limit of %s was rolled back at %s after kills or restarts; not tried again until %s", in.RevertedFrom,
			in.RevertedAt.UTC().Format(time.RFC3339), in.RevertedAt.Add(revertHold).UTC().Format(time.RFC3339))
	}
	return pass()
}

// CooledDown refuses within the cool-down after a change, unless a kill asks for more or the request is below what is in use.
func CooledDown(in GuardInput) (string, string, bool) {
	cooldown := in.Policy.withDefaults().Cooldown
	// What is used beyond the request, others were promised. A pod may do so although the one that was looked at does not.
	to := in.Recommendation.Size
	here := in.RSS > in.Current.Request && to.Request > in.Current.Request && to.Limit == in.Current.Limit
	if (in.Recommendation.UseAboveRequest || here || in.rollsBack()) && !in.Restarts {
		return pass()
	}
	if next := in.LastChange.Add(cooldown); !in.LastChange.IsZero() && in.Now.Before(next) && !in.urgent() {
		return refuse(v1alpha1.ReasonCoolingDown, "last change at %s; the next one waits until %s (cooldown %s)", at(in.LastChange, in.Now), at(next, in.Now), ago(cooldown))
	}
	return pass()
}

// WithinBudget refuses when too many pods of the workload are being changed or are not ready already, or the only one would restart.
func WithinBudget(in GuardInput) (string, string, bool) {
	most := max(in.MaxUnavailable, 1)
	if busy := in.Changing + in.Unavailable; busy >= most && (in.Changing > 0 || !in.urgent()) {
		return refuse(v1alpha1.ReasonBudget, "%s of this workload under change and %d not ready: maxUnavailable is %d", plural(int64(in.Changing), "pod"), in.Unavailable, most)
	}
	if in.Restarts && in.Replicas == 1 && !in.SingleReplicaMayRestart && !in.urgent() {
		return refuse(v1alpha1.ReasonSingleReplica, "the only replica would restart: set sizing.disruption.singleReplica to Allowed to permit it")
	}
	return pass()
}

// KeepsQoS refuses a resize that would move the pod to another QoS class, which the API server does not take.
func KeepsQoS(in GuardInput) (string, string, bool) {
	size := in.Recommendation.Size
	switch {
	case in.QoS == "Guaranteed" && size.Request != size.Limit:
		return refuse(v1alpha1.ReasonQoSClass, "the pod is Guaranteed: request %s must equal limit %s (requestPolicy: EqualsLimit)", size.Request, size.Limit)
	case in.QoS == "Burstable" && in.OthersGuaranteed && size.Request == size.Limit:
		return refuse(v1alpha1.ReasonQoSClass, "the pod is Burstable: request and limit of %s would make it Guaranteed, which a resize may not", size.Limit)
	case in.QoS == "BestEffort":
		return refuse(v1alpha1.ReasonQoSClass, "the pod is BestEffort: a resize cannot give it resources; new pods get them with sizing.mode OnCreate")
	}
	return pass()
}

// WithinPod refuses a limit above that of the whole pod (spec.resources.limits.memory).
func WithinPod(in GuardInput) (string, string, bool) {
	if limit, most := in.Recommendation.Size.Limit, in.Policy.PodLimit; most > 0 && limit > most {
		return refuse(v1alpha1.ReasonPodLimit, "limit %s is above the limit of the whole pod: raise spec.resources.limits.memory, which is %s", limit, most)
	}
	return pass()
}

// WithinRange refuses a limit that the namespace's LimitRange does not allow.
func WithinRange(in GuardInput) (string, string, bool) {
	limit := in.Recommendation.Size.Limit
	switch {
	case in.RangeMax > 0 && limit > in.RangeMax:
		return refuse(v1alpha1.ReasonLimitRange, "limit %s is above the maximum of %s in LimitRange %s", limit, in.RangeMax, in.RangeName)
	case in.RangeMin > 0 && limit < in.RangeMin:
		return refuse(v1alpha1.ReasonLimitRange, "limit %s is below the minimum of %s in LimitRange %s", limit, in.RangeMin, in.RangeName)
	case in.RangeRefusal != "":
		return refuse(v1alpha1.ReasonLimitRange, "%s", in.RangeRefusal)
	}
	return pass()
}

// WithinQuota refuses a raise that would not fit the ResourceQuota once all replicas have it.
func WithinQuota(in GuardInput) (string, string, bool) {
	replicas := memory.Bytes(max(in.Replicas, 1))
	more := func(to, from memory.Bytes) memory.Bytes { return to.Minus(from) * replicas }
	size := in.Recommendation.Size
	if need := more(size.Limit, in.Current.Limit); in.QuotaLimits > 0 && need > in.QuotaLimits {
		return refuse(v1alpha1.ReasonResourceQuota, "%s more limits.memory for %s, but quota %s leaves %s", need, plural(int64(replicas), "replica"), in.QuotaName, orNothing(in.QuotaLimits))
	}
	if need := more(size.Request, in.Current.Request); in.QuotaRequests > 0 && need > in.QuotaRequests {
		return refuse(v1alpha1.ReasonResourceQuota, "%s more requests.memory for %s, but quota %s leaves %s", need, plural(int64(replicas), "replica"), in.QuotaName, orNothing(in.QuotaRequests))
	}
	return pass()
}

// orNothing: what a quota leaves below a Ki is the byte that stands for nothing.
func orNothing(left memory.Bytes) string {
	if left < memory.KiB {
		return "nothing"
	}
	return left.String()
}

// RoomToLower refuses to lower a limit onto what is used now or was used within the last day.
func RoomToLower(in GuardInput) (string, string, bool) {
	limit := in.Recommendation.Size.Limit
	if !in.lowering() {
		return pass()
	}
	if !holds(limit, in.RSS) {
		return refuse(v1alpha1.ReasonInUse, "RSS is %s right now: a limit of %s would kill it", in.RSS, limit)
	}
	if in.WindowPeak > limit {
		return refuse(v1alpha1.ReasonInUse, "use reached %s within the last day: a limit of %s would not hold it", in.WindowPeak, limit)
	}
	return pass()
}

// HeapFits refuses to lower a limit below the heap cap a process was started with: the runtime would go on filling it.
func HeapFits(in GuardInput) (string, string, bool) {
	limit := in.Recommendation.Size.Limit
	if need := in.FrozenHeap.Plus(in.NativeOverhead); in.lowering() && in.FrozenHeap > 0 && need > limit && !in.Restarts {
		kept := in.FrozenHeap.String()
		if in.NativeOverhead > 0 {
			kept += " (and needs " + in.NativeOverhead.String() + " besides)"
		}
		return refuse(v1alpha1.ReasonFrozenHeapCap, "the process keeps the heap cap of %s it started with: a limit of %s fits after its next start", kept, limit)
	}
	return pass()
}

// FitsNode refuses a request the node cannot take.
func FitsNode(in GuardInput) (string, string, bool) {
	more := in.Recommendation.Size.Request.Minus(in.Current.Request)
	switch {
	case in.NodeSize > 0 && in.Recommendation.Size.Request > in.NodeSize:
		return refuse(v1alpha1.ReasonNodeTooSmall, "request %s is more than the node's %s", in.Recommendation.Size.Request, in.NodeSize)
	case in.NodeFree > 0 && more > in.NodeFree && !in.Restarts:
		return refuse(v1alpha1.ReasonNodeFull, "the node has %s left for requests and %s more are needed", in.NodeFree, more)
	}
	return pass()
}
