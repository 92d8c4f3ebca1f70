// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/rollout"
)

// Disturbs reports whether an action keeps a pod from serving that serves now.
func Disturbs(pod *corev1.Pod, a rollout.Action) bool {
	restarts := false
	for c := range containersIn(&pod.Spec) {
		_, asked := a.Sizes[c.Name]
		restarts = restarts || asked && oom.RestartsOnResize(c)
	}
	return serves(pod) && (a.Evict || !a.Undo && restarts)
}

// TooFewServe returns why no other pod than those that are being changed already may be kept from serving; empty: one
// may be. wanted is how many pods there should be; 0: unknown, and all that have not ended count, those without a node
// too.
func (st *State) TooFewServe(s *Snapshot, a rollout.Action, wanted int) string {
	var pods []rollout.Pod
	for _, pod := range s.Pods {
		if ended(pod) {
			continue
		}
		p := rollout.Pod{UID: pod.UID, Ready: ready(pod), Leaving: pod.DeletionTimestamp != nil}
		for c := range containersIn(&pod.Spec) {
			p.Containers = append(p.Containers, rollout.Container{Name: c.Name, RestartsOnResize: oom.RestartsOnResize(c)})
		}
		pods = append(pods, p)
	}
	wanted = cmp.Or(wanted, living(s))
	return st.rollout.Availability(pods, wanted, a.UID).TooFew(rolloutPolicy(s, wanted).MaxUnavailable)
}

// living counts the pods that exist and are not on their way out, with or without a node.
func living(s *Snapshot) int {
	count := 0
	for _, pod := range s.Pods {
		if pod.DeletionTimestamp == nil && !ended(pod) {
			count++
		}
	}
	return count
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func serves(pod *corev1.Pod) bool { return ready(pod) && pod.DeletionTimestamp == nil && !ended(pod) }
