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

// desired returns the input for resizing the container in running pods.
func (q *containerInput) desired(s *Snapshot, rec recommend.Recommendation) rollout.Desired {
	return rollout.Desired{
		// without pod-level bounds, which each pod has itself
		Recommendation: rec, Policy: q.container.ownPolicy(), WindowPeak: lastDay(q.History),
		Range: s.Facts.Range, Quota: s.Facts.Quota,
	}
}

// shape classifies the container's memory over time by its history. For leaks that kill within minutes, it also
// examines the readings of instances close to their limit.
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

// findShape returns the cached shape if valid and no instance is close to its limit. Otherwise it computes the shape.
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
	// resizedByOther is true if another writer than memfit resized the pod last.
	resizedByOther bool
	guaranteed     bool // the pod has QoS class Guaranteed, which memfit must keep
	// podLimit and podRequest are the bounds that result from the pod-level size (spec.resources); 0: none.
	podLimit, podRequest memory.Bytes
	volumesHold          memory.Bytes // the capacity of the memory-backed volumes; 0: none, or unknown
	floor                memory.Bytes // [evidence.floor]
	sharesLimit          bool         // the pod has a pod-level limit
}

// staysGuaranteed reports whether the pod is Guaranteed by its owner's sizes, not only by memfit's.
func (st *State) staysGuaranteed(c *managedContainer) bool {
	owner := st.programs[instanceKey{c.pod, c.Name}].Owner
	return c.guaranteed && (owner.Request == 0 || owner.Request >= owner.Limit)
}

// ownPolicy returns the profile's policy with the container's own bounds.
func (c *managedContainer) ownPolicy() recommend.Policy {
	p := c.policy.SizePolicy()
	p.VolumeSizeLimits, p.SharesLimit, p.PreviousNeed = c.volumesHold, c.sharesLimit, c.floor
	return p
}

// newSize returns the policy for a recommendation. It contains the pod-level bounds only if memfit does not size new
// pods, because otherwise memfit can also change the pod-level size.
func (c *managedContainer) newSize() recommend.Policy {
	p := c.ownPolicy()
	if !c.policy.Sizing.Mode.SizesNewPods() {
		p.PodLimit, p.PodRequest = c.podLimit, c.podRequest
	}
	p.RequestEqualsLimit = p.RequestEqualsLimit || c.guaranteed
	return p
}

// Managed returns the containers of a pod that memfit manages, sorted by name: app containers, native sidecars, and
// init containers that the profile lists.
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
			resizedByOther: resizedByOther(pod), volumesHold: inject.VolumesCapacity(pod, c),
			guaranteed:  pod.Status.QOSClass == corev1.PodQOSGuaranteed,
			sharesLimit: constraints.WholeSize(pod).Limit > 0,
		}
		m.podLimit, m.podRequest = constraints.PodLeaves(pod, c.Name)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b managedContainer) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// priorKey returns the key of a container in [recommend.Priors]: the image without tag and digest and, if set, a hash
// of command and arguments, because one image may run different programs.
func priorKey(c *corev1.Container) string {
	image, _ := runtimes.SplitImage(c.Image)
	if len(c.Command)+len(c.Args) == 0 {
		return image
	}
	return image + "#" + strconv.FormatUint(hashOf([][]string{c.Command, c.Args}), 36)
}

// Known returns the priors for the containers of a pod that a profile sizes.
func Known(all recommend.Priors, p *profile.Profile, pod *corev1.Pod) recommend.Priors {
	known := recommend.Priors{}
	for _, c := range Managed(p, pod) {
		if l, found := all[c.priorKey]; found {
			known[c.priorKey] = l
		}
	}
	return known
}

// sizeEffective returns the size that the kubelet reported; unreported values are from the pod spec.
func sizeEffective(c *corev1.Container, status *corev1.ContainerStatus) memory.Size {
	size := constraints.SizeOf(&c.Resources)
	if status != nil && status.Resources != nil {
		actual := constraints.SizeOf(status.Resources)
		size.Limit, size.Request = cmp.Or(actual.Limit, size.Limit), cmp.Or(actual.Request, size.Request)
	}
	return size
}

// containerInput is the data for decisions about one program in one container.
type containerInput struct {
	// Input is the input of the size, except Policy, Traits, Last, Leak, Doubt and Climbing. Current is without a loan.
	recommend.Input
	container  managedContainer
	program    string // empty: unknown
	plan       *inject.ContainerPlan
	replicas   []shape.Replica
	urgent     []shape.Instance
	published  memory.Size
	reverted   *rollout.Revert // a rolled-back size that must not be repeated; nil: none
	cached     shapeCache
	leak       shape.Ramps
	onFullNode bool     // the kernel killed the container because its node ran out of memory
	predicted  []string // settings whose effect an agent predicted
}

type containerResult struct {
	status         v1alpha1.ContainerRecommendation
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
		append([]string{q.plan.HeapCapTooSmall()}, q.plan.Advice(q.predicted...)...),
		func(text string) bool { return slices.Contains(known, text) },
	)
	follows, _ := q.plan.CapFollows()
	for _, kind := range killKinds(q.Kills) {
		if kind == memory.OOMHeapAbort && follows {
			continue // a higher limit raises the cap, and the reasons mention it
		}
		runtime := cmp.Or(q.plan.RuntimeName(), string(q.container.policy.Runtime.Type))
		advice = append(advice, report.Advice(kind, runtime, q.plan.CapSetBy()))
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
		// Without data, keep the published size: new pods must not get a size at which earlier pods were killed.
		rec.Size = q.published
		s.Reasons = head(append([]string{"no data now: the recommendation is unchanged"}, s.Reasons...), 16)
	}
	if rec.Size != (memory.Size{}) { // an earlier or reverted size may exceed the current bounds
		var bounded []string
		rec.Size, bounded = in.Policy.Bound(rec.Size, q.container.current)
		s.Reasons = head(append(bounded, s.Reasons...), 16)
		s.Recommended = new(profile.APISize(rec.Size))
	}
	a.recommendation = rec
	return rec.Advice
}
