// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rescue"
)

// Rescue is the data about a container that is about to be OOM-killed, as an agent's alarm reports.
type Rescue struct {
	Known      rescue.Known
	Policy     rescue.Policy
	Size       memory.Size // in the pod's spec
	Guaranteed bool        // the request must equal the limit to keep the QoS class
}

// RescueOf returns the input of a loan decision, except the change budget and the node. found is false if memfit does
// not size the container, or the pod is ending or has ended.
func RescueOf(
	p *profile.Profile, pod *corev1.Pod, container string, f *constraints.Facts, paused string,
) (r Rescue, found bool) {
	managed := Managed(p, pod)
	i := slices.IndexFunc(managed, func(c managedContainer) bool { return c.Name == container })
	if i < 0 || pod.DeletionTimestamp != nil || ended(pod) {
		return r, false
	}
	c := &managed[i]
	spec, status := constraints.Find(pod, container)
	r.Size, r.Guaranteed = constraints.SizeOf(&spec.Resources), pod.Status.QOSClass == corev1.PodQOSGuaranteed
	if resizeOf(pod).Deferred && !r.Guaranteed { // the deferred request would delay the loan
		r.Size.Request = min(r.Size.Request, c.current.Request)
	}
	r.Known = rescue.Known{Limit: c.current.Limit, Asked: r.Size.Limit}
	if status != nil && status.State.Running != nil {
		_, r.Known.ID, _ = strings.Cut(status.ContainerID, "://")
	}
	r.Policy = rescue.Policy{
		Enabled: c.policy.Rescues(), Paused: paused != "", Conflict: f.Conflict != "",
		RestartsOnResize: oom.RestartsOnResize(spec),
	}
	r.addBound(rescue.LimitMax, c.policy.SizePolicy().LimitMax)
	r.addBound(rescue.PodLimit, c.podLimit)
	refused := func(limit memory.Bytes) string {
		return f.Refusal(pod, map[string]memory.Size{container: r.With(limit)})
	}
	most, why := constraints.HighestAccepted(r.Size.Limit, r.Size.Limit.Percent(rescue.MaxPercent), refused)
	if why != "" {
		r.Policy.Bounds = append(r.Policy.Bounds, rescue.Bound{Cause: rescue.LimitRange, Most: most, Why: why})
	}
	if left := f.Quota.Limits; left > 0 {
		r.Policy.Shares = append(r.Policy.Shares, rescue.Share{Cause: rescue.ResourceQuota, Left: left})
	}
	if left := f.Quota.Requests; left > 0 && r.Guaranteed {
		r.Policy.Shares = append(r.Policy.Shares, rescue.Share{Cause: rescue.ResourceQuota, Left: left})
	}
	return r, true
}

// addBound adds an upper bound of the limit; 0: no bound.
func (r *Rescue) addBound(cause rescue.Cause, most memory.Bytes) {
	if most > 0 {
		r.Policy.Bounds = append(r.Policy.Bounds, rescue.Bound{Cause: cause, Most: most})
	}
}

// With returns the size with the given limit.
func (r *Rescue) With(limit memory.Bytes) memory.Size {
	size := memory.Size{Request: r.Size.Request, Limit: limit}
	if r.Guaranteed {
		size.Request = limit
	}
	return size
}

// DemandOf returns the last demand of a container that was read from its kubelet, and its time; zero: unknown.
func (st *State) DemandOf(c memory.ContainerRef) (demand memory.Bytes, at time.Time) {
	in := st.instance(&c)
	if in == nil || in.recent.workingSetOnly {
		return 0, time.Time{}
	}
	return in.recent.now(), in.recent.lastAt()
}
