// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/rollout"
)

// Disturbs reports whether an action keeps a pod from serving that serves now.
func Disturbs(pod *corev1.Pod, a rollout.Action) bool {
	restarts := func(c corev1.Container) bool {
		_, asked := a.Sizes[c.Name]
		return asked && oom.RestartsOnResize(&c)
	}
	some := slices.ContainsFunc(pod.Spec.Containers, restarts) || slices.ContainsFunc(pod.Spec.InitContainers, restarts)
	return serves(pod) && (a.Evict || a.Restart || !a.Undo && some)
}

// TooFewServe says why no other pod than those that are being changed already may be kept from serving; empty: one may
// be. wanted is how many pods there are to be; 0: nobody says, and it is those that there are, also where no node has
// taken them.
func (st *State) TooFewServe(s *Snapshot, a rollout.Action, wanted int) string {
	serving := 0
	for _, pod := range s.Pods {
		other, changing := st.rollout.UnderWay(pod.UID)
		if serves(pod) && (pod.UID == a.UID || !changing || !Disturbs(pod, other)) {
			serving++
		}
	}
	if wanted == 0 {
		wanted = living(s)
	}
	return rollout.TooFew(wanted, serving, rolloutPolicy(s, wanted))
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

func serves(pod *corev1.Pod) bool { return ready(pod) && pod.DeletionTimestamp == nil && !ended(pod) }
