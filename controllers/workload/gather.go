// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
)

// gather reads the input of a step. It moves pods of another workload to that workload, with their observations.
func (r *Reconciler) gather(
	ctx context.Context, ref memory.WorkloadRef, events workload.PendingEvents, keys []types.NamespacedName,
) (*workload.Snapshot, error) {
	s := &workload.Snapshot{Owner: memory.Workload{Ref: ref}, Events: events, Unmeasured: r.Settings.Unmeasured,
		Replica: r.Settings.Replica, NoWebhook: r.Settings.NoWebhook}
	policies := make(map[types.UID]workload.PodPolicy, len(keys))
	governed := events.Profile != nil
	s.Pods = make([]*corev1.Pod, 0, len(keys))
	for _, key := range keys {
		pod, err := r.Sources.Pods.Pod(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("reading pod %s: %w", key, err)
		}
		if pod == nil || pod.Namespace == "" {
			continue // deleted; the deletion event delivered its last state
		}
		if _, again := policies[pod.UID]; again {
			continue // the inbox still has an earlier pod of that name
		}
		resolved, err := r.Resolver.ResolveRemembered(ctx, pod, r.Inbox.Kept(pod.UID))
		if err != nil {
			return nil, err
		}
		if kept, complete := resolved.Remember(pod); complete {
			r.Inbox.Keep(pod.UID, key, kept)
		}
		if resolved.Ref != ref {
			r.move(pod, resolved.Ref)
			continue
		}
		policies[pod.UID] = workload.PodPolicy{Match: resolved.Match, Paused: resolved.Paused, Owner: resolved.UID}
		s.Identity = cmp.Or(resolved.Identity, s.Identity)
		governed = governed || resolved.Profile != nil
		s.Pods = append(s.Pods, pod)
	}
	slices.SortFunc(s.Pods, workload.NewestFirst)
	if !governed && r.unknown(ctx, ref) { // whether it exists does not matter
		s.Govern(policies)
		return s, nil
	}
	presence, err := r.presence(ctx, s, policies)
	if err != nil {
		return nil, err
	}
	s.Identify(presence, policies)
	s.Govern(policies)
	if len(s.Pods) == 0 && len(s.Events.Observations) > 0 {
		r.governedBefore(s)
	}
	if err := r.gatherFacts(ctx, s); err != nil {
		return nil, err
	}
	s.Priors = r.Priors.of(s)
	if r.Sources.Snapshots != nil {
		s.Snapshots = r.Sources.Snapshots.Of(ctx, s.Pods)
	}
	if r.Sources.Usage != nil {
		s.SilentNodes = memory.Lasting(r.Sources.Usage.Gaps(), r.Clock.Now())
	}
	s.QueryResult = r.queryResult(ctx, s.RollbackQuery())
	return s, nil
}

// presence returns whether the workload exists. It asks the API server only once about a deleted workload, although its
// pods may run for minutes.
func (r *Reconciler) presence(
	ctx context.Context, s *workload.Snapshot, policies map[types.UID]workload.PodPolicy,
) (records.Presence, error) {
	ref := s.Owner.Ref
	if p, known := r.sweeper().Cached(ctx, ref); known {
		return p, nil
	}
	var owners []types.UID
	for _, pod := range s.Pods {
		if uid := cmp.Or(policies[pod.UID].Owner, policy.ControllerOf(pod)); !slices.Contains(owners, uid) {
			owners = append(owners, uid)
		}
	}
	mayExist := func(uid types.UID) bool { return !r.Resolver.OwnerGone(ref, uid) }
	if len(owners) > 0 && !slices.ContainsFunc(owners, mayExist) {
		return records.Presence{State: records.Gone}, nil
	}
	p, err := r.sweeper().Confirm(ctx, ref)
	if err == nil && p.State == records.Gone {
		for _, uid := range owners {
			r.Resolver.OwnerDeleted(ref, uid)
		}
	}
	return p, err
}

// queryResult returns the latest result of the owner's query; nil: no query.
func (r *Reconciler) queryResult(ctx context.Context, query string) *rollout.QueryResult {
	if query == "" {
		return nil
	}
	if r.Sources.Queries == nil {
		return &rollout.QueryResult{
			Problem: "the manager runs without --rollback-queries; set that flag, or remove the query",
		}
	}
	return new(r.Sources.Queries.Result(ctx, query, r.Clock.Now()))
}

// gatherFacts reads the constraints of the workload's memory. After an error, memfit decides nothing, because it must
// not work against an autoscaler or a quota.
func (r *Reconciler) gatherFacts(ctx context.Context, s *workload.Snapshot) error {
	if r.Sources.Constraints == nil || s.Profile == nil || s.Template == nil {
		return nil
	}
	var names []string
	for _, c := range workload.Managed(s.Profile, s.Template) {
		names = append(names, c.Name)
	}
	var err error
	s.Facts, err = r.Sources.Constraints.Facts(ctx, s.Owner.Ref, names, s.Template)
	return err
}

// governedBefore sets the profile and template of the last pod when no pod is left: a kill in a Job's last pod counts.
func (r *Reconciler) governedBefore(s *workload.Snapshot) {
	if s.Events.Profile != nil {
		s.Profile, s.Template = s.Events.Profile, s.Events.Last
	} else if e, known := r.states.get(s.Owner.Ref); known {
		e.mu.Lock()
		defer e.mu.Unlock()
		s.Profile, s.Template = e.state.Last()
	}
}

func (r *Reconciler) move(pod *corev1.Pod, to memory.WorkloadRef) {
	r.Inbox.AddPod(pod.UID, client.ObjectKeyFromObject(pod), to)
	r.Inbox.Observe(to, oom.Observe(pod))
	r.PodSource.enqueue(to, priorityNormal)
}

// placed returns the node and containers of each governed pod. Pods with equal containers share one list.
func placed(s *workload.Snapshot) map[types.UID]inbox.Placement {
	placed := make(map[types.UID]inbox.Placement, len(s.Governed))
	var last []string
	for _, pod := range s.Governed {
		if pod.Spec.NodeName == "" {
			continue
		}
		if names := workload.ContainersOf(&pod.Spec); !slices.Equal(names, last) {
			last = names
		}
		placed[pod.UID] = inbox.Placement{Node: pod.Spec.NodeName, Containers: last}
	}
	return placed
}

// past returns the workload's earlier history, as long as the state needs it; nil: not needed, or unavailable.
func (r *Reconciler) past(w memory.WorkloadRef, m *workload.State) *workload.Past {
	if r.Sources.History == nil || !m.WantsPast() || w.NodeClass != "" { // names of past pods do not show their node class
		return nil
	}
	containers, read := r.Sources.History.Get(w)
	return &workload.Past{Source: r.Sources.History.Source(), Read: read, Containers: containers}
}

// Sources are the inputs of a step besides the events in the inbox.
type Sources struct {
	// Pods returns pods of the cache, which must not be changed; nil: not found. Required.
	Pods interface {
		Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error)
	}
	// Constraints returns what else bounds or changes a workload's memory. nil: nothing.
	Constraints interface {
		Facts(ctx context.Context, w memory.WorkloadRef, containers []string, pod *corev1.Pod) (constraints.Facts, error)
	}
	// Snapshots returns the agents' reports about pods. nil: no agents.
	Snapshots interface {
		Of(ctx context.Context, pods []*corev1.Pod) map[types.UID]*v1alpha1.MemorySnapshot
	}
	// Usage returns the nodes that report no usage of their pods. nil: unknown.
	Usage interface{ Gaps() []memory.Silence }
	// History returns the usage of workloads before memfit observed them. nil: unavailable.
	History interface {
		Get(w memory.WorkloadRef) (containers map[string]*history.Container, read bool)
		Forget(w memory.WorkloadRef)
		Source() string
	}
	// Queries returns results of rollback queries without waiting for Prometheus. nil: rollback queries are disabled.
	Queries interface {
		Result(ctx context.Context, query string, now time.Time) rollout.QueryResult
	}
}
