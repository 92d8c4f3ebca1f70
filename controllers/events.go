// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/apply"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/quote"
)

// workloadEvent is one event, built by the functions below and written by tell. The note never is a format.
type workloadEvent struct {
	regarding, related   runtime.Object
	kind, reason, action string
	note                 string
}

// maxNote is what the API takes in a note, in bytes.
const maxNote = 1024

func (r *WorkloadReconciler) recordEvents(all []workloadEvent) {
	for i := range all {
		r.recordEvent(all[i])
	}
}

func (r *WorkloadReconciler) recordEvent(e workloadEvent) {
	if r.Recorder == nil {
		return
	}
	r.Recorder.Eventf(e.regarding, e.related, e.kind, e.reason, e.action, "%s", quote.Cut(e.note, maxNote))
}

// news are the events about what happened.
func news(s *snapshot, v *result, kills []memory.OOMKill, stalls stallChanges) (all []workloadEvent) {
	summaries := v.summaries()
	for i := range kills {
		all = append(all, oomKilledPod(s.owner, &kills[i]), oomKilledWorkload(s.owner, &kills[i], summaries[kills[i].Container.Container]))
	}
	all = append(all, stallEvents(s.owner, stalls, summaries)...)
	for _, f := range v.findings {
		all = append(all, foundOnWorkload(s.owner, f), foundOnPod(s.owner, f))
	}
	return all
}

// changes are the events about what is otherwise than it was told last, and what is told then.
func changes(s *snapshot, m *state, v *result) (all []workloadEvent, now told) {
	summaries := v.summaries()
	all = m.shapeEvents(s, v, &now)
	for _, c := range v.changed {
		all = append(all, recommendationChanged(s.owner, c, summaries[c]))
	}
	now.outOfDate = v.coverage.Missed + v.coverage.Stale
	if now.outOfDate > 0 && m.told.outOfDate == 0 {
		all = append(all, injectionOutOfDate(s.owner, ofPods(now.outOfDate, v.coverage.Governed)+" run without what profile "+s.profile.Ref.Name+" sets today; "+v.coverage.outOfDate))
	}
	full := ledgerFull(&m.ledger)
	if now.ledgerFull = full != ""; now.ledgerFull && !m.told.ledgerFull {
		all = append(all, ledgerIsFull(s.owner, full))
	}
	conflict := inConflict(&v.status)
	if now.conflicted = conflict != ""; now.conflicted && !m.told.conflicted {
		all = append(all, conflictAppeared(s, conflict))
	}
	return all, now
}

// summaries are what is made of each container, by name.
func (v *result) summaries() map[string]string {
	all := maps.Clone(v.unnamed)
	if all == nil {
		all = map[string]string{}
	}
	for i := range v.status.Containers {
		all[v.status.Containers[i].Container] = v.status.Containers[i].Summary
	}
	return all
}

// workloadObject refers to the workload. With its UID the event shows in kubectl describe.
func workloadObject(o memory.Workload) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: o.Ref.APIVersion, Kind: o.Ref.Kind, Namespace: o.Ref.Namespace, Name: o.Ref.Name, UID: o.UID}
}

func podObject(c memory.ContainerRef) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: c.Namespace, Name: c.Pod, UID: c.UID}
}

// oomKilledPod tells the pod's story: Kubernetes itself writes no event when a container is killed for its memory (k/k#69676).
func oomKilledPod(o memory.Workload, k *memory.OOMKill) workloadEvent {
	return workloadEvent{regarding: podObject(k.Container), related: workloadObject(o), kind: corev1.EventTypeWarning, reason: killReason(k), action: "Observed", note: killSentence(k)}
}

// killReason: where no kernel killed, the event does not say so.
func killReason(k *memory.OOMKill) string {
	if k.Kind == memory.OOMHeapAbort {
		return v1alpha1.EventHeapExhausted
	}
	return v1alpha1.EventOOMKilled
}

func oomKilledWorkload(o memory.Workload, k *memory.OOMKill, summary string) workloadEvent {
	note := fmt.Sprintf("Pod %s: %s", k.Container.Pod, killSentence(k))
	if summary != "" {
		note += ". " + summary
	}
	return workloadEvent{regarding: workloadObject(o), related: podObject(k.Container), kind: corev1.EventTypeWarning, reason: killReason(k), action: "Observed", note: note}
}

func recommendationChanged(o memory.Workload, container, summary string) workloadEvent {
	return workloadEvent{
		regarding: workloadObject(o), kind: corev1.EventTypeNormal, reason: "RecommendationChanged", action: "Recommended",
		note: fmt.Sprintf("Container %s: %s", container, summary),
	}
}

func injectionOutOfDate(o memory.Workload, message string) workloadEvent {
	return workloadEvent{
		regarding: workloadObject(o), kind: corev1.EventTypeWarning, reason: "InjectionOutOfDate", action: "Compared",
		note: message + ". New pods get it: " + restartHint(o.Ref),
	}
}

func driftDetected(o memory.Workload, message string) workloadEvent {
	return workloadEvent{regarding: workloadObject(o), kind: corev1.EventTypeWarning, reason: "DriftDetected", action: "Observed", note: message}
}

// sickReplica is told on the pod; the workload's story is the condition's.
func sickReplica(o memory.Workload, pod *corev1.Pod, sentence string) workloadEvent {
	return workloadEvent{regarding: podReference(pod), related: workloadObject(o), kind: corev1.EventTypeWarning, reason: "SickReplica", action: "Compared", note: sentence}
}

// podReference names a pod from the cache, which has no kind.
func podReference(pod *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

func restartedPod(o memory.Workload, pod *corev1.Pod, why string) workloadEvent {
	return workloadEvent{
		regarding: podReference(pod), related: workloadObject(o), kind: corev1.EventTypeNormal, reason: "RestartedForMemory", action: "Evicted",
		note: "Evicted before the kernel kills it (drift.action: Restart): " + why,
	}
}

func restartedWorkload(o memory.Workload, pod *corev1.Pod, why string) workloadEvent {
	return workloadEvent{
		regarding: workloadObject(o), related: podReference(pod), kind: corev1.EventTypeNormal, reason: "RestartedForMemory", action: "Evicted",
		note: "Pod " + pod.Name + " was evicted before the kernel kills it (drift.action: Restart): " + why,
	}
}

// changedPod is told on the pod when the API server took a change; what the kubelet makes of it comes later.
func changedPod(o memory.Workload, pod *corev1.Pod, a apply.Action) workloadEvent {
	e := workloadEvent{regarding: podReference(pod), related: workloadObject(o), kind: corev1.EventTypeNormal, reason: "Resizing", action: "Resized", note: "Resizing in place: " + a.Why}
	switch {
	case a.Evict:
		e.reason, e.action, e.note = "EvictedForResize", "Evicted", "Evicted so that its successor gets another size, which this pod cannot get in place: "+a.Why
	case a.Undo:
		e.note = "Taking back a resize that did not come about: " + a.Why
	}
	return e
}

func refusedPod(o memory.Workload, pod *corev1.Pod, a apply.Action, why string) workloadEvent {
	return workloadEvent{
		regarding: workloadObject(o), related: podReference(pod), kind: corev1.EventTypeWarning, reason: "ResizeRefused", action: "Resized",
		note: "Pod " + pod.Name + ": " + a.Why + ": " + why,
	}
}

// foundOnWorkload and foundOnPod tell what became of a change, in both places where people look.
func foundOnWorkload(o memory.Workload, f apply.Finding) workloadEvent {
	e := foundOnPod(o, f)
	e.regarding, e.related = e.related, e.regarding
	e.note = "Pod " + f.Pod + ": " + f.Message
	return e
}

func foundOnPod(o memory.Workload, f apply.Finding) workloadEvent {
	kind := corev1.EventTypeWarning
	if f.Kind == apply.Resized || f.Kind == apply.Replaced {
		kind = corev1.EventTypeNormal
	}
	return workloadEvent{
		regarding: &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: o.Ref.Namespace, Name: f.Pod, UID: f.UID},
		related:   workloadObject(o), kind: kind, reason: string(f.Kind), action: "Observed", note: f.Message,
	}
}

func profileProblem(o memory.Workload, problem profile.Problem, why string) workloadEvent {
	return workloadEvent{regarding: workloadObject(o), kind: corev1.EventTypeWarning, reason: "Profile" + string(problem), action: "Decided", note: why}
}

// conflictAppeared is a warning where memfit would change pods, and a hint where it only recommends anyway.
func conflictAppeared(s *snapshot, message string) workloadEvent {
	kind := corev1.EventTypeWarning
	if mode := s.profile.Spec.Sizing.Mode; mode == "" || mode == v1alpha1.SizingRecommend {
		kind = corev1.EventTypeNormal
	}
	return workloadEvent{regarding: workloadObject(s.owner), kind: kind, reason: v1alpha1.ReasonConflict, action: "Compared", note: message}
}

func ledgerIsFull(o memory.Workload, message string) workloadEvent {
	return workloadEvent{regarding: workloadObject(o), kind: corev1.EventTypeWarning, reason: v1alpha1.ReasonLedgerFull, action: "Counted", note: message}
}

// restartHint is how the workload's pods are replaced, where something does.
func restartHint(w memory.WorkloadRef) string {
	switch w.Kind {
	case "Deployment", "StatefulSet", "DaemonSet":
		return fmt.Sprintf("restart the workload when it suits you (kubectl -n %s rollout restart %s/%s)", w.Namespace, kindArg(w.Kind), w.Name)
	case "Job", "CronJob":
		return "the next run has it"
	case "Pod":
		return "nothing replaces a bare Pod, so delete it and create it again when it suits you"
	default:
		return "delete its pods one by one when it suits you"
	}
}

func kindArg(kind string) string {
	return map[string]string{"Deployment": "deployment", "StatefulSet": "statefulset", "DaemonSet": "daemonset"}[kind]
}

// killSentence says what happened in one line: "Container app was OOM killed at its limit of 256Mi (peak RSS 251Mi, up 4m10s): OOMKilled, exit 137, restart 4".
func killSentence(k *memory.OOMKill) string {
	s := "Container " + k.Container.Container + " " + killVerb(k)
	var facts []string
	if k.Peak > 0 {
		facts = append(facts, "peak RSS "+k.Peak.String())
	}
	if k.Uptime > 0 {
		facts = append(facts, "up "+duration(k.Uptime))
	}
	if len(facts) > 0 {
		s += " (" + join(facts) + ")"
	}
	if k.Evidence != "" {
		s += ": " + k.Evidence
	}
	return s
}

// under is the limit that a heap cap stood under.
func under(k *memory.OOMKill) string {
	if k.Limit == 0 {
		return ""
	}
	return " (heap cap, under a limit of " + k.Limit.String() + ")"
}

func killVerb(k *memory.OOMKill) string {
	at := ""
	if k.Limit > 0 {
		at = " at its limit of " + k.Limit.String()
	}
	if k.Asked > 0 {
		at += " (the pod asks for " + k.Asked.String() + ", which was not effective)"
	}
	switch k.Kind {
	case memory.OOMChildProcess:
		return "lost a child process to the OOM killer" + at
	case memory.OOMAtStart:
		return "was OOM killed while starting" + at
	case memory.OOMHeapAbort:
		return "gave up because its runtime's own heap was full" + under(k)
	case memory.OOMPodLimit:
		return "was OOM killed at the pod's limit"
	case memory.OOMSuspected:
		return "was probably OOM killed" + at
	default:
		return "was OOM killed" + at
	}
}
