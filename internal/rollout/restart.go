// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/period"
)

// Candidate is a pod that should be replaced by a fresh one (drift.action: Restart).
type Candidate struct {
	Pod string
	UID types.UID
	// Why is what is wrong with it.
	Why string
	// Measured is when its memory was read; WorkingSetOnly: the reading contains page cache.
	Measured       time.Time
	WorkingSetOnly bool
}

// maxRestarts bounds the state: 100 bytes each. It is the most that drift.maxPerDay can be.
const maxRestarts = 100

// PastRestart is one pod that was evicted for a fresh one.
type PastRestart struct {
	Pod string    `json:"pod"`
	UID types.UID `json:"uid"`
	At  time.Time `json:"at"`
}

// lastDay returns the restarts since a day before now.
func lastDay(all []PastRestart, now time.Time) []PastRestart {
	return slices.DeleteFunc(slices.Clone(all), func(r PastRestart) bool { return period.Of(now.Sub(r.At)) >= period.Day })
}

// Restarted is a pod that was evicted for a fresh one, until that one is ready.
type Restarted struct {
	Pod string    `json:"pod"`
	UID types.UID `json:"uid"`
	At  time.Time `json:"at"`
	// Present are the pods that existed then: the fresh one is not among them.
	Present present `json:"present,omitzero"`
	// Why is what was wrong with it.
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

// restart lets a pod be replaced by a fresh one, if the gates allow it.
func (d *decider) restart() {
	c := d.Restart
	if c == nil {
		return
	}
	pod := d.pod(Step{UID: c.UID})
	if pod == nil {
		return
	}
	d.requeueIn(recheckAfter)
	ch := &change{kind: fresh, pod: pod, evict: true}
	if refused, _ := d.refusal(ch); refused != (Verdict{}) {
		d.restartHeld = refused.Message
		return
	}
	d.spend(ch.cost())
	done := PastRestart{Pod: c.Pod, UID: c.UID, At: stamp(d.Now)}
	d.State.PastRestarts = append(lastDay(d.State.PastRestarts, d.Now), done)
	d.State.Restart = &Restarted{Pod: c.Pod, UID: c.UID, At: stamp(d.Now), Present: presentOf(d.Pods), Why: c.Why}
	d.actions = append(d.actions, Action{Pod: c.Pod, UID: c.UID, Evict: true, Restart: true, Why: c.Why})
}
