// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package before

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// A resize that reaches the kubelet while the container is down may never reach the cgroup of its pod
// (kubernetes/kubernetes#138760, kubelets 1.34 to 1.37.0): the container's status shows the new limit, and the kernel
// kills at the old one. So a raise is sent while the container runs, what was sent is done only when it is proven to be
// effective, and what is not is sent again with another number: a kubelet takes the same numbers for nothing new.

const (
	// settle is how long the kubelet may take to report what the pod's cgroup has: it looks at its containers every second
	// and writes a status after each change; 10 s is its own interval for statuses that nothing asked for.
	settle = 10 * time.Second
	// maxTries is how often a resize is sent where the pod may be evicted instead. A container that lives for longer than
	// the kubelet takes to act, a second or two, is met by the first; two more rule out bad luck. Between them is twice
	// the time each: a crash loop must not become a loop of writes.
	maxTries = 3
	// maxTriesInPlace is how often where it may not be, and people would have to delete the pod: 0, 10, 30, 70 and 150
	// seconds after the first, the last that is given up within patience. A container that lives for a moment is met by
	// each only when the kubelet comes to it within that moment.
	maxTriesInPlace = 5
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

// held is a container that is to have more than its pod lets it have.
func (p *Pod) held(to map[string]memory.Size) (Container, bool) {
	for _, c := range p.Containers {
		if size, asked := to[c.Name]; asked && c.Effective > 0 && c.Effective < size.Limit {
			return c, true
		}
	}
	return Container{}, false
}

// doubtedUntil is how long a raise may yet turn out not to be effective: until then it is not told as done. Told at
// once, it was told wrong on Kubernetes 1.35, of a container that dies within a second of its start; and what is done
// is not sent again, so that the container died on at its old limit for a minute to three.
func (p *Pod) doubtedUntil(to map[string]memory.Size) (until time.Time) {
	for _, c := range p.Containers {
		if _, asked := to[c.Name]; asked && until.Before(c.DoubtedUntil) {
			until = c.DoubtedUntil
		}
	}
	return until
}

// doubted reports whether a raise may yet turn out not to be effective. A doubt that would last longer than doubts do
// is of a clock that went back, and holds nothing up.
func (o *observation) doubted(st *Step, pod *Pod) bool {
	left := pod.doubtedUntil(st.To).Sub(o.Now)
	return 0 < left && left <= memory.RaiseReaches
}

// down is a container whose limit is to be raised and that does not run now, so that a resize may never take effect.
func (p *Pod) down(to map[string]memory.Size) (Container, bool) {
	for _, c := range p.Containers {
		if size, asked := to[c.Name]; asked && size.Limit > have(c).Limit && c.Started.IsZero() {
			return c, true
		}
	}
	return Container{}, false
}

// waits reports whether a step was written down and not sent, because its container does not run.
func (p *Pod) waits(st *Step) bool {
	_, down := p.down(st.To)
	return down && !p.has(st.To, spec)
}

// sent is when a step was asked for last. One that waits for its container was not, and counts from its beginning.
func (st *Step) sent() time.Time {
	if st.Sent.IsZero() {
		return st.At
	}
	return st.Sent
}

// never gives up a resize that could not be sent: the kubelet says that the container ends within moments of its start,
// and it was not seen running for longer than it may take.
func (o *observation) never(st *Step, pod *Pod) bool {
	c, down := pod.down(st.To)
	if !down || !c.Brief || o.Now.Sub(st.At) < o.Policy.untilMet(c) {
		return false
	}
	o.notEffective(st, c)
	return true
}

// untilMet is for how long a container is tried to be met running. One that ends within moments is met by luck only:
// where its pod may be replaced, the three restarts within the first minute of a back-off are enough of it.
func (p *Policy) untilMet(c Container) time.Duration {
	if p.tries(c) == 1 {
		return time.Minute
	}
	return patience
}

// unproven deals with a resize that the container's status shows and the cgroup of its pod is not proven to have: it is
// given up, or left to Decide, which sends it again.
func (o *observation) unproven(st *Step, c Container) (done bool) {
	late := c.Brief && c.Started.IsZero() && o.Now.Sub(st.At) >= patience // it is not seen running for another try
	if o.Now.Sub(st.sent()) < settle || st.Tries+1 < o.Policy.tries(c) && !late {
		return false
	}
	o.notEffective(st, c)
	return true
}

// tries is how often a resize is sent that the container's status shows and its pod does not have.
func (p *Policy) tries(c Container) int {
	switch {
	case !p.Evict || p.NoEvict != "" || p.OnlyRaise != "":
		return maxTriesInPlace
	case c.Brief:
		return 1 // it is met by luck only, and there is a way that needs none
	}
	return maxTries
}

// notEffective gives a resize up, and says what people have to know, and to do where memfit may not.
func (o *observation) notEffective(st *Step, c Container) {
	why := o.whyNotEffective(st, c)
	o.state.refuse(Refusal{
		Pod: st.Pod, UID: st.UID, Until: o.Now.Add(refusalHold), Reason: v1alpha1.ReasonNotEffective, Why: why, Sizes: st.To,
	})
	o.found(NotResized, st, "%s", why)
}

func (o *observation) whyNotEffective(st *Step, c Container) string {
	text := fmt.Sprintf("container %s is to have a limit of %s and is held to %s: a resize that reaches the kubelet "+
		"while the container "+
		"is down does not reach its pod (kubernetes/kubernetes#138760, kubelets 1.34 to 1.37.0)",
		c.Name, st.To[c.Name].Limit, have(c).Limit)
	if c.Brief {
		text += ", and this one ends within moments of its start"
	}
	if remedy := o.remedy(st.Pod, st.To[c.Name].Limit); remedy != "" {
		return text + "; " + remedy
	}
	return text + "; the pod is to be replaced, and the new one gets the size when it is created"
}

// remedy is what people can do about a pod that does not get its size; empty where memfit may replace it.
func (in *Input) remedy(pod string, limit memory.Bytes) string {
	switch {
	case in.Policy.NoEvict != "":
		return fmt.Sprintf("delete pod %s and create it again with a limit of %s", pod, limit)
	case in.Policy.Evict && in.Policy.OnlyRaise == "":
		return ""
	}
	return fmt.Sprintf("a new pod gets the size when it is created: kubectl -n %s delete pod %s", in.Namespace, pod)
}

// resend asks again for what is not effective, while the container runs, with another number.
func (d *decider) resend(st *Step, pod *Pod) bool {
	c, held := pod.held(st.To)
	if !held || c.Started.IsZero() || st.Tries+1 >= d.Policy.tries(c) || d.Now.Sub(st.sent()) < settle<<st.Tries {
		return false
	}
	st.Last, st.Sent = st.To, stamp(d.Now)
	st.Tries++
	st.To = map[string]memory.Size{}
	for name, size := range st.Last {
		if c, found := pod.container(name); found && c.Effective > 0 && c.Effective < size.Limit {
			size = d.another(c.key(), size)
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
