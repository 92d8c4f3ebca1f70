// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/drift"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
)

// The right to evict is not in the manager's role but in config/rbac/evict-pods, a component for users whose profiles
// have drift.action: Restart or sizing.mode: InPlaceOrEvict.

// How long a refusal of the API server is valid before memfit asks again.
const (
	afterBudget    = time.Minute      // a PodDisruptionBudget: replicas come and go
	afterForbidden = 10 * time.Minute // the right was taken away
)

// refusal is an eviction that the API server did not want.
type refusal struct {
	until time.Time
	why   string
}

// endangered is the pod that should be restarted for its memory; nil: none, or the profile does not ask for restarts.
func endangered(s *Snapshot, pods []rollout.Pod, shapes map[string]shape.Shape) *rollout.Candidate {
	if s.Profile.Spec.Drift.Action != v1alpha1.DriftRestart {
		return nil
	}
	return drift.Endangered(pods, shapes)
}

// restartPolicy is what the profile allows of such restarts, and what was done recently.
func (st *State) restartPolicy(s *Snapshot, now time.Time) rollout.RestartPolicy {
	spec := s.Profile.Drift()
	p := rollout.RestartPolicy{
		MaxPerDay: int(*spec.MaxPerDay), MinReplicas: int(*spec.MinReplicas),
		Cooldown: s.Profile.Disruption().Cooldown.Duration, Done: st.restarts.Restarts(now),
	}
	if now.Before(st.restartRefused.until) {
		p.Refused = st.restartRefused.why
	}
	return p
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
