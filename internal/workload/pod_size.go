// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
)

// runningWhole returns the pod-level size of a running pod (spec.resources); nil: not set.
func runningWhole(s *Snapshot, pod *corev1.Pod, managed []managedContainer) *rollout.Whole {
	size := constraints.WholeSize(pod)
	if size == (memory.Size{}) {
		return nil
	}
	w := &rollout.Whole{Spec: size, Actual: size, FixedBecause: whyWholeFixed(pod), Young: !slices.ContainsFunc(
		pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Resources != nil },
	)}
	// Ignore the reported request: a kubelet of 1.36 always reports the request at the pod's start.
	if r := pod.Status.Resources; r != nil && size.Limit > 0 {
		limit := constraints.SizeOf(r).Limit
		if short := size.Limit.Minus(limit); short < 0 || short > memory.CgroupRounding {
			w.Actual.Limit = limit
		}
	}
	w.Follow = func(sizes, parts map[string]memory.Size) (memory.Size, rollout.Verdict) {
		asks, to := wholeInput(pod, managed, sizes, parts)
		whole := constraints.RunningWhole(pod, asks)
		if why := whole.TooSmall(pod, asks); why != "" {
			return size, rollout.Verdict{Reason: v1alpha1.ReasonPodLimit, Message: why}
		}
		if why := s.Facts.Refusal(constraints.WithWhole(pod, whole.Size), to); why != "" {
			return whole.Size, rollout.Verdict{Reason: v1alpha1.ReasonLimitRange, Message: why}
		}
		return whole.Size, rollout.Verdict{}
	}
	return w
}

// wholeInput returns the input of [constraints.RunningWhole], and the desired sizes by container.
func wholeInput(
	pod *corev1.Pod, managed []managedContainer, sizes, parts map[string]memory.Size,
) (asks []constraints.DesiredSize, to map[string]memory.Size) {
	to = map[string]memory.Size{}
	for i := range managed {
		c := &managed[i]
		size, asked := sizes[c.Name]
		part, shares := parts[c.Name]
		if !asked && !shares {
			continue
		}
		spec, _ := constraints.Find(pod, c.Name)
		base := constraints.SizeOf(&spec.Resources)
		a := constraints.DesiredSize{
			Container: c.Name, Base: base, PodLevelShare: part, NeverLower: c.policy.SizePolicy().DecreaseNever,
			Want: memory.Size{Request: cmp.Or(size.Request, base.Request), Limit: cmp.Or(size.Limit, base.Limit)},
		}
		asks, to[c.Name] = append(asks, a), a.Want
	}
	return asks, to
}

// whyWholeFixed returns why the pod-level size of a running pod cannot be changed; "": it can. A missing size in
// status.resources shows that the feature gate is off in the API server or on the node.
func whyWholeFixed(pod *corev1.Pod) string {
	if r := pod.Status.Resources; r != nil && (constraints.WholeSize(pod).Limit == 0 || constraints.SizeOf(r).Limit > 0) {
		return ""
	}
	return "status.resources does not report the pod-level size, so the feature gate " +
		"InPlacePodLevelResourcesVerticalScaling seems to be off (on by default since Kubernetes 1.36): enable it in the " +
		"API server and the kubelets, or restart the workload, so that new pods get the new size"
}

// PodSizeHint returns text to append to a refused resize if the pod-level size cannot be changed; "": it can.
func PodSizeHint(pod *corev1.Pod) string {
	why := whyWholeFixed(pod)
	if constraints.WholeSize(pod) == (memory.Size{}) || why == "" {
		return ""
	}
	return " (the pod has a pod-level size, but " + why + ")"
}

// reportPodSize adds the change of the pod-level size of new pods to the reasons of each container with a new size.
func (d *decider) reportPodSize(managed []managedContainer) {
	base := constraints.WholeSize(d.s.Template)
	if base == (memory.Size{}) {
		return
	}
	var asks []constraints.DesiredSize
	for i := range managed {
		c := &managed[i]
		size, found := d.out.recommended[c.Name]
		if !found || !c.policy.Sizing.Mode.SizesNewPods() {
			continue
		}
		spec, _ := constraints.Find(d.s.Template, c.Name)
		want, have := size, constraints.SizeOf(&spec.Resources)
		a := constraints.DesiredSize{
			Container: c.Name, Base: have, Want: want, NeverLower: c.policy.SizePolicy().DecreaseNever,
		}
		if have.Limit == 0 {
			a.Want, a.PodLevelShare = have, want
			if have.Request > 0 && want.Request > 0 {
				a.Want.Request = want.Request
			}
		}
		asks = append(asks, a)
	}
	whole := constraints.WholeOf(d.s.Template, base, asks)
	text := ""
	switch {
	case whole.FixedBecause != "":
		text = "the whole pod (spec.resources) keeps its size: " + whole.FixedBecause
	case whole.Why != "":
		text = "new pods as a whole (spec.resources) get " + whole.Why
	case whole.KeptBecause != "":
		text = fmt.Sprintf("the whole pod keeps its limit of %s (spec.resources.limits.memory): %s",
			whole.Limit, whole.KeptBecause)
	default:
		return
	}
	for _, a := range asks {
		if a.Want == a.Base && a.PodLevelShare == (memory.Size{}) {
			continue
		}
		for i := range d.out.status.Containers {
			if c := &d.out.status.Containers[i]; c.Container == a.Container {
				c.Reasons = append(head(c.Reasons, 15), text)
			}
		}
	}
}
