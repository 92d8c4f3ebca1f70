// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/rollout"
)

// perRun reports whether each pod is one run of many, with arguments of its own.
func (s *Snapshot) perRun() bool { return identity.Is(s.Owner.Ref) }

// isRun reports whether a pod ends by itself, as a Job's does. That is a fact of the pod, since any custom resource may
// own Jobs: each controller of pods that serve requires restartPolicy Always. Nil: whether the kind of owner has runs.
func (s *Snapshot) isRun(pod *corev1.Pod) bool {
	return kindOf(s.Owner.Ref).Completes || pod != nil && (pod.Spec.RestartPolicy == corev1.RestartPolicyNever ||
		pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure)
}

// Pod is the governed pod of that UID; nil: none.
func (s *Snapshot) Pod(uid types.UID) *corev1.Pod {
	for _, pod := range s.Governed {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}

// Identify sets Presence and the owner's UID, and drops the pods and events of an earlier workload of the same name.
// Its pods may still be ending, and their kills would give the workload that has the name now, which may run another
// program, a size that is not its own.
func (s *Snapshot) Identify(p records.Presence, of map[types.UID]types.UID) {
	s.Presence = p
	if s.Owner.UID = p.UID; s.Owner.UID == "" { // its kind cannot be read: taken from the newest pod that knows
		for _, pod := range s.Pods {
			s.Owner.UID = cmp.Or(s.Owner.UID, of[pod.UID])
		}
	}
	strange := func(owner types.UID) bool {
		if s.Owner.UID == "" || owner == s.Owner.UID {
			return false
		}
		// a pod whose owner cannot be found, although workloads of that kind can be read, belongs to one that is gone
		return owner != "" || p.State == records.Exists
	}
	others := map[types.UID]bool{}
	for _, pod := range s.Pods {
		if strange(of[pod.UID]) {
			others[pod.UID] = true
		}
	}
	for _, d := range s.Events.Departed {
		if strange(d.Owner) {
			others[d.Pod] = true
		}
	}
	if len(others) == 0 {
		return
	}
	s.Pods = slices.DeleteFunc(s.Pods, func(pod *corev1.Pod) bool { return others[pod.UID] })
	s.Events.Observations = slices.DeleteFunc(
		s.Events.Observations, func(o oom.Observation) bool { return others[o.Container.UID] },
	)
	s.Events.Samples = slices.DeleteFunc(
		slices.Clone(s.Events.Samples), func(sample memory.Sample) bool { return others[sample.Container.UID] },
	)
	s.Events.Counters = slices.DeleteFunc(
		s.Events.Counters, func(c memory.KillCounter) bool { return others[c.Container.UID] },
	)
	if s.Events.Last != nil && others[s.Events.Last.UID] {
		s.Events.Profile, s.Events.Last = nil, nil
	}
}

// Snapshot is everything about a workload that a step depends on, besides the state and the time. Pods belong to the
// cache: read only.
type Snapshot struct {
	Owner memory.Workload
	// Identity is what the pods have in common, where Owner is their identity or a class of nodes; nil: no pod exists that
	// shows it.
	Identity *identity.Identity
	// Presence reports whether the workload exists.
	Presence records.Presence
	// Profile governs the workload; nil when none does.
	Profile *profile.Profile
	// Why is what decided about that, Problem why no profile governs, and Claims are the profiles that conflict.
	Why     string
	Problem profile.Problem
	Claims  []*profile.Profile
	// paused names what stops changes; empty: nothing does.
	paused string
	// Pods are all pods that exist, newest first; Governed are those of them that Profile governs and that have not
	// ended.
	Pods, Governed []*corev1.Pod
	// Template is taken for what the workload's pods look like: the newest governed pod, which may have ended or even be
	// gone. Nil when none was ever seen.
	Template *corev1.Pod
	// Events are those of this workload, without what belongs to an earlier one of its name.
	Events PendingEvents
	// Snapshots are what the agents of nodes found out about pods, by the pod's UID; nil: no agent runs.
	Snapshots map[types.UID]*v1alpha1.MemorySnapshot
	// Silent are nodes that have not reported usage for a while ([memory.Lasting]), of this workload or of others.
	Silent []memory.Silence
	// Facts are what else in the cluster determines its memory.
	Facts constraints.Facts
	// Priors is what other containers that run the same as this workload's have shown when they were young.
	Priors recommend.Priors
	// Allowance is what the change budget of the cluster leaves; nil: there is no budget.
	Allowance *rollout.Allowance
	// QueryResult is the answer of Prometheus to the profile's rollbackQuery; nil: it has none.
	QueryResult *rollout.QueryResult
	// Replica is the name of the pod that decides; its webhook may be allowed to create a canary. Empty: unknown.
	Replica string
	// Unmeasured: no samples are taken, so a kill without one is no evidence of when it was.
	Unmeasured bool
	// NoWebhook: memfit runs without its webhook, so it sets nothing on new pods.
	NoWebhook bool
}

// PodPolicy is which profile governs one pod, and what stops changes of it.
type PodPolicy struct {
	profile.Match
	Paused string
}

// Govern takes the profile of the newest governed pod: during a rollout it is the new template that counts.
func (s *Snapshot) Govern(policies map[types.UID]PodPolicy) {
	for _, pod := range s.Pods {
		p := policies[pod.UID]
		if s.Profile == nil {
			s.Profile, s.Why, s.Problem, s.Claims, s.paused = p.Profile, p.Why, p.Problem, p.Claims, p.Paused
		}
		if s.Profile == nil || p.Profile != s.Profile {
			continue
		}
		if s.Template == nil {
			s.Template = pod
		}
		if !ended(pod) {
			s.Governed = append(s.Governed, pod)
		}
	}
}

// succeeded are the pods that ran to completion.
func (s *Snapshot) succeeded() map[types.UID]bool {
	return uids(s.Pods, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
}

// elsewhere are the pods that have not ended and that Profile does not govern.
func (s *Snapshot) elsewhere() map[types.UID]bool {
	governed := uids(s.Governed, func(*corev1.Pod) bool { return true })
	return uids(s.Pods, func(pod *corev1.Pod) bool { return !ended(pod) && !governed[pod.UID] })
}

// existing are the pods that still exist.
func (s *Snapshot) existing() map[types.UID]bool {
	return uids(s.Pods, func(*corev1.Pod) bool { return true })
}

func uids(pods []*corev1.Pod, of func(*corev1.Pod) bool) map[types.UID]bool {
	all := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		if of(pod) {
			all[pod.UID] = true
		}
	}
	return all
}

// observations are what governed pods show now.
func (s *Snapshot) observations(of func(pod types.UID) bool) []oom.Observation {
	var all []oom.Observation
	for _, pod := range s.Governed {
		if of(pod.UID) {
			all = append(all, oom.Observe(pod)...)
		}
	}
	return all
}

// ContainersOf are the names of a pod's containers that can be sized.
func ContainersOf(spec *corev1.PodSpec) []string {
	names := make([]string, 0, len(spec.InitContainers)+len(spec.Containers))
	for c := range constraints.Containers(spec) {
		names = append(names, c.Name)
	}
	return names
}

// ended reports whether all containers of a pod have ended and none will run again.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// NewestFirst orders by creation, then by name, so that equal input gives equal output.
func NewestFirst(a, b *corev1.Pod) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
