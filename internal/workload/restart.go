// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/drift"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/shape"
)

// The right to evict is not in the manager's role but in config/rbac/evict-pods, a component for those whose profiles
// say drift.action: Restart or sizing.mode: InPlaceOrEvict.

// How long the API server's refusal stands before memfit asks again.
const (
	afterBudget    = time.Minute      // a PodDisruptionBudget: replicas come and go
	afterForbidden = 10 * time.Minute // somebody took the right away
)

// refusal is an eviction that the API server did not want.
type refusal struct {
	until time.Time
	why   string
}

// restartOf asks whether a pod should be restarted for its memory. Nothing, unless the profile says so.
func restartOf(s *Snapshot, st *State, shapes map[string]shape.Shape, now time.Time) drift.Candidate {
	if s.Profile.Spec.Drift.Action != v1alpha1.DriftRestart {
		return drift.Candidate{}
	}
	spec := s.Profile.Drift()
	in := drift.Input{
		Shapes: shapes, Done: st.restarts.Restarts(now), Now: now, Refused: notRestarted(s, st, now),
		Policy: drift.Policy{
			MaxPerDay: int(*spec.MaxPerDay), MinReplicas: int(*spec.MinReplicas),
			Cooldown: s.Profile.Disruption().Cooldown.Duration,
		},
	}
	for _, pod := range s.Governed {
		in.Pods = append(in.Pods, st.driftingPod(s, pod, shapes))
	}
	return drift.Choose(in)
}

// notRestarted is why pods of this workload are left alone whatever their memory does.
func notRestarted(s *Snapshot, st *State, now time.Time) string {
	switch {
	case s.paused != "":
		return "paused by " + s.paused
	case !kindOf(s.Owner.Ref).Recreates:
		return "nobody would start it again"
	case kindOf(s.Owner.Ref).Completes:
		return "a Job's pod would lose its work"
	case now.Before(st.restartRefused.until):
		return st.restartRefused.why
	}
	return ""
}

// driftingPod is a pod with what its containers use.
func (st *State) driftingPod(s *Snapshot, pod *corev1.Pod, shapes map[string]shape.Shape) drift.Pod {
	p := drift.Pod{Name: pod.Name, UID: pod.UID, Ready: ready(pod), Leaving: pod.DeletionTimestamp != nil}
	for _, c := range Managed(s.Profile, pod) {
		ref := memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: c.Name}
		in := st.instance(&ref)
		if _, judged := shapes[c.Name]; in == nil || !judged || in.recent.seen == 0 {
			continue
		}
		limit := c.current.Limit
		if effective, asked, known := st.ledger.EffectiveLimit(ref); known && asked > 0 {
			limit = effective // the pod lets it have no more
		}
		p.Containers = append(p.Containers, drift.Container{
			Name: c.Name, Use: in.recent.now(), Limit: limit, At: in.recent.lastAt(),
			WorkingSetOnly: in.recent.workingSetOnly,
		})
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
