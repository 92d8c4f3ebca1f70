// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
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

// Event is one Event, which the reconciler writes. Note is not a format string.
type Event struct {
	// Regarding is the object of the Event. Related is another object; nil: none.
	Regarding, Related         *corev1.ObjectReference
	Kind, Reason, Action, Note string
	// OnRelated is the note of a second Event with Regarding and Related exchanged; empty: no second Event.
	OnRelated string
	Container string    // empty: the Event is about the pod or the workload
	At        time.Time // zero: now
	// ID distinguishes Events with the same reason, objects and At; empty: Note does. The reconciler writes an Event with
	// the same At and ID only once.
	ID string
}

// replayed is the age up to which a new process reports kills and rollbacks again, because an earlier process may have
// ended between its checkpoint and its Events.
const replayed = 2 * time.Minute

// newEvents returns the Events about kills, stalls, rollbacks and findings.
func newEvents(s *Snapshot, v *result, kills, explained []memory.OOMKill, stalls stallChanges) (all []Event) {
	summaries := v.summaries()
	for i := range kills {
		all = append(all, oomKilledEvent(s, &kills[i], summaries[kills[i].Container.Container]))
	}
	for i := range explained {
		all = append(all, killExplainedEvent(s, &explained[i]))
	}
	all = append(all, stallEvents(s, stalls, summaries)...)
	for _, f := range slices.Concat(v.rolledBack, v.findings) {
		all = append(all, outcomeEvent(s.Owner, f))
	}
	return all
}

// changeEvents returns the Events about changes since the last step, and the state that Events have reported then.
func changeEvents(s *Snapshot, st *State, v *result) (all []Event, now announced) {
	all = st.shapeEvents(s, v, &now)
	for i := range v.status.Containers {
		name := v.status.Containers[i].Container
		if size, found := v.recommended[name]; found && !nearlyEqual(size, st.Published[name].Size) {
			e := workloadEvent(s.Owner, corev1.EventTypeNormal, v1alpha1.EventRecommendationChanged, "Recommended",
				"Container "+name+": "+v.status.Containers[i].Summary)
			e.Container = name
			all = append(all, e)
		}
	}
	outOfDate := v.coverage.Missed + v.coverage.Stale
	if now.OutOfDate = outOfDate > 0; now.OutOfDate && !st.OutOfDate {
		next := "New pods get them: " + restartHint(s)
		if s.NoWebhook {
			next = NoWebhook("tuning.mode: DryRun")
		}
		note := fmt.Sprintf("%s run without the current settings of profile %s; %s. %s",
			format.OfPods(outOfDate, v.coverage.Governed), s.Profile.Ref.Name, v.coverage.outOfDate, next)
		all = append(all, workloadEvent(s.Owner, corev1.EventTypeWarning, v1alpha1.EventInjectionOutOfDate, "Compared", note))
	}
	full := ledgerFull(&st.ledger)
	if now.LedgerFull = full != ""; now.LedgerFull && !st.LedgerFull {
		all = append(all, workloadEvent(s.Owner, corev1.EventTypeWarning, v1alpha1.ReasonLedgerFull, "Counted", full))
	}
	conflict := InConflict(&v.status)
	if now.Conflicted = conflict != ""; now.Conflicted && !st.Conflicted {
		kind := corev1.EventTypeWarning
		if mode := s.Profile.Spec.Sizing.Mode; mode == "" || mode == v1alpha1.SizingRecommend {
			kind = corev1.EventTypeNormal // memfit would not change pods anyway
		}
		all = append(all, workloadEvent(s.Owner, kind, v1alpha1.ReasonConflict, "Compared", conflict))
	}
	return all, now
}

// WorkloadObject returns a reference to the workload or, for an identity, to its MemoryRecommendation.
func WorkloadObject(o memory.Workload) *corev1.ObjectReference {
	if identity.IsIdentity(o.Ref) {
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

// containerEvent returns an Event about a container, on its pod and, with the summary, on its workload.
func containerEvent(s *Snapshot, c memory.ContainerRef, kind, reason, note, summary string) Event {
	e := podEvent(s.Owner, containerObject(s, c), kind, reason, "Observed", note)
	e.Container, e.OnRelated = c.Container, "Pod "+c.Pod+": "+note
	if summary != "" {
		e.OnRelated += ". " + summary
	}
	return e
}

// oomKilledEvent returns the Event of a kill on the pod and on the workload. Kubernetes itself writes no such Event
// (k/k#69676).
func oomKilledEvent(s *Snapshot, k *memory.OOMKill, summary string) Event {
	reason := v1alpha1.EventOOMKilled
	if k.Kind == memory.OOMHeapAbort { // not a kill by the kernel
		reason = v1alpha1.EventHeapExhausted
	}
	e := containerEvent(s, k.Container, corev1.EventTypeWarning, reason, report.Kill(k), summary)
	e.At, e.ID = k.Seen, fmt.Sprintf("%s %d %s", k.Kind, k.Time.Unix(), k.Why)
	return e
}

// killExplainedEvent returns the Event of an agent's record of an earlier kill.
func killExplainedEvent(s *Snapshot, k *memory.OOMKill) Event {
	note := fmt.Sprintf("Container %s %s at %s: %s", k.Container.Container, report.KillVerb(k), format.Time(k.Time),
		k.Account)
	return containerEvent(s, k.Container, corev1.EventTypeNormal, v1alpha1.EventOOMKillExplained, note, "")
}

func workloadEvent(o memory.Workload, kind, reason, action, note string) Event {
	return Event{Regarding: WorkloadObject(o), Kind: kind, Reason: reason, Action: action, Note: note}
}

func podEvent(o memory.Workload, pod *corev1.ObjectReference, kind, reason, action, note string) Event {
	return Event{Regarding: pod, Related: WorkloadObject(o), Kind: kind, Reason: reason, Action: action, Note: note}
}

// podReference returns a reference to a pod. Cached pods have no apiVersion and kind.
func podReference(pod *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// Restarted returns the Event of an eviction of a pod for its memory use, on the pod and on its workload.
func Restarted(o memory.Workload, pod *corev1.Pod, why string) Event {
	why = "to prevent an OOM kill (drift.action: Restart): " + why
	const reason = v1alpha1.EventRestartedForMemory
	e := podEvent(o, podReference(pod), corev1.EventTypeNormal, reason, "Evicted", "Evicted "+why)
	e.OnRelated = "Pod " + pod.Name + " was evicted " + why
	return e
}

// ChangedPod returns an Event of the pod after the API server accepted a change. A later Event reports the result.
func ChangedPod(o memory.Workload, pod *corev1.Pod, a rollout.Action) Event {
	reason, action, note := v1alpha1.EventResizing, "Resized", "Resizing in place: "
	switch {
	case a.Evict:
		reason, action = v1alpha1.EventEvictedForResize, "Evicted"
		note = "Evicted: the new size cannot be applied in place: "
	case a.Undo:
		note = "Rolling back a resize that did not take effect: "
	}
	return podEvent(o, podReference(pod), corev1.EventTypeNormal, reason, action, note+a.Why)
}

// RefusedPod returns an Event of the workload after the API server refused a change of a pod.
func RefusedPod(o memory.Workload, pod *corev1.Pod, a rollout.Action, why string) Event {
	e := workloadEvent(o, corev1.EventTypeWarning, v1alpha1.EventResizeRefused, "Resized",
		"Pod "+pod.Name+": "+a.Why+": "+why)
	e.Related = podReference(pod)
	return e
}

// outcomeEvent returns the Event of the outcome of a change, on the pod and on its workload.
func outcomeEvent(o memory.Workload, f rollout.Finding) Event {
	kind := corev1.EventTypeWarning
	if f.Kind == rollout.Resized || f.Kind == rollout.Replaced || f.Kind == rollout.Returned {
		kind = corev1.EventTypeNormal
	}
	pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: o.Ref.Namespace, Name: f.Pod, UID: f.UID}
	e := podEvent(o, pod, kind, string(f.Kind), "Observed", f.Message)
	e.OnRelated, e.At, e.ID = "Pod "+f.Pod+": "+f.Message, f.At, f.ID
	return e
}

// MemoryLoaned returns the Event of a loan, on the pod and on its workload.
func MemoryLoaned(o memory.Workload, pod *corev1.Pod, container, note string) Event {
	return rescueEvent(o, pod, container, note, corev1.EventTypeNormal, v1alpha1.EventMemoryLoaned)
}

// OOMExpected returns the Event that a container is about to be OOM-killed and gets no loan, on the pod and on its
// workload.
func OOMExpected(o memory.Workload, pod *corev1.Pod, container, note string) Event {
	return rescueEvent(o, pod, container, note, corev1.EventTypeWarning, v1alpha1.EventOOMExpected)
}

func rescueEvent(o memory.Workload, pod *corev1.Pod, container, note, kind, reason string) Event {
	e := podEvent(o, podReference(pod), kind, reason, "Rescued", sentenceCase(note))
	e.Container, e.OnRelated = container, "Pod "+pod.Name+": "+note
	return e
}

// Stalled returns the Event that reconciles of a workload fail.
func Stalled(o memory.Workload, reason, why string) Event {
	return workloadEvent(o, corev1.EventTypeWarning, reason, "Observed", why)
}

// ProfileProblem returns an Event of a workload whose requested profile is unavailable.
func ProfileProblem(o memory.Workload, problem profile.Problem, why string) Event {
	return workloadEvent(o, corev1.EventTypeWarning, problem.EventReason(), "Decided", why)
}

// PodsNotCreated returns the Event that the webhook leaves new pods of a workload unchanged.
func PodsNotCreated(o memory.Workload, note string) Event {
	return workloadEvent(o, corev1.EventTypeWarning, v1alpha1.EventPodsNotCreated, "Admitted", note)
}

// restartHint returns what users can do to replace the workload's pods.
func restartHint(s *Snapshot) string {
	w := s.Owner.Ref
	switch k, found := workloadkind.Of(w.APIVersion, w.Kind); {
	case found && k.Restarts:
		return fmt.Sprintf("restart the workload at a convenient time (kubectl -n %s rollout restart %s)", w.Namespace,
			workloadkind.Typed(w.Kind, w.Name))
	case !kindOf(w).Recreates:
		return "nothing replaces a bare Pod, so delete it and create it again at a convenient time"
	case s.isRun(s.Template):
		return "the next run gets the change"
	}
	return "delete its pods one by one at a convenient time"
}

func kindOf(w memory.WorkloadRef) workloadkind.Kind { return workloadkind.Like(w.APIVersion, w.Kind) }
