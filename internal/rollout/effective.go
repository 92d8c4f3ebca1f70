// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// A resize that reaches the kubelet while the container is down may never reach the cgroup of its pod
// (kubernetes/kubernetes#138760, kubelets 1.34 to 1.37.0): the container's status shows the new limit, and the kernel
// kills at the old one. Whether the container is down is known too late, because its status is a second old, and on a
// busy node several. So a raise is sent immediately. It also ends the back-off: the kubelet keeps one for each size of
// a container. What was sent is done only when it is proven to be effective. Otherwise it is sent again, with another
// number, because a kubelet ignores a number that it has: first to each instance that starts after it, because only an
// instance that runs when the number arrives passes it to its pod, and later with growing gaps.

const (
	// settle is how long the kubelet may take to report what the pod's cgroup has: it syncs its containers every second
	// and writes a status after each change; 10 s is its own interval for other statuses.
	settle = 10 * time.Second
	// quickTries is how often a resize is sent again as soon as another instance is seen, or the end of the one that it
	// was sent to. A resize is effective 200 ms after the start of an instance is seen (Kubernetes 1.36), so that one
	// that lives for half a second gets it. The kubelet restarts a container without delay after a number that it has not
	// ended with before.
	quickTries = 3
	// maxTries is how often a resize is sent where the pod may be evicted instead.
	maxTries = 3
	// maxTriesInPlace is how often where it may not be, and people would have to delete the pod: after the quick ones 20,
	// 40 and 80 seconds after the one before, because a crash loop must not become a loop of writes. The last is given up
	// within patience.
	maxTriesInPlace = quickTries + 4
	// anotherNumber is by how much the limit differs when it is sent again: the least that people can still read.
	anotherNumber = memory.MiB
)

// have is the effective size: what the spec asks for, with the limit that its pod really lets it have.
func have(c Container) memory.Size {
	size := c.Spec
	if c.Effective > 0 && (size.Limit == 0 || c.Effective < size.Limit) {
		size.Limit = c.Effective
	}
	return size
}

// effective is have without what waits for memory of the node.
func (p *Pod) effective(c Container) memory.Size {
	if p.Resize.Deferred {
		c.Spec = c.Actual
	}
	return have(c)
}

// waits reports whether what is asked for a container waits for memory of the node.
func (p *Pod) waits(c Container) bool { return p.effective(c) != have(c) }

// before is the size that another takes the place of: what is effective, or what is asked for where that is to be more.
// The latter is not lowered, whatever the kubelet has come to.
func (p *Pod) before(c Container, to memory.Size) memory.Size {
	size := p.effective(c)
	if asked := have(c).Limit; to.Limit > asked {
		size.Limit = min(size.Limit, asked)
	}
	return size
}

// inForce reports whether the kubelet has made sizes effective that the spec has, and nothing shows that it has not.
func (p *Pod) inForce(sizes map[string]memory.Size) bool {
	r := p.Resize
	return p.has(sizes, actual) && !r.InProgress && !r.Deferred && !r.Infeasible
}

// held is a container that is to have more than its pod lets it have.
func (p *Pod) held(to map[string]memory.Size) (Container, bool) {
	for _, c := range p.Containers {
		if size, asked := to[c.Name]; asked && c.Effective > 0 && c.Effective < size.Limit {
			return c, true
		}
	}
	return Container{}, false
}

// keepsCap reports whether a container's process goes on with a heap cap for less than a limit.
func (c *Container) keepsCap(limit memory.Bytes) bool { return 0 < c.CapFor && c.CapFor < limit }

// whyCapped is why the limit that a container has is not effective for its process.
func (in *Input) whyCapped(pod *Pod, c *Container, limit memory.Bytes) string {
	text := fmt.Sprintf("container %s keeps the heap cap of %s that memfit set for a limit of %s, which neither a resize "+
		"nor a restart changes", c.Name, c.FrozenHeap, c.CapFor)
	if remedy := in.remedy(pod, limit); remedy != "" {
		return text + "; " + remedy
	}
	return text + "; the pod is to be replaced"
}

// capped is a container that has a higher limit now, and whose process cannot use it.
func (p *Pod) capped(st *Step) (Container, bool) {
	for _, c := range p.sized(st.To) {
		if to := st.To[c.Name].Limit; to > st.From[c.Name].Limit && c.keepsCap(to) {
			return c, true
		}
	}
	return Container{}, false
}

// doubtedUntil is how long a raise may yet turn out not to be effective: until then it is not reported as done.
// Kubernetes 1.35 reports a raise of a container that dies within a second of its start as done when it is not; and
// what is done is not sent again, so that the container kept dying at its old limit for one to three minutes.
func (p *Pod) doubtedUntil(to map[string]memory.Size) (until time.Time) {
	for _, c := range p.sized(to) {
		until = later(until, c.DoubtedUntil)
	}
	return until
}

// doubted reports whether a raise may yet turn out not to be effective. A doubt that would last longer than doubts do
// is of a clock that went back, and holds nothing up.
func (o *observation) doubted(st *Step, pod *Pod) bool {
	left := pod.doubtedUntil(st.To).Sub(o.Now)
	return 0 < left && left <= memory.RaiseReaches
}

// down is a container whose limit a step raises and that does not run now.
func (p *Pod) down(st *Step) (Container, bool) {
	for _, c := range p.Containers {
		if size, asked := st.To[c.Name]; asked && size.Limit > st.From[c.Name].Limit && c.Started.IsZero() {
			return c, true
		}
	}
	return Container{}, false
}

// lives counts the starts and ends of the containers that get a size: it is another number when another instance runs,
// or none.
func (p *Pod) lives(to map[string]memory.Size) (n int32) {
	for _, c := range p.sized(to) {
		n += 2 * c.Restarts
		if c.Started.IsZero() {
			n++
		}
	}
	return n
}

// ignored reports whether the kubelet did nothing about a resize for as long as it has patience, while the containers
// ran: that one is down is not the kubelet's doing.
func (o *observation) ignored(st *Step, pod *Pod) bool {
	since := st.Request.At
	for _, c := range pod.sized(st.To) {
		since = later(since, c.Started)
	}
	_, down := pod.down(st)
	return !down && o.Now.Sub(since) >= patience
}

// untilMet is for how long a container that ends within moments is tried to be met where its pod may be replaced: three
// restarts come within the first minute of a back-off.
const untilMet = time.Minute

// notMet gives up a resize that no instance was seen with, where the pod may be replaced instead.
func (o *observation) notMet(st *Step, pod *Pod) bool {
	c, down := pod.down(st)
	if !down || !c.Brief || o.tries(pod, c) > 1 || o.Now.Sub(st.Request.At) < untilMet {
		return false
	}
	o.giveUp(st, v1alpha1.ReasonNotEffective, o.whyNotEffective(st, pod, c))
	return true
}

// unproven deals with a resize that the container's status shows and the cgroup of its pod is not proven to have: it is
// given up, or left to Decide, which sends it again.
func (o *observation) unproven(st *Step, pod *Pod, c Container) (done bool) {
	late := c.Brief && c.Started.IsZero() && o.Now.Sub(st.At) >= patience // it is not seen running for another try
	if o.Now.Sub(st.Request.At) < settle || st.Request.Tries+1 < o.tries(pod, c) && !late {
		return false
	}
	why := o.whyNotEffective(st, pod, c)
	o.refuse(st, v1alpha1.ReasonNotEffective, why)
	o.found(NotResized, st, st.Pod, why, "%s", why)
	return true
}

// tries is how often a resize is sent that the container's status shows and its pod does not have.
func (in *Input) tries(pod *Pod, c Container) int {
	switch {
	case !in.mayEvict(pod):
		return maxTriesInPlace
	case c.Brief:
		return 1 // it is met by luck only, and there is a way that needs none
	}
	return maxTries
}

// whyNotEffective is why a resize is given up, and what users can do where memfit may not act.
func (o *observation) whyNotEffective(st *Step, pod *Pod, c Container) string {
	held := have(c).Limit
	if held >= st.To[c.Name].Limit {
		held = st.From[c.Name].Limit // the kubelet has not even reported it
	}
	text := fmt.Sprintf("container %s is to have a limit of %s and is held to %s: a resize that reaches the kubelet "+
		"while the container "+
		"is down does not reach its pod (kubernetes/kubernetes#138760, kubelets 1.34 to 1.37.0)",
		c.Name, st.To[c.Name].Limit, held)
	if c.Brief {
		text += ", and this one ends within moments of its start"
	}
	if remedy := o.remedy(pod, st.To[c.Name].Limit); remedy != "" {
		return text + "; " + remedy
	}
	return text + "; the pod is to be replaced, and the new one gets the size when it is created"
}

// remedy is what people can do about a pod that does not get its size; empty where memfit may replace it.
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

// resend asks again for what is not effective, with another number.
func (d *decider) resend(st *Step, pod *Pod) bool {
	c, held := pod.held(st.To)
	if !held || st.Request.Tries+1 >= d.tries(pod, c) {
		return false
	}
	lives := pod.lives(st.To)
	if quick := st.Request.Tries < quickTries && lives != st.Request.Lives; !quick {
		gap := settle << max(0, st.Request.Tries-quickTries+1)
		if c.Started.IsZero() || d.Now.Sub(st.Request.At) < gap {
			return false
		}
	}
	st.Request = request{At: stamp(d.Now), Spec: st.To, Lives: lives, Tries: st.Request.Tries + 1}
	st.To = map[string]memory.Size{}
	for name, size := range st.Request.Spec {
		if c, found := pod.container(name); found && c.Effective > 0 && c.Effective < size.Limit {
			size = d.another(c.Key(), size)
		}
		st.To[name] = size
	}
	return true
}

// another is nearly the same size: a kubelet does nothing about numbers that it has.
func (d *decider) another(of Key, size memory.Size) memory.Size {
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
