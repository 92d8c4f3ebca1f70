// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// Candidate is a pod to replace by a new one of the same size (drift.action: Restart).
type Candidate struct {
	Pod            string
	UID            types.UID
	Why            string
	Measured       time.Time // when the pod's use was read
	WorkingSetOnly bool      // the reading includes page cache
	Cause          RestartDemand
}

// RestartDemand is the demand of the container for which a pod is restarted.
type RestartDemand struct {
	Container string       `json:"container"`
	Demand    memory.Bytes `json:"demand"`
}

// maxRestarts bounds the restarts in the state, of 100 bytes each. It is the maximum of drift.maxPerDay.
const maxRestarts = 100

// PastRestart is a pod that was evicted to restart it.
type PastRestart struct {
	Pod   string        `json:"pod"`
	UID   types.UID     `json:"uid"`
	At    time.Time     `json:"at"`
	Cause RestartDemand `json:"held,omitzero"`
}

// restartsOf returns the restarts within a period, such as the last day.
func restartsOf(last period.Evidence, all []PastRestart, now time.Time) []PastRestart {
	return slices.DeleteFunc(slices.Clone(all), func(r PastRestart) bool { return period.Of(now.Sub(r.At)) >= last })
}

// evictionTimeout is the age after which an eviction counts as failed if its pod is present and not terminating.
const evictionTimeout = time.Minute

// evicted records that the eviction of the pod to restart was sent.
func (s *State) evicted(uid types.UID) {
	if s.Restart == nil || s.Restart.UID != uid || s.Restart.Phase == AwaitingSuccessor {
		return
	}
	st := *s.Restart
	st.Phase = AwaitingSuccessor
	s.Restart = &st
	past := PastRestart{Pod: st.Pod, UID: st.UID, At: st.At, Cause: st.Held}
	s.PastRestarts = newest(append(slices.Clip(s.PastRestarts), past), maxRestarts)
}

// followRestart ends the current restart when the successor is ready or successorTimeout has passed.
func (o *observation) followRestart() {
	st := o.state.Restart
	if st == nil {
		return
	}
	waited, pod := o.Now.Sub(st.At), o.pods[st.UID]
	if pod != nil && !pod.Terminating {
		if st.Phase == AwaitingSuccessor && waited >= evictionTimeout {
			o.state.Restart = nil
		}
		return // if the eviction was not sent, Decide decides again
	}
	if o.state.evicted(st.UID); pod != nil {
		return
	}
	for i := range o.Pods {
		if next := &o.Pods[i]; next.serves() && st.Present.isNewer(next) {
			why := "instead of " + st.Pod + ": " + st.Why
			o.state.record(Change{Kind: Restarted, At: o.Now, Pod: next.Name, Why: why}, st.At)
			o.state.Restart = nil
			return
		}
	}
	if waited >= successorTimeout {
		o.state.Restart = nil // it counts as a restart anyway
	}
}

// restartsFor reports whether the kubelet must restart a container for the resize of a step.
func (p *Pod) restartsFor(st *Step) bool {
	return slices.ContainsFunc(p.sized(st.To), func(c Container) bool { return c.RestartsOnResize })
}

// decideRestart evicts the pod to restart, if the gates permit it. It first drops a restart that was not sent; if the
// pod to restart is another one now, only after evictionTimeout, because an earlier leader may have sent the eviction.
func (d *decider) decideRestart() {
	c, st := d.Restart, d.State.Restart
	if st != nil && st.Phase != AwaitingSuccessor && d.pods[st.UID] != nil &&
		(c != nil && c.UID == st.UID || d.Now.Sub(st.At) >= evictionTimeout) {
		d.State.dropRestart(st.UID)
	}
	if c == nil || d.pods[c.UID] == nil {
		return
	}
	d.requeueIn(recheckAfter)
	ch := &change{kind: restartPod, pod: d.pods[c.UID], evict: true}
	ch.c.Measured, ch.c.WorkingSetOnly = c.Measured, c.WorkingSetOnly
	if refused, _ := d.refusal(ch); refused != (Verdict{}) {
		d.restartHeld = refused.Message
		return
	}
	d.spend(ch.pod.cost(nil, true))
	d.State.Restart = &Step{
		Pod: c.Pod, UID: c.UID, At: toSeconds(d.Now), Phase: Evicting, Present: presentOf(d.Pods), Why: c.Why, Held: c.Cause,
	}
	d.actions = append(d.actions, Action{Pod: c.Pod, UID: c.UID, Evict: true, Restart: true, Why: c.Why})
}
