// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
)

// Loans are those of the workload's pods that last, and those of the last hour.
func (st *State) Loans() []rollout.Loan { return slices.Clone(st.rollout.Loans) }

// Lend writes down a loan before it is sent. budget: it counts against the change budget of the cluster.
func (st *State) Lend(l rollout.Loan, why string, budget bool) { st.rollout.Lend(l, why, budget) }

// NotLent forgets a loan that was not sent.
func (st *State) NotLent(uid types.UID, container string, sequence int64) {
	st.rollout.NotLent(uid, container, sequence)
}

// ProgramOf is what a container runs; empty: unknown.
func (st *State) ProgramOf(c memory.ContainerRef) string { return st.programOfKill(c) }

// MemoryLoaned reports a loan, on the pod and on its workload.
func MemoryLoaned(o memory.Workload, pod *corev1.Pod, container, note string) Event {
	return aboutRescue(o, pod, container, note, corev1.EventTypeNormal, v1alpha1.EventMemoryLoaned)
}

// OOMExpected reports that a container is about to be OOM-killed and gets no loan, on the pod and on its workload.
func OOMExpected(o memory.Workload, pod *corev1.Pod, container, note string) Event {
	return aboutRescue(o, pod, container, note, corev1.EventTypeWarning, v1alpha1.EventOOMExpected)
}

func aboutRescue(o memory.Workload, pod *corev1.Pod, container, note, kind, reason string) Event {
	return Event{
		Regarding: podReference(pod), Related: WorkloadObject(o), Kind: kind, Reason: reason, Action: "Rescued",
		Container: container, Note: "Container " + container + ": " + note,
		OnRelated: "Pod " + pod.Name + ", container " + container + ": " + note,
	}
}
