// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/neighbours"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/signals"
)

// snapshot is everything about a workload that a decision looks at, besides what is remembered. Pods belong to the cache: read only.
type snapshot struct {
	owner memory.Workload
	// presence says whether the workload exists.
	presence records.Presence
	// profile governs the workload; nil when none does.
	profile *profile.Named
	// why says what decided, problem why nobody governs, and claims are the profiles that stand in each other's way.
	why     string
	problem profile.Problem
	claims  []*profile.Named
	// paused names what stops changes; empty: nothing does.
	paused string
	// pods are all pods that exist, newest first; governed is the part of them that profile governs and that has not ended.
	pods, governed []*corev1.Pod
	// template stands for the workload's pods: the newest governed one, ended or even gone. Nil when none was ever seen.
	template *corev1.Pod
	// events are those of this workload, without what belongs to an earlier one of its name.
	events PendingEvents
	// facts are what else in the cluster has a say in its memory.
	facts neighbours.Facts
	// unmeasured: nobody takes samples, so a kill without one says nothing about when it was.
	unmeasured bool
}

// gather looks at the workload's pods. Pods that turn out to belong to another workload are sent there with what they show.
func (r *WorkloadReconciler) gather(ctx context.Context, workload memory.WorkloadRef, events PendingEvents, keys []types.NamespacedName) (*snapshot, error) {
	s := &snapshot{owner: memory.Workload{Ref: workload}, events: events, unmeasured: r.Unmeasured}
	policies, of := map[types.UID]podPolicy{}, map[types.UID]types.UID{}
	for _, key := range keys {
		pod := &corev1.Pod{}
		if err := r.Get(ctx, key, pod); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue // its last state came with the deletion
			}
			return nil, fmt.Errorf("reading pod %s: %w", key, err)
		}
		if pod.Namespace == "" {
			continue
		}
		ruling, err := r.Governor.Resolve(ctx, pod)
		if err != nil {
			return nil, err
		}
		if ruling.Ref != workload {
			r.move(pod, ruling.Ref)
			continue
		}
		r.Inbox.Owned(pod.UID, ruling.UID)
		policies[pod.UID] = podPolicy{ruling.Profile, ruling.Why, ruling.Problem, ruling.Claims, ruling.Paused}
		of[pod.UID] = ruling.UID
		s.pods = append(s.pods, pod)
	}
	slices.SortFunc(s.pods, newestFirst)
	presence, err := r.census().find(ctx, workload)
	if err != nil {
		return nil, err
	}
	s.identify(presence, of)
	s.govern(policies)
	if len(s.pods) == 0 && len(s.events.Observations) > 0 {
		r.lookBack(s)
	}
	if err := r.lookAround(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// lookAround asks what else has a say in the workload's memory. Without an answer nothing is decided: memfit must not work against a
// neighbour because it did not see it.
func (r *WorkloadReconciler) lookAround(ctx context.Context, s *snapshot) error {
	if r.Neighbours == nil || s.profile == nil || s.template == nil {
		return nil
	}
	var names []string
	for _, c := range managed(s.profile, s.template) {
		names = append(names, c.name)
	}
	var err error
	s.facts, err = r.Neighbours.Facts(ctx, s.owner.Ref, names, s.template)
	return err
}

// podPolicy is who governs one pod: see [snapshot].
type podPolicy struct {
	profile *profile.Named
	why     string
	problem profile.Problem
	claims  []*profile.Named
	paused  string
}

// govern takes the profile of the newest governed pod: during a rollout it is the new template that counts.
func (s *snapshot) govern(policies map[types.UID]podPolicy) {
	for _, pod := range s.pods {
		p := policies[pod.UID]
		if s.profile == nil {
			s.profile, s.why, s.problem, s.claims, s.paused = p.profile, p.why, p.problem, p.claims, p.paused
		}
		if s.profile == nil || p.profile != s.profile {
			continue
		}
		if s.template == nil {
			s.template = pod
		}
		if !ended(pod) {
			s.governed = append(s.governed, pod)
		}
	}
}

// lookBack finds who governed when no pod is left: a kill in the last pod of a Job counts, too.
func (r *WorkloadReconciler) lookBack(s *snapshot) {
	if s.events.Profile != nil {
		s.profile, s.template = s.events.Profile, s.events.Last
	} else if e, known := r.states.get(s.owner.Ref); known {
		s.profile, s.template = e.state.profile, e.state.template
	}
}

// live are the pods that still exist.
func (s *snapshot) live() map[types.UID]bool {
	live := make(map[types.UID]bool, len(s.pods))
	for _, pod := range s.pods {
		live[pod.UID] = true
	}
	return live
}

// observations are what the governed pods show now.
func (s *snapshot) observations() []signals.Observation {
	var all []signals.Observation
	for _, pod := range s.governed {
		all = append(all, signals.Observe(pod)...)
	}
	return all
}

// move sends a pod, and what it shows, to the workload it belongs to.
func (r *WorkloadReconciler) move(pod *corev1.Pod, to memory.WorkloadRef) {
	r.Inbox.AddPod(pod.UID, client.ObjectKeyFromObject(pod), to)
	r.Inbox.Observe(to, signals.Observe(pod))
	if r.PodSource != nil {
		r.PodSource.enqueue(to, priorityUsual)
	}
}

// complete tells observations what a pod's status does not say: what their containers run, because an exit code of 134 is a heap that
// ran out in Node.js and anything at all elsewhere, since when memory is measured, because a kill without a sample is one at start
// only then, and when memfit saw them run, because a node's clock may be wrong.
func complete(s *snapshot, m *state, observations []signals.Observation) {
	if !slices.ContainsFunc(observations, func(o signals.Observation) bool { return len(o.Ended) > 0 }) {
		return
	}
	var annotations map[string]string
	if s.template != nil {
		annotations = s.template.Annotations
	}
	plan := inject.MakePlan(inject.Input{Pod: s.template, Profile: s.profile, Created: true})
	for i := range observations {
		o := &observations[i]
		o.Measured = m.measuredSince
		if in, found := m.instances[o.Container]; found {
			o.HeapCap = in.heapCap
			if len(o.Ended) > 0 && o.Ended[len(o.Ended)-1].Index == in.restarts {
				o.Alive = in.alive
			}
		}
		if declared := s.profile.Container(o.Container.Container, annotations).Runtime.Type; declared != v1alpha1.RuntimeAuto {
			o.Runtime = string(declared)
		} else {
			o.Runtime = plan.Runs(o.Container.Container)
		}
	}
}

// placed says where governed pods run and with which containers, by pod. Nearly all pods of a workload have the same containers, so they
// share one list.
func placed(s *snapshot) map[types.UID]placement {
	placed := make(map[types.UID]placement, len(s.governed))
	var last []string
	for _, pod := range s.governed {
		if pod.Spec.NodeName == "" {
			continue
		}
		if names := containersOf(&pod.Spec); !slices.Equal(names, last) {
			last = names
		}
		placed[pod.UID] = placement{pod.Spec.NodeName, last}
	}
	return placed
}

// containersOf are the names of a pod's containers that can be sized. Ephemeral ones cannot, and each has a name of its own that is never
// seen again.
func containersOf(spec *corev1.PodSpec) []string {
	names := make([]string, 0, len(spec.InitContainers)+len(spec.Containers))
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			names = append(names, list[i].Name)
		}
	}
	return names
}

// ended: nothing runs in it any more, and nothing will.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// newestFirst orders by creation, then by name, so that equal input gives equal output.
func newestFirst(a, b *corev1.Pod) int {
	if c := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); c != 0 {
		return c
	}
	if a.Name < b.Name {
		return -1
	}
	return 1
}
