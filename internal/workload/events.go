// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/report"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Event is one Event to write. The functions below build it, and the reconciler writes it. The note is never a format.
type Event struct {
	// Regarding is the object of the Event, Related another one; nil: none.
	Regarding, Related   *corev1.ObjectReference
	Kind, Reason, Action string
	Note                 string
	// OnRelated is the note of a second Event with Regarding and Related exchanged; empty: none.
	OnRelated string
	// Container is its container; empty: the pod or the workload.
	Container string
	// At is when it happened; zero: now. ID distinguishes it from others of its reason, objects and time; empty: Note
	// does. A repeated Event with equal At and ID is not written twice.
	At time.Time
	ID string
}

// replayed is the age of kills that a new process reports again, in case an earlier process ended between its
// checkpoint and its Events. Existing Events are not written twice.
const replayed = 2 * time.Minute

// news returns the Events about what happened.
func news(s *Snapshot, v *result, kills, explained []memory.OOMKill, stalls stallChanges) (all []Event) {
	summaries := v.summaries()
	for i := range kills {
		all = append(all, oomKilled(s, &kills[i], summaries[kills[i].Container.Container]))
	}
	for i := range explained {
		all = append(all, killExplained(s, &explained[i]))
	}
	all = append(all, stallEvents(s, stalls, summaries)...)
	for _, f := range v.findings {
		all = append(all, found(s.Owner, f))
	}
	return all
}

// changes returns the Events about differences from the last reports, and the new state of reports.
func changes(s *Snapshot, st *State, v *result) (all []Event, now announced) {
	summaries := v.summaries()
	all = st.shapeEvents(s, v, &now)
	for _, c := range v.changed {
		e := ofWorkload(s.Owner, corev1.EventTypeNormal, v1alpha1.EventRecommendationChanged, "Recommended",
			fmt.Sprintf("Container %s: %s", c, summaries[c]))
		e.Container = c
		all = append(all, e)
	}
	outOfDate := v.coverage.Missed + v.coverage.Stale
	if now.OutOfDate = outOfDate > 0; now.OutOfDate && !st.OutOfDate {
		next := "New pods get it: " + restartHint(s)
		if s.NoWebhook {
			next = NoWebhook("tuning.mode: DryRun")
		}
		note := fmt.Sprintf("%s run without the current settings of profile %s; %s. %s",
			format.OfPods(outOfDate, v.coverage.Governed), s.Profile.Ref.Name, v.coverage.outOfDate, next)
		all = append(all, ofWorkload(s.Owner, corev1.EventTypeWarning, v1alpha1.EventInjectionOutOfDate, "Compared", note))
	}
	full := ledgerFull(&st.ledger)
	if now.LedgerFull = full != ""; now.LedgerFull && !st.LedgerFull {
		all = append(all, ofWorkload(s.Owner, corev1.EventTypeWarning, v1alpha1.ReasonLedgerFull, "Counted", full))
	}
	conflict := InConflict(&v.status)
	if now.Conflicted = conflict != ""; now.Conflicted && !st.Conflicted {
		all = append(all, conflictAppeared(s, conflict))
	}
	return all, now
}

// WorkloadObject returns a reference to the workload, with its UID for kubectl describe. For an identity, which is not
// an object, it is the MemoryRecommendation.
func WorkloadObject(o memory.Workload) *corev1.ObjectReference {
	if identity.Is(o.Ref) {
		return &corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemoryRecommendation", Namespace: o.Ref.Namespace,
			Name: o.Ref.Name,
		}
	}
	return &corev1.ObjectReference{
		APIVersion: o.Ref.APIVersion, Kind: o.Ref.Kind, Namespace: o.Ref.Namespace, Name: o.Ref.Name, UID: o.UID,
	}
}

// containerObject returns a reference to a container of a pod, as in the kubelet's Events.
func containerObject(s *Snapshot, c memory.ContainerRef) *corev1.ObjectReference {
	list, pod := "containers", s.Pod(c.UID)
	if pod == nil {
		pod = s.Template
	}
	if pod != nil && isInit(pod, c.Container) {
		list = "initContainers"
	}
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: c.Namespace, Name: c.Pod, UID: c.UID,
		FieldPath: fmt.Sprintf("spec.%s{%s}", list, c.Container),
	}
}

// ofContainer returns an Event about a container of a pod and, with a summary, one about its workload.
func ofContainer(s *Snapshot, c memory.ContainerRef, kind, reason, note, summary string) Event {
	e := Event{
		Regarding: containerObject(s, c), Related: WorkloadObject(s.Owner), Container: c.Container, Kind: kind,
		Reason: reason, Action: "Observed", Note: note, OnRelated: "Pod " + c.Pod + ": " + note,
	}
	if summary != "" {
		e.OnRelated += ". " + summary
	}
	return e
}

// oomKilled reports a kill on the pod, where Kubernetes itself writes no Event about it (k/k#69676), and on the
// workload with what memfit recommends.
func oomKilled(s *Snapshot, k *memory.OOMKill, summary string) Event {
	e := ofContainer(s, k.Container, corev1.EventTypeWarning, killReason(k), report.Kill(k), summary)
	e.At, e.ID = k.Seen, fmt.Sprintf("%s %d %s", k.Kind, k.Time.Unix(), k.Why)
	return e
}

// killReason returns the reason of the Event: a full heap is not a kill by the kernel.
func killReason(k *memory.OOMKill) string {
	if k.Kind == memory.OOMHeapAbort {
		return v1alpha1.EventHeapExhausted
	}
	return v1alpha1.EventOOMKilled
}

// killExplained reports an agent's record of a kill that was reported before without it.
func killExplained(s *Snapshot, k *memory.OOMKill) Event {
	return ofContainer(s, k.Container, corev1.EventTypeNormal, v1alpha1.EventOOMKillExplained, fmt.Sprintf(
		"Container %s %s at %s: %s", k.Container.Container, report.KillVerb(k), format.Time(k.Time), k.Account,
	), "")
}

// ofWorkload returns an Event about the workload.
func ofWorkload(o memory.Workload, kind, reason, action, note string) Event {
	return Event{Regarding: WorkloadObject(o), Kind: kind, Reason: reason, Action: action, Note: note}
}

// outlierReplica returns an Event of the pod; the workload has the condition DriftDetected.
func outlierReplica(o memory.Workload, pod *corev1.Pod, sentence string) Event {
	return Event{
		Regarding: podReference(pod), Related: WorkloadObject(o), Kind: corev1.EventTypeWarning,
		Reason: v1alpha1.ReasonOutlierReplica, Action: "Compared", Note: sentence,
	}
}

// podReference returns a reference to a cached pod, which has no kind.
func podReference(pod *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// Restarted reports the eviction of a pod for its memory, on the pod and on its workload.
func Restarted(o memory.Workload, pod *corev1.Pod, why string) Event {
	return Event{
		Regarding: podReference(pod), Related: WorkloadObject(o), Kind: corev1.EventTypeNormal,
		Reason: v1alpha1.EventRestartedForMemory, Action: "Evicted",
		Note:      "Evicted to prevent an OOM kill (drift.action: Restart): " + why,
		OnRelated: "Pod " + pod.Name + " was evicted to prevent an OOM kill (drift.action: Restart): " + why,
	}
}

// ChangedPod returns an Event of the pod after the API server accepted a change; the kubelet's result follows later.
func ChangedPod(o memory.Workload, pod *corev1.Pod, a rollout.Action) Event {
	e := Event{
		Regarding: podReference(pod), Related: WorkloadObject(o), Kind: corev1.EventTypeNormal,
		Reason: v1alpha1.EventResizing, Action: "Resized", Note: "Resizing in place: " + a.Why,
	}
	switch {
	case a.Evict:
		e.Reason, e.Action = v1alpha1.EventEvictedForResize, "Evicted"
		e.Note = "Evicted: the new size cannot be applied in place: " + a.Why
	case a.Undo:
		e.Note = "Rolling back a resize that did not take effect: " + a.Why
	}
	return e
}

// RefusedPod returns an Event of the workload after the API server refused a change of a pod.
func RefusedPod(o memory.Workload, pod *corev1.Pod, a rollout.Action, why string) Event {
	return Event{
		Regarding: WorkloadObject(o), Related: podReference(pod), Kind: corev1.EventTypeWarning,
		Reason: v1alpha1.EventResizeRefused, Action: "Resized",
		Note: "Pod " + pod.Name + ": " + a.Why + ": " + why,
	}
}

// found reports the outcome of a change, on the pod and on its workload.
func found(o memory.Workload, f rollout.Finding) Event {
	kind := corev1.EventTypeWarning
	if f.Kind == rollout.Resized || f.Kind == rollout.Replaced || f.Kind == rollout.Returned {
		kind = corev1.EventTypeNormal
	}
	return Event{
		Regarding: &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: o.Ref.Namespace, Name: f.Pod, UID: f.UID,
		},
		Related: WorkloadObject(o), Kind: kind, Reason: string(f.Kind), Action: "Observed", Note: f.Message,
		OnRelated: "Pod " + f.Pod + ": " + f.Message,
	}
}

// ProfileProblem returns an Event of a workload whose requested profile is unavailable.
func ProfileProblem(o memory.Workload, problem profile.Problem, why string) Event {
	return ofWorkload(o, corev1.EventTypeWarning, problem.EventReason(), "Decided", why)
}

// PodsNotCreated returns the Event that the webhook leaves new pods of a workload unchanged.
func PodsNotCreated(o memory.Workload, note string) Event {
	return ofWorkload(o, corev1.EventTypeWarning, v1alpha1.EventPodsNotCreated, "Admitted", note)
}

// conflictAppeared returns a warning if memfit would change pods, otherwise a hint.
func conflictAppeared(s *Snapshot, message string) Event {
	kind := corev1.EventTypeWarning
	if mode := s.Profile.Spec.Sizing.Mode; mode == "" || mode == v1alpha1.SizingRecommend {
		kind = corev1.EventTypeNormal
	}
	return ofWorkload(s.Owner, kind, v1alpha1.ReasonConflict, "Compared", message)
}

// restartHint returns how to replace the workload's pods.
func restartHint(s *Snapshot) string {
	w := s.Owner.Ref
	if k, found := workloadkind.Of(w.APIVersion, w.Kind); found && k.Restarts {
		return fmt.Sprintf(
			"restart the workload at a convenient time (kubectl -n %s rollout restart %s)", w.Namespace,
			workloadkind.Typed(w.Kind, w.Name),
		)
	}
	switch {
	case !kindOf(w).Recreates:
		return "nothing replaces a bare Pod, so delete it and create it again at a convenient time"
	case s.isRun(s.Template):
		return "the next run has it"
	default:
		return "delete its pods one by one at a convenient time"
	}
}

func kindOf(w memory.WorkloadRef) workloadkind.Kind { return workloadkind.Like(w.APIVersion, w.Kind) }
