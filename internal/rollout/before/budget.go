// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package before

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
)

// Candidate is a pod that should make room for a fresh one (drift.action: Restart).
type Candidate struct {
	Pod string
	UID types.UID
	// Why says what is wrong with it.
	Why string
}

// Restarted is a pod that was evicted for a fresh one, until that one is ready.
type Restarted struct {
	Pod string    `json:"pod"`
	UID types.UID `json:"uid"`
	At  time.Time `json:"at"`
	// Present are the pods that were there then: the fresh one is none of them.
	Present present `json:"present,omitzero"`
	// Why says what was wrong with it.
	Why string `json:"why,omitempty"`
}

// stayed is after how long an eviction counts as not having happened, if its pod is there and not leaving.
const stayed = time.Minute

// followRestart waits until a fresh pod is ready.
func (o *observation) followRestart() {
	r := o.state.Restart
	if r == nil {
		return
	}
	waited := o.Now.Sub(r.At)
	if pod := o.pods[r.UID]; pod != nil {
		if !pod.Leaving && waited >= stayed {
			o.state.Restart = nil
		}
		return
	}
	for i := range o.Pods {
		if next := &o.Pods[i]; next.Ready && !next.Leaving && r.Present.before(next, r.At) {
			o.state.record(Change{Kind: Fresh, At: o.Now, Pod: next.Name, Why: "instead of " + r.Pod + ": " + r.Why}, r.At)
			o.state.Restart = nil
			return
		}
	}
	if waited >= successorPatience {
		o.state.Restart = nil // pods that are not ready count by themselves
	}
}

// disturbed are the pods that do not serve, or may not soon, because of memfit: evicted and not yet replaced, restarted
// for a resize, or watched as the first with a lower limit. down are those that do not serve for any other reason.
func (d *decider) disturbed() (caused, down int32) {
	counted := map[types.UID]bool{}
	if e := d.State.Rollout; e != nil {
		for i := range e.Steps {
			if d.disturbs(e, &e.Steps[i]) {
				counted[e.Steps[i].UID] = true
			}
		}
	}
	if r := d.State.Restart; r != nil {
		counted[r.UID] = true
	}
	caused = int32(len(counted)) //nolint:gosec // a count of pods
	for i := range d.Pods {
		if pod := &d.Pods[i]; !counted[pod.UID] && !pod.serves() {
			down++
		}
	}
	return caused, down
}

func (p *Pod) serves() bool { return p.Ready && !p.Leaving }

// disturbs reports whether a step keeps its pod from serving, or may do so.
func (d *decider) disturbs(e *Rollout, st *Step) bool {
	if e.Decrease && st.Confirmed.IsZero() || d.State.canary(st) {
		return true // the canary, and each lower limit until it is in force
	}
	if !st.Confirmed.IsZero() {
		return false
	}
	pod := d.pod(*st)
	return st.Evict || pod != nil && pod.restartsFor(st)
}

// restartsFor reports whether the kubelet has to restart a container for a step.
func (p *Pod) restartsFor(st *Step) bool {
	for _, c := range p.Containers {
		if _, asked := st.To[c.Name]; asked && c.RestartsOnResize {
			return true
		}
	}
	return false
}

// overBudget says why no further pod may be disturbed; empty: this one may. All that memfit does to running pods is
// counted here, and so are pods that do not serve for reasons of their own. One that does not serve anyway is no loss,
// unless its limit is lowered.
func (d *decider) overBudget(pod *Pod, lowering bool) string {
	most := max(d.Policy.MaxUnavailable, 1)
	caused, down := d.disturbed()
	if !pod.serves() && !lowering {
		down = 0
	}
	if caused+down < most {
		return ""
	}
	return fmt.Sprintf("%d of %d pods updating, %d not ready: maxUnavailable is %d", caused, len(d.Pods), down, most)
}

// TooFew says why one more pod must not be kept from serving, of so many that there are to be and that serve; empty: it
// may be. What [Decide] knows of are pods that run. One that has not been created, or that no node has taken, is none
// of them, so that a workload whose new pods find no room would lose one old pod after the other.
func TooFew(wanted, serving int, p Policy) string {
	most, away := int(max(p.MaxUnavailable, 1)), max(wanted-serving, 0)
	if away < most {
		return ""
	}
	return fmt.Sprintf(
		"%d of %s do not serve or are not there yet: maxUnavailable is %d", away, format.Count(wanted, "pod"), most,
	)
}

// noLongerAllowed reports whether a pod that is to be disturbed, and is counted already, would be one too many by now.
func (d *decider) noLongerAllowed(pod *Pod) bool {
	caused, down := d.disturbed()
	return pod.serves() && caused+down > max(d.Policy.MaxUnavailable, 1)
}

// restart lets a pod make room for a fresh one, if the budget that all changes share allows it.
func (d *decider) restart() {
	c := d.Restart
	if c == nil {
		return
	}
	pod := d.pod(Step{UID: c.UID})
	_, changing := d.State.step(c.UID)
	switch why := ""; {
	case pod == nil:
		return
	case d.outsideWindows() != "":
		d.restartHeld = d.outsideWindows()
	case d.State.Restart != nil:
		d.restartHeld = fmt.Sprintf(
			"pod %s was evicted at %s, and no fresh one is ready yet", d.State.Restart.Pod, format.Time(d.State.Restart.At),
		)
	case changing:
		d.restartHeld = "its size is being changed"
	case d.evicting():
		d.restartHeld = "another pod is evicted for its size: one at a time"
	default:
		cost := Spent{UID: c.UID, Pods: 1}
		if why = cmp.Or(d.overBudget(pod, false), d.overChangeBudget(cost)); why != "" {
			d.restartHeld = why
			break
		}
		d.spend(cost)
		d.State.Restart = &Restarted{Pod: c.Pod, UID: c.UID, At: stamp(d.Now), Present: presentOf(d.Pods), Why: c.Why}
		d.actions = append(d.actions, Action{Pod: c.Pod, UID: c.UID, Evict: true, Restart: true, Why: c.Why})
	}
	d.requeueIn(recheckAfter)
}

// evicting reports whether a pod was evicted for its size and its successor is not ready. If two were, it could not be
// told whose successor a new pod is.
func (d *decider) evicting() bool {
	if e := d.State.Rollout; e != nil {
		for _, st := range e.Steps {
			if st.Evict {
				return true
			}
		}
	}
	return false
}
