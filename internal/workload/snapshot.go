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
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/rollout"
)

// perRun reports whether each pod is one run of many, with its own arguments.
func (s *Snapshot) perRun() bool { return identity.Is(s.Owner.Ref) }

// isRun reports whether a pod ends by itself, like a Job's. It uses the pod's restartPolicy, because any custom
// resource may own Jobs, and controllers of services require Always. nil: whether the owner's kind has runs.
func (s *Snapshot) isRun(pod *corev1.Pod) bool {
	return kindOf(s.Owner.Ref).Completes || pod != nil && (pod.Spec.RestartPolicy == corev1.RestartPolicyNever ||
		pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure)
}

// Pod returns the governed pod of that UID; nil: none.
func (s *Snapshot) Pod(uid types.UID) *corev1.Pod {
	for _, pod := range s.Governed {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}

// Identify sets Presence and the owner's UID, and drops the pods and events of an earlier workload of the same name.
// Their kills must not affect the size of the current workload, which may run another program.
func (s *Snapshot) Identify(p records.Presence, policies map[types.UID]PodPolicy) {
	s.Presence = p
	if s.Owner.UID = p.UID; s.Owner.UID == "" { // unreadable kind: use the newest pod that has it
		for _, pod := range s.Pods {
			s.Owner.UID = cmp.Or(s.Owner.UID, policies[pod.UID].Owner)
		}
	}
	foreign := func(owner types.UID) bool {
		if s.Owner.UID == "" || owner == s.Owner.UID {
			return false
		}
		// a pod without an owner, although the kind is readable, belongs to a deleted workload
		return owner != "" || p.State == records.Exists
	}
	foreignPods := uids(s.Pods, func(pod *corev1.Pod) bool { return foreign(policies[pod.UID].Owner) })
	for _, d := range s.Events.Departed {
		if foreign(d.Owner) {
			foreignPods[d.Pod] = true
		}
	}
	if len(foreignPods) == 0 {
		return
	}
	s.Pods = slices.DeleteFunc(s.Pods, func(pod *corev1.Pod) bool { return foreignPods[pod.UID] })
	e := &s.Events
	e.dropObservations(foreignPods)
	e.Samples = slices.DeleteFunc(slices.Clone(e.Samples), func(sample memory.Sample) bool {
		return foreignPods[sample.Container.UID]
	})
	e.Counters = slices.DeleteFunc(e.Counters, func(c memory.KillCounter) bool { return foreignPods[c.Container.UID] })
	if e.Last != nil && foreignPods[e.Last.UID] {
		e.Profile, e.Last = nil, nil
	}
}

// Snapshot is the input of a step, besides the state and the time. Pods are the cache's own: do not change them.
type Snapshot struct {
	Owner memory.Workload
	// Identity identifies the pods, if Owner is their identity or a class of nodes; nil: no pod with it exists.
	Identity *identity.Identity
	Presence records.Presence
	// Profile is the workload's profile; nil: none. Why is the reason for that, Problem why no profile governs it, and
	// Claims are the conflicting profiles.
	Profile *profile.Profile
	Why     string
	Problem profile.Problem
	Claims  []*profile.Profile
	paused  string // names the object that pauses changes; empty: none
	// Pods are all existing pods, newest first; Governed are those that Profile governs and that have not ended.
	Pods, Governed []*corev1.Pod
	// Template is the newest governed pod, which may have ended or been deleted; nil: none was seen.
	Template *corev1.Pod
	// Events of this workload, without events of an earlier one of its name.
	Events PendingEvents
	// Earlier is what remains of an earlier workload of this name; nil: none.
	Earlier *State
	// Snapshots are the agents' reports about pods, by the pod's UID; nil: no agent runs.
	Snapshots map[types.UID]*v1alpha1.MemorySnapshot
	// Silent are nodes that have not reported usage for a while ([memory.Lasting]), of this workload or of others.
	Silent []memory.Silence
	Facts  constraints.Facts
	// Priors are what was learned about young containers like this workload's.
	Priors recommend.Priors
	// Allowance is the cluster's remaining change budget; nil: no budget.
	Allowance *rollout.Allowance
	// QueryResult is the result of the profile's rollbackQuery; nil: no query.
	QueryResult *rollout.QueryResult
	// Replica is the name of the deciding pod; its webhook may be permitted to create a canary. Empty: unknown.
	Replica string
	// Unmeasured is true if no samples are taken, so a missing sample shows nothing about the time of a kill.
	Unmeasured bool
	// NoWebhook is true if memfit runs without its webhook, and changes no new pod.
	NoWebhook bool
}

// PodPolicy is the profile of one pod, what pauses its changes, and the UID of its workload; empty: unknown.
type PodPolicy struct {
	profile.Match
	Paused string
	Owner  types.UID
}

// Govern uses the profile of the newest governed pod: during a rollout the new template counts.
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

// elsewhere returns the pods that have not ended and that Profile does not govern.
func (s *Snapshot) ungoverned() map[types.UID]bool {
	governed := uids(s.Governed, nil)
	return uids(s.Pods, func(pod *corev1.Pod) bool { return !ended(pod) && !governed[pod.UID] })
}

// uids returns UIDs of pods; of nil: of all.
func uids(pods []*corev1.Pod, of func(*corev1.Pod) bool) map[types.UID]bool {
	all := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		if of == nil || of(pod) {
			all[pod.UID] = true
		}
	}
	return all
}

// ContainersOf returns the names of a pod's resizable containers.
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
