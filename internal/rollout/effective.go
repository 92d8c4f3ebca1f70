// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// A resize that reaches the kubelet while the container is down may never reach the cgroup of the pod
// (kubernetes/kubernetes#138760, kubelets 1.34 to 1.37.0): the container's status shows the new limit, but the kernel
// OOM-kills at the old limit. memfit sends a raise immediately, because a status that is seconds old does not show
// whether the container is down. The raise also ends the kubelet's back-off, which it keeps for each size of a
// container. Until the raise is proven effective, memfit sends it again with a slightly different limit, because a
// kubelet ignores a repeated limit: first to each new instance, later with growing gaps while an instance runs.

const (
	// statusDelay is how long the kubelet may take to report the limit of the pod's cgroup. It syncs its containers every
	// second and writes a status after each change; its interval for other statuses is 10 s.
	statusDelay = 10 * time.Second
	// quickTries is how often a resize is sent again as soon as memfit sees that an instance started or ended. It takes
	// effect 200 ms later (Kubernetes 1.36), so it reaches an instance that runs for half a second. After a new limit, the
	// kubelet restarts a container without back-off.
	quickTries = 3
	// maxTries is how often a resize is sent if the pod may be evicted instead.
	maxTries = 3
	// maxTriesInPlace is how often a resize is sent if only users can delete the pod. After the quick tries, the gaps are
	// 20, 40 and 80 seconds, because a crash loop must not cause a loop of writes. All end within resizeTimeout.
	maxTriesInPlace = quickTries + 4
	// retryDelta is the difference between the limits of two tries.
	retryDelta = memory.MiB
)

// currentSize returns the size in the spec, with the effective limit if that is proven to be lower.
func currentSize(c Container) memory.Size {
	size := c.Spec
	if c.Effective > 0 && (size.Limit == 0 || c.Effective < size.Limit) {
		size.Limit = c.Effective
	}
	return size
}

// effectiveSize returns [currentSize] without a deferred resize.
func (p *Pod) effectiveSize(c Container) memory.Size {
	if p.Resize.Deferred {
		c.Spec = c.Actual
	}
	return currentSize(c)
}

// isDeferred reports whether a resize of the container is deferred.
func (p *Pod) isDeferred(c Container) bool { return p.effectiveSize(c) != currentSize(c) }

// sizeBefore returns the size that a new size replaces: the effective size, but with the limit in the spec if that is
// lower and the new size raises it.
func (p *Pod) sizeBefore(c Container, to memory.Size) memory.Size {
	size := p.effectiveSize(c)
	if limit := currentSize(c).Limit; to.Limit > limit {
		size.Limit = min(size.Limit, limit)
	}
	return size
}

// isEffective reports whether the kubelet reports sizes as effective.
func (p *Pod) isEffective(sizes map[string]memory.Size) bool {
	r := p.Resize
	return p.has(sizes, actual) && !r.InProgress && !r.Deferred && !r.Infeasible
}

// ineffective returns a container whose effective limit is proven to be below its new limit; false: none.
func (p *Pod) ineffective(to map[string]memory.Size) (Container, bool) {
	return p.first(to, func(c Container) bool { return c.Effective > 0 && c.Effective < to[c.Name].Limit })
}

// first returns the first container with an entry in sizes that matches; false: none.
func (p *Pod) first(sizes map[string]memory.Size, matches func(Container) bool) (Container, bool) {
	sized := p.sized(sizes)
	i := slices.IndexFunc(sized, matches)
	if i < 0 {
		return Container{}, false
	}
	return sized[i], true
}

// keepsCap reports whether a container's process keeps a heap cap that was set for a lower limit.
func (c *Container) keepsCap(limit memory.Bytes) bool { return 0 < c.CapFor && c.CapFor < limit }

// whyCapped returns why the process of a container cannot use the container's limit.
func (in *Input) whyCapped(pod *Pod, c *Container, limit memory.Bytes) string {
	text := fmt.Sprintf("container %s keeps the heap cap of %s that memfit set for a limit of %s, which neither a resize "+
		"nor a restart changes", c.Name, c.FrozenHeap, c.CapFor)
	if remedy := in.remedy(pod, limit); remedy != "" {
		return text + "; " + remedy
	}
	return text + "; the pod will be replaced"
}

// capped returns a container whose process cannot use its new, higher limit; false: none.
func (p *Pod) capped(st *Step) (Container, bool) {
	return p.first(st.To, func(c Container) bool {
		to := st.To[c.Name].Limit
		return to > st.From[c.Name].Limit && c.keepsCap(to)
	})
}

// doubtedUntil returns the time until which a raise may prove ineffective although the kubelet reports it as effective:
// Kubernetes 1.35 does so if the container ends within a second of its start.
func (p *Pod) doubtedUntil(to map[string]memory.Size) (until time.Time) {
	for _, c := range p.sized(to) {
		until = later(until, c.RevertibleUntil)
	}
	return until
}

// doubted reports whether a raise may still prove ineffective. It ignores a time too far ahead, which is left from
// before a clock was set back.
func (o *observation) doubted(st *Step, pod *Pod) bool {
	left := pod.doubtedUntil(st.To).Sub(o.Now)
	return 0 < left && left <= memory.RaiseLag
}

// notRunning returns a container that does not run now and whose limit a step raises; false: none.
func (p *Pod) notRunning(st *Step) (Container, bool) {
	return p.first(st.To, func(c Container) bool {
		return st.To[c.Name].Limit > st.From[c.Name].Limit && c.Started.IsZero()
	})
}

// instances returns a number that changes whenever an instance of a container with an entry in to starts or ends.
func (p *Pod) instances(to map[string]memory.Size) (n int32) {
	for _, c := range p.sized(to) {
		n += 2 * c.Restarts
		if c.Started.IsZero() {
			n++
		}
	}
	return n
}

// ignored reports whether the kubelet did not act on a resize for resizeTimeout, while the containers ran.
func (o *observation) ignored(st *Step, pod *Pod) bool {
	since := st.Request.At
	for _, c := range pod.sized(st.To) {
		since = later(since, c.Started)
	}
	_, down := pod.notRunning(st)
	return !down && o.Now.Sub(since) >= resizeTimeout
}

// briefTimeout is how long a resize may take to reach an instance of a container that ends within moments, if its pod
// may be evicted instead: the first minute of a back-off has three restarts.
const briefTimeout = time.Minute

// giveUpUnreached gives up a resize that reached no instance if the pod may be evicted instead; false: not given up.
func (o *observation) giveUpUnreached(st *Step, pod *Pod) bool {
	c, down := pod.notRunning(st)
	if !down || !c.EndedEarly || o.tries(pod, c) > 1 || o.Now.Sub(st.Request.At) < briefTimeout {
		return false
	}
	o.giveUp(st, v1alpha1.ReasonNotEffective, o.whyNotEffective(st, pod, c))
	return true
}

// handleIneffective gives up a resize that the container's status shows but that is proven ineffective, if another try
// is useless or would restart a container that must not restart. Otherwise, Decide sends the resize again.
func (o *observation) handleIneffective(st *Step, pod *Pod, c Container) (done bool) {
	late := c.EndedEarly && c.Started.IsZero() && o.Now.Sub(st.At) >= resizeTimeout // memfit sees no instance for a try
	protected := c.RestartsOnResize && !c.Started.IsZero() && (pod.Completes || pod.DoNotDisrupt != "")
	if o.Now.Sub(st.Request.At) < statusDelay || st.Request.Tries+1 < o.tries(pod, c) && !late && !protected {
		return false
	}
	why := o.whyNotEffective(st, pod, c)
	o.refuse(st, v1alpha1.ReasonNotEffective, why)
	o.found(NotResized, st, st.Pod, why, "%s", why)
	return true
}

// tries returns how often an ineffective resize is sent.
func (in *Input) tries(pod *Pod, c Container) int {
	switch {
	case !in.mayEvict(pod):
		return maxTriesInPlace
	case c.EndedEarly:
		return 1 // another try would reach an instance only by chance
	}
	return maxTries
}

// whyNotEffective returns why a resize is given up, and what users can do if memfit may not evict.
func (o *observation) whyNotEffective(st *Step, pod *Pod, c Container) string {
	effective := currentSize(c).Limit
	if effective >= st.To[c.Name].Limit {
		effective = st.From[c.Name].Limit // the kubelet has not reported the new limit either
	}
	text := fmt.Sprintf("container %s has a limit of %s, but %s is effective: a resize that reaches the kubelet while "+
		"the container is down does not reach its pod (kubernetes/kubernetes#138760, kubelets 1.34 to 1.37.0)",
		c.Name, st.To[c.Name].Limit, effective)
	if c.EndedEarly {
		text += ", and this one ends within moments of its start"
	}
	if remedy := o.remedy(pod, st.To[c.Name].Limit); remedy != "" {
		return text + "; " + remedy
	}
	return text + "; the pod will be replaced, and the new one gets the size when it is created"
}

// remedy returns what users can do about a pod that does not get its size; empty if memfit may evict it.
func (in *Input) remedy(pod *Pod, limit memory.Bytes) string {
	switch {
	case in.Policy.NoEvict != "":
		return fmt.Sprintf("delete pod %s and create it again with a limit of %s", pod.Name, limit)
	case in.Policy.NoWebhook:
		return fmt.Sprintf("set a limit of %s in the template of the workload", limit)
	case in.mayEvict(pod):
		return ""
	}
	return fmt.Sprintf("a new pod gets the size when it is created: kubectl -n %s delete pod %s", in.Namespace, pod.Name)
}

// resend changes the limit of a step slightly, so that its ineffective resize can be sent again; false: not now.
func (d *decider) resend(st *Step, pod *Pod) bool {
	c, ineffective := pod.ineffective(st.To)
	if !ineffective || st.Request.Tries+1 >= d.tries(pod, c) {
		return false
	}
	instances := pod.instances(st.To)
	if quick := st.Request.Tries < quickTries && instances != st.Request.Instances; !quick {
		gap := statusDelay << max(0, st.Request.Tries-quickTries+1)
		if c.Started.IsZero() || d.Now.Sub(st.Request.At) < gap {
			return false
		}
	}
	st.Request = request{At: toSeconds(d.Now), Spec: st.To, Instances: instances, Tries: st.Request.Tries + 1}
	st.To = map[string]memory.Size{}
	for name, size := range st.Request.Spec {
		if c, found := pod.container(name); found && c.Effective > 0 && c.Effective < size.Limit {
			size = d.withOtherLimit(c.Key(), size)
		}
		st.To[name] = size
	}
	return true
}

// withOtherLimit changes the limit by [retryDelta], because a kubelet ignores a repeated limit.
func (d *decider) withOtherLimit(of Key, size memory.Size) memory.Size {
	desired := d.Desired[of]
	same := size.Request == size.Limit
	more := size.Limit.Plus(retryDelta)
	if outOfBounds(memory.Size{Limit: more}, desired.Policy) || desired.Range.Max > 0 && more > desired.Range.Max {
		more = size.Limit.Minus(retryDelta)
	}
	size.Limit, size.Request = more, min(size.Request, more)
	if same {
		size.Request = more
	}
	return size
}
