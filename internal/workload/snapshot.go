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

// perRun reports whether every pod of the workload is a separate run with its own arguments.
func (s *Snapshot) perRun() bool { return identity.IsIdentity(s.Owner.Ref) }

// isRun reports whether a pod runs to completion, like the pods of a Job. It reads the owner's kind and the pod's
// restartPolicy, because any custom resource may own Jobs. Without a pod (nil), only the owner's kind counts.
func (s *Snapshot) isRun(pod *corev1.Pod) bool {
	return kindOf(s.Owner.Ref).Completes || pod != nil && (pod.Spec.RestartPolicy == corev1.RestartPolicyNever ||
		pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure)
}

// Pod returns the governed pod with the UID; nil: none.
func (s *Snapshot) Pod(uid types.UID) *corev1.Pod {
	for _, pod := range s.Governed {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}

// Identify sets Presence and the owner's UID. It drops the pods and events of an earlier workload with the same name:
// the current workload may run another program, so earlier kills must not affect its size.
func (s *Snapshot) Identify(p records.Presence, policies map[types.UID]PodPolicy) {
	s.Presence = p
	if s.Owner.UID = p.UID; s.Owner.UID == "" { // unreadable kind: use the owner's UID in the newest pod with one
		for _, pod := range s.Pods {
			s.Owner.UID = cmp.Or(s.Owner.UID, policies[pod.UID].Owner)
		}
	}
	foreign := func(owner types.UID) bool {
		if s.Owner.UID == "" || owner == s.Owner.UID {
			return false
		}
		// if the kind is readable, a pod without an owner belongs to a deleted workload
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

// Snapshot is the input of a step, besides the state and the time. Its pods are those of the cache: do not change them.
type Snapshot struct {
	Owner memory.Workload
	// Identity is set if Owner is an identity of pods or a class of nodes, and a pod of this identity exists.
	Identity *identity.Identity
	Presence records.Presence
	// Profile is the workload's profile; nil: none. Why, Problem and Claims explain it (see [profile.Match]).
	Profile *profile.Profile
	Why     string
	Problem profile.Problem
	Claims  []*profile.Profile
	paused  string // the object that pauses changes; empty: none
	// Pods are all existing pods, newest first. Governed are the running or pending pods that Profile governs.
	Pods, Governed []*corev1.Pod
	// Template is the newest governed pod, which may have ended or been deleted; nil: none was seen.
	Template *corev1.Pod
	// Events are the events of this workload, without events of an earlier workload with the same name.
	Events PendingEvents
	// Earlier is what [State.RetainedState] returned for an earlier workload with the same name; nil: none.
	Earlier *State
	// Snapshots are the agents' reports about pods, by the pod's UID; nil: no agent runs.
	Snapshots map[types.UID]*v1alpha1.MemorySnapshot
	// SilentNodes are the nodes of the cluster that have not reported usage for a while ([memory.Lasting]).
	SilentNodes []memory.Silence
	Facts       constraints.Facts
	// Priors are data from young containers of other workloads with similar containers.
	Priors recommend.Priors
	// Allowance is the cluster's remaining change budget; nil: no budget.
	Allowance *rollout.Allowance
	// QueryResult is the result of the profile's rollbackQuery; nil: no query.
	QueryResult *rollout.QueryResult
	// Replica is the name of memfit's leading pod, whose webhook may create a canary. Empty: unknown.
	Replica string
	// Unmeasured is true if memfit takes no samples.
	Unmeasured bool
	// NoWebhook is true if memfit runs without its webhook, so that new pods keep their template's sizes.
	NoWebhook bool
}

// PodPolicy is the profile of one pod.
type PodPolicy struct {
	profile.Match
	Paused string    // the object that pauses changes of the pod; empty: none
	Owner  types.UID // of the workload; empty: unknown
}

// Govern sets Profile from the newest pod that has a profile, and Governed and Template to pods with this profile.
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

// ungoverned returns the running and pending pods that Profile does not govern.
func (s *Snapshot) ungoverned() map[types.UID]bool {
	governed := uids(s.Governed, nil)
	return uids(s.Pods, func(pod *corev1.Pod) bool { return !ended(pod) && !governed[pod.UID] })
}

// uids returns the UIDs of the pods for which match returns true; match nil: of all pods.
func uids(pods []*corev1.Pod, match func(*corev1.Pod) bool) map[types.UID]bool {
	all := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		if match == nil || match(pod) {
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

// ended reports whether a pod has completed or failed, so that none of its containers will run again.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// NewestFirst compares pods by creation time, newest first, then by name.
func NewestFirst(a, b *corev1.Pod) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
