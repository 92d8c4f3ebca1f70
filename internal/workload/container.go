// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/report"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/runtimes"
	"github.com/memfit/memfit/internal/shape"
)

func (q *containerInput) desired(s *Snapshot, rec recommend.Recommendation) rollout.Desired {
	return rollout.Desired{
		// each pod has its own pod-level bounds
		Recommendation: rec, Policy: q.container.ownPolicy(), WindowPeak: lastDay(q.History),
		Range: s.Facts.Range, Quota: s.Facts.Quota,
	}
}

// shape returns the shape of the container's memory from its history of days. A leak that kills within minutes is too
// fast for the thinned history, so instances close to their limit are examined separately.
func (q *containerInput) shape() shape.Shape {
	in := shape.FromHistory(q.History)
	in.Limit, in.Replicas = q.container.current.Limit, q.replicas
	growth := q.plan.Growth()
	in.Overhead = growth.Overhead.Plus(growth.Reserve)
	if growth.HeapPercent > 0 && !growth.Soft {
		in.Cap = in.Limit.Minus(growth.Reserve).Percent(growth.HeapPercent)
		in.CapUnknown = !growth.FollowsLimit
	}
	s := shape.Classify(in)
	if len(q.urgent) == 0 || Drifts(s) {
		return s
	}
	in.Instances, in.Past, in.Regimes = q.urgent, nil, nil
	if soon := shape.Classify(in); soon.Kind == shape.Climb && Drifts(soon) {
		return soon
	}
	return s
}

// findShape computes the shape, or uses the cached one while valid. It always examines an instance close to its limit.
func (q *containerInput) findShape() shapeCache {
	cache := shapeCache{limit: q.container.current.Limit, kills: len(q.Kills), replicas: len(q.replicas)}
	if b := q.cached; len(q.urgent) == 0 && q.Now.Before(b.until) && b.limit == cache.limit && b.kills == cache.kills &&
		b.replicas == cache.replicas {
		return b
	}
	cache.shape = q.shape()
	if q.History != nil {
		cache.until = q.Now.Add(min(q.History.Span()/shapePart, maxShape.Duration()))
	}
	return cache
}

// managedContainer is one container that the profile sizes.
type managedContainer struct {
	Name     string
	priorKey string // in [recommend.Priors]
	pod      types.UID
	policy   profile.Container
	current  memory.Size
	// another is true if another writer than memfit resized the pod last. guaranteed is true if its owner made the pod
	// Guaranteed, which memfit keeps.
	resizedByOther, guaranteed bool
	// podLimit and podRequest are the bounds by the whole pod's size (spec.resources); 0: none.
	podLimit, podRequest memory.Bytes
	// volumesHold is the capacity of its memory-backed volumes; 0: none, or unknown.
	volumesHold memory.Bytes
	// floor is its evidence's floor.
	floor memory.Bytes
	// sharesLimit is true if the pod has a pod-level limit.
	sharesLimit bool
}

// staysGuaranteed reports whether the pod is Guaranteed, other than by the sizes that memfit gave it.
func (st *State) staysGuaranteed(c *managedContainer) bool {
	owner := st.programs[instanceKey{c.pod, c.Name}].Owner
	return c.guaranteed && (owner.Request == 0 || owner.Request >= owner.Limit)
}

func (c *managedContainer) ownPolicy() recommend.Policy {
	p := c.policy.SizePolicy()
	p.VolumesHold, p.SharesLimit, p.Before = c.volumesHold, c.sharesLimit, c.floor
	return p
}

// newSize returns the policy for a recommendation. The size of the whole pod is not a bound if new pods get another;
// for running ones it is checked at their resize.
func (c *managedContainer) newSize() recommend.Policy {
	p := c.ownPolicy()
	if !c.policy.Sizing.Mode.SizesNewPods() {
		p.PodLimit, p.PodRequest = c.podLimit, c.podRequest
	}
	p.RequestEqualsLimit = p.RequestEqualsLimit || c.guaranteed
	return p
}

// Managed returns the containers of a pod that memfit manages: app containers, native sidecars, and init containers
// that the profile names.
func Managed(p *profile.Profile, pod *corev1.Pod) []managedContainer {
	var all []managedContainer
	for c, init := range constraints.Containers(&pod.Spec) {
		policy := p.Container(c.Name, pod.Annotations)
		if !policy.Managed || init && !constraints.Sidecar(c) && !policy.Listed {
			continue
		}
		m := managedContainer{
			Name: c.Name, priorKey: priorKey(c), policy: policy, pod: pod.UID,
			current:        sizeEffective(constraints.Find(pod, c.Name)),
			resizedByOther: resizedByOther(pod), volumesHold: inject.VolumesHold(pod, c),
			guaranteed:  pod.Status.QOSClass == corev1.PodQOSGuaranteed,
			sharesLimit: constraints.WholeSize(pod).Limit > 0,
		}
		m.podLimit, m.podRequest = constraints.PodLeaves(pod, c.Name)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b managedContainer) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// priorKey returns equal keys for containers that may behave similarly: the image without tag and digest and, if set, a
// hash of command and arguments, because one image may run different programs.
func priorKey(c *corev1.Container) string {
	image, _ := runtimes.SplitImage(c.Image)
	if len(c.Command)+len(c.Args) == 0 {
		return image
	}
	return image + "#" + strconv.FormatUint(hashOf([][]string{c.Command, c.Args}), 36)
}

// Known returns the priors of the containers of a pod that a profile sizes.
func Known(all recommend.Priors, p *profile.Profile, pod *corev1.Pod) recommend.Priors {
	known := recommend.Priors{}
	for _, c := range Managed(p, pod) {
		if l, found := all[c.priorKey]; found {
			known[c.priorKey] = l
		}
	}
	return known
}

// sizeEffective returns the size reported by the kubelet, otherwise the pod spec's.
func sizeEffective(c *corev1.Container, status *corev1.ContainerStatus) memory.Size {
	size := constraints.SizeOf(&c.Resources)
	if status != nil && status.Resources != nil {
		actual := constraints.SizeOf(status.Resources)
		size.Limit, size.Request = cmp.Or(actual.Limit, size.Limit), cmp.Or(actual.Request, size.Request)
	}
	return size
}

type containerInput struct {
	// Input is the input of its size, without what the other fields determine. Current is its size without a loan, which
	// is one pod's and no evidence of a need.
	recommend.Input
	container managedContainer
	program   string // of the evidence; empty: unknown
	plan      *inject.ContainerPlan
	replicas  []shape.Replica
	urgent    []shape.Instance
	published memory.Size
	// reverted is a size that was rolled back and must not be repeated; nil: none.
	reverted *rollout.Revert
	cached   shapeCache
	leak     shape.Ramps
	// onFullNode is true if its node ran out of memory, and ended it. That shows nothing about its limit.
	onFullNode bool
	// measured are settings with an effect predicted by an agent.
	predicted []string
}

type containerResult struct {
	status v1alpha1.ContainerRecommendation
	// recommendation is the current one: its size is in status.
	recommendation recommend.Recommendation
	shapeCache
}

func (q *containerInput) result() containerResult {
	a := containerResult{shapeCache: q.findShape()}
	a.status = v1alpha1.ContainerRecommendation{
		Container: q.container.Name, Current: profile.APISize(q.container.current), Runtime: q.plan.Runtime(),
		Identity: q.plan.Identity(), Settings: head(q.plan.Settings(), 16), Shape: apiShape(a.shape),
	}
	known := q.plan.Advisories()
	advice := slices.DeleteFunc(
		append([]string{q.plan.NoRoom()}, q.plan.Advice(q.predicted...)...),
		func(text string) bool { return slices.Contains(known, text) },
	)
	follows, _ := q.plan.CapFollows()
	for _, kind := range kinds(q.Kills) {
		if kind == memory.OOMHeapAbort && follows {
			continue // the limit raises the cap, which is among the reasons
		}
		// the runtime that determined the kind of the kill
		runs := cmp.Or(q.plan.Runs(), string(q.container.policy.Runtime.Type))
		advice = append(advice, report.Advice(kind, runs, q.plan.CapSetBy()))
	}
	if q.onFullNode {
		advice = append(advice, report.NodeRanOut)
	}
	if q.container.policy.Sizing.Mode == v1alpha1.SizingDisabled {
		a.status.Decision, a.status.Summary = string(recommend.Hold), "Sizing is off in the profile (sizing.mode: Disabled)"
	} else {
		advice = append(advice, q.recommend(&a)...)
	}
	a.status.Advice = head(distinct(advice), 8)
	return a
}

func traitsOf(plan *inject.ContainerPlan) recommend.Traits {
	growth := plan.Growth()
	follows, frozen := plan.CapFollows()
	return recommend.Traits{
		Name: growth.Name, FollowsLimit: growth.FollowsLimit, MayFollow: growth.MayFollow,
		HeapPercent: growth.HeapPercent, Overhead: growth.Overhead, Reserve: growth.Reserve,
		CapFollowsLimit: follows, CapFrozen: frozen, CapSetBy: plan.CapSetBy(),
		OwnHeap: growth.OwnHeap, OwnHeapBy: growth.OwnHeapBy,
	}
}

// recommend sets the recommendation and returns its advice.
func (q *containerInput) recommend(a *containerResult) []string {
	in := q.Input
	in.Policy, in.Traits, in.Last = q.container.newSize(), traitsOf(q.plan), q.published
	in.Leak, in.Doubt = q.leak.String(), q.leak.Doubt
	in.Climbing = a.shape.Kind == shape.Climb && a.shape.Confidence != memory.Low
	rec := recommend.Evaluate(in)
	if q.container.guaranteed && rec.Size.Limit > 0 {
		rec.Reasons = append(rec.Reasons, "the request equals the limit, because the pod is Guaranteed")
	}
	if q.reverted != nil {
		rec = q.reverted.Override(rec, q.Current)
	}
	s := &a.status
	s.Decision, s.Confidence = string(rec.Decision), string(rec.Confidence)
	s.Summary, s.Reasons = rec.Summary, head(rec.Reasons, 16)
	s.Evidence = apiEvidence(rec.Evidence)
	s.Evidence.Replicas = int32(min(q.Replicas, 1<<30)) //nolint:gosec // bounded above
	if rec.Size == (memory.Size{}) && q.published != (memory.Size{}) {
		// Keep the previous number without evidence: new pods must not fall back to a size at which they were killed.
		rec.Size = q.published
		s.Reasons = head(append([]string{"no data now: the recommendation is unchanged"}, s.Reasons...), 16)
	}
	if rec.Size != (memory.Size{}) { // apply the current bounds to an earlier one
		var bounded []string
		rec.Size, bounded = in.Policy.Bound(rec.Size, q.container.current)
		s.Reasons = head(append(bounded, s.Reasons...), 16)
		s.Recommended = new(profile.APISize(rec.Size))
	}
	a.recommendation = rec
	return rec.Advice
}
