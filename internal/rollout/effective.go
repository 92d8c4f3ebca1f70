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

// A resize that reaches the kubelet while the container is down may never reach the cgroup of its pod
// (kubernetes/kubernetes#138760, kubelets 1.34 to 1.37.0): the container's status shows the new limit, and the kernel
// kills at the old one. The status is too old, a second or several, to show whether the container is down, so a raise
// is sent immediately. It also ends the back-off, which the kubelet keeps for each size of a container. Until a resize
// is proven to be effective it is sent again, with another number, because a kubelet ignores a repeated one: first to
// each new instance, because only a running one passes it to its pod, and later with growing gaps.

const (
	// statusDelay is how long the kubelet may take to report the pod's cgroup: it syncs its containers every second and
	// writes a status after each change; 10 s is its own interval for other statuses.
	statusDelay = 10 * time.Second
	// quickTries is how often a resize is sent again as soon as the start or end of an instance is seen. It is effective
	// 200 ms after a start is seen (Kubernetes 1.36), so an instance that lives for half a second gets it. After a new
	// number, the kubelet restarts a container without delay.
	quickTries = 3
	// maxTries is how often a resize is sent if the pod may be evicted instead.
	maxTries = 3
	// maxTriesInPlace is how often if users would have to delete the pod: after the quick ones with gaps of 20, 40 and 80
	// seconds, because a crash loop must not cause a loop of writes. The last is given up within resizeTimeout.
	maxTriesInPlace = quickTries + 4
	// anotherNumber is the difference of a limit that is sent again.
	anotherNumber = memory.MiB
)

// currentSize returns the size in the spec, with a lower limit if that is proven to be effective.
func currentSize(c Container) memory.Size {
	size := c.Spec
	if c.Effective > 0 && (size.Limit == 0 || c.Effective < size.Limit) {
		size.Limit = c.Effective
	}
	return size
}

// effectiveSize returns have without a resize that waits for memory of the node.
func (p *Pod) effectiveSize(c Container) memory.Size {
	if p.Resize.Deferred {
		c.Spec = c.Actual
	}
	return currentSize(c)
}

// isDeferred reports whether a resize of the container waits for memory of the node.
func (p *Pod) isDeferred(c Container) bool { return p.effectiveSize(c) != currentSize(c) }

// sizeBefore returns the size that a new one replaces: the effective one, with the limit in the spec if that is lower
// and is to be raised.
func (p *Pod) sizeBefore(c Container, to memory.Size) memory.Size {
	size := p.effectiveSize(c)
	if asked := currentSize(c).Limit; to.Limit > asked {
		size.Limit = min(size.Limit, asked)
	}
	return size
}

// isEffective reports whether the kubelet reports sizes as effective.
func (p *Pod) isEffective(sizes map[string]memory.Size) bool {
	r := p.Resize
	return p.has(sizes, actual) && !r.InProgress && !r.Deferred && !r.Infeasible
}

// ineffective returns a container whose effective limit is proven to be below its new one.
func (p *Pod) ineffective(to map[string]memory.Size) (Container, bool) {
	return p.first(to, func(c Container) bool { return c.Effective > 0 && c.Effective < to[c.Name].Limit })
}

// first returns the first of the containers that get a size for which a condition is true.
func (p *Pod) first(of map[string]memory.Size, is func(Container) bool) (Container, bool) {
	sized := p.sized(of)
	i := slices.IndexFunc(sized, is)
	if i < 0 {
		return Container{}, false
	}
	return sized[i], true
}

// keepsCap reports whether a container's process keeps a heap cap for less than a limit.
func (c *Container) keepsCap(limit memory.Bytes) bool { return 0 < c.CapFor && c.CapFor < limit }

// whyCapped returns why the limit that a container has is not effective for its process.
func (in *Input) whyCapped(pod *Pod, c *Container, limit memory.Bytes) string {
	text := fmt.Sprintf("container %s keeps the heap cap of %s that memfit set for a limit of %s, which neither a resize "+
		"nor a restart changes", c.Name, c.FrozenHeap, c.CapFor)
	if remedy := in.remedy(pod, limit); remedy != "" {
		return text + "; " + remedy
	}
	return text + "; the pod will be replaced"
}

// capped returns a container that has a higher limit now, and whose process cannot use it.
func (p *Pod) capped(st *Step) (Container, bool) {
	return p.first(st.To, func(c Container) bool {
		to := st.To[c.Name].Limit
		return to > st.From[c.Name].Limit && c.keepsCap(to)
	})
}

// doubtedUntil returns when a raise can no longer prove ineffective: Kubernetes 1.35 reports a raise of a
// container that dies within a second of its start as effective when it is not, and an effective raise is not sent
// again.
func (p *Pod) doubtedUntil(to map[string]memory.Size) (until time.Time) {
	for _, c := range p.sized(to) {
		until = later(until, c.DoubtedUntil)
	}
	return until
}

// doubted reports whether a raise may turn out to be ineffective. A time too far ahead is from before a clock was set
// back.
func (o *observation) doubted(st *Step, pod *Pod) bool {
	left := pod.doubtedUntil(st.To).Sub(o.Now)
	return 0 < left && left <= memory.RaiseReaches
}

// notRunning returns a container that does not run now and whose limit a step raises.
func (p *Pod) notRunning(st *Step) (Container, bool) {
	return p.first(st.To, func(c Container) bool {
		return st.To[c.Name].Limit > st.From[c.Name].Limit && c.Started.IsZero()
	})
}

// instances counts the starts and ends of the containers that get a size: it changes when another instance runs, or
// none.
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

// reachedNoInstance gives up a resize that reached no instance, if the pod may be evicted instead.
func (o *observation) reachedNoInstance(st *Step, pod *Pod) bool {
	c, down := pod.notRunning(st)
	if !down || !c.Brief || o.tries(pod, c) > 1 || o.Now.Sub(st.Request.At) < briefTimeout {
		return false
	}
	o.giveUp(st, v1alpha1.ReasonNotEffective, o.whyNotEffective(st, pod, c))
	return true
}

// unproven gives up a resize that the container's status shows and that is not effective, or leaves it to Decide, which
// sends it again unless that would restart what must not be.
func (o *observation) handleIneffective(st *Step, pod *Pod, c Container) (done bool) {
	late := c.Brief && c.Started.IsZero() && o.Now.Sub(st.At) >= resizeTimeout // no instance is seen for another try
	kept := c.RestartsOnResize && !c.Started.IsZero() && (pod.Completes || pod.Undisturbed != "")
	if o.Now.Sub(st.Request.At) < statusDelay || st.Request.Tries+1 < o.tries(pod, c) && !late && !kept {
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
	case c.Brief:
		return 1 // only by chance would it reach an instance
	}
	return maxTries
}

// whyNotEffective returns why a resize is given up, and what users can do if memfit may not evict.
func (o *observation) whyNotEffective(st *Step, pod *Pod, c Container) string {
	held := currentSize(c).Limit
	if held >= st.To[c.Name].Limit {
		held = st.From[c.Name].Limit // the kubelet has not reported it either
	}
	text := fmt.Sprintf("container %s has a limit of %s and is held to %s: a resize that reaches the kubelet "+
		"while the container is down does not reach its pod (kubernetes/kubernetes#138760, kubelets 1.34 to 1.37.0)",
		c.Name, st.To[c.Name].Limit, held)
	if c.Brief {
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

// resend prepares a step to send its ineffective resize again, with another number; false: not now.
func (d *decider) resend(st *Step, pod *Pod) bool {
	c, held := pod.ineffective(st.To)
	if !held || st.Request.Tries+1 >= d.tries(pod, c) {
		return false
	}
	lives := pod.instances(st.To)
	if quick := st.Request.Tries < quickTries && lives != st.Request.Instances; !quick {
		gap := statusDelay << max(0, st.Request.Tries-quickTries+1)
		if c.Started.IsZero() || d.Now.Sub(st.Request.At) < gap {
			return false
		}
	}
	st.Request = request{At: toSeconds(d.Now), Spec: st.To, Instances: lives, Tries: st.Request.Tries + 1}
	st.To = map[string]memory.Size{}
	for name, size := range st.Request.Spec {
		if c, found := pod.container(name); found && c.Effective > 0 && c.Effective < size.Limit {
			size = d.withAnotherNumber(c.Key(), size)
		}
		st.To[name] = size
	}
	return true
}

// withAnotherNumber returns nearly the same size, because a kubelet ignores a repeated number.
func (d *decider) withAnotherNumber(of Key, size memory.Size) memory.Size {
	desired := d.Desired[of]
	same := size.Request == size.Limit
	more := size.Limit.Plus(anotherNumber)
	if outOfBounds(memory.Size{Limit: more}, desired.Policy) || desired.Range.Max > 0 && more > desired.Range.Max {
		more = size.Limit.Minus(anotherNumber)
	}
	size.Limit, size.Request = more, min(size.Request, more)
	if same {
		size.Request = more
	}
	return size
}
