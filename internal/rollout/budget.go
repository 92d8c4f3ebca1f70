// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

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

// restartsFor reports whether the kubelet has to restart a container for a step.
func (p *Pod) restartsFor(st *Step) bool {
	for _, c := range p.Containers {
		if _, asked := st.To[c.Name]; asked && c.RestartsOnResize {
			return true
		}
	}
	return false
}

// overBudget says why the pod must not be disturbed now; empty: it may be. One that does not serve anyway is no loss,
// unless its limit is lowered: then only what memfit changes counts. begun: its own change is among those.
func (d *decider) overBudget(pod *Pod, lowering, begun bool) string {
	var own types.UID
	if begun {
		own = pod.UID
	}
	a := d.State.Availability(d.Pods, 0, own)
	if !pod.serves() && !lowering {
		a.Wanted = a.Serving + a.Changing
	}
	return a.TooFew(d.Policy.MaxUnavailable)
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
		if why = cmp.Or(d.overBudget(pod, false, false), d.overChangeBudget(cost)); why != "" {
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
