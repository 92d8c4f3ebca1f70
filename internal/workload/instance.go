// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
)

// nearLimit reports whether the instance uses most of its limit and grows.
func (i *instance) nearLimit() bool {
	return i != nil && i.limit > 0 && i.recent.now() >= i.limit.Percent(urgentPercent) && i.recent.rises()
}

// instanceKey identifies a running container: a pod's name and namespace follow from its UID.
type instanceKey struct {
	uid       types.UID
	container string
}

func keyOf(c *memory.ContainerRef) instanceKey { return instanceKey{c.UID, c.Container} }

// instance returns the instance of a container; nil if it is unknown.
func (st *State) instance(c *memory.ContainerRef) *instance { return st.instances[keyOf(c)] }

func (st *State) instanceIn(pod *corev1.Pod, container string) *instance {
	return st.instances[instanceKey{pod.UID, container}]
}

// instance is one running container.
type instance struct {
	program  string // empty: not known yet
	restarts int32
	// capKnown is true if heapCap was read, stallsKnown if a current stall in the ledger was restored, and ended if the
	// instance has ended.
	capKnown, stallsKnown, ended bool
	started                      memory.Instant
	peak                         memory.Bytes
	// limit is the effective limit; high is the usage from which the kernel throttles it ([oom.Observation.High]). 0:
	// none.
	limit, high memory.Bytes
	seen        memory.Instant
	// statusSeen is when its status was last read, by memfit's clock.
	statusSeen memory.Instant
	recent     readings
	// lows are its low points between collections; heapCap is the cap in its environment, 0: none.
	lows    history.Lows
	heapCap memory.Bytes
	stalls  oom.StallWatch
}

// noteLimits stores the limits of containers, and adds the previous limits to observations: the last seen limit, or the
// limit at creation. Call it before updating the ledger, so that each kill counts with the limit of its own pod.
func (st *State) recordLimits(observations []oom.Observation, now time.Time) {
	for i := range observations {
		o := &observations[i]
		in, program := st.instance(&o.Container), st.programs[keyOf(&o.Container)]
		if in == nil {
			in = &instance{restarts: o.Restarts, program: program.ID}
			st.instances[keyOf(&o.Container)] = in
		}
		o.Before = cmp.Or(in.limit, program.Created)
		in.limit, in.high, in.seen = o.Limit, o.High, memory.InstantOf(now)
	}
}

// settle processes ends of instances. Call it after updating the ledger, because it drops the peaks of ended instances.
func (st *State) processEnds(observations []oom.Observation, now time.Time) {
	for i := range observations {
		o := &observations[i]
		in := st.instance(&o.Container)
		if o.Restarts > in.restarts {
			in.restarts, in.ended, in.peak, in.recent, in.lows = o.Restarts, false, 0, readings{}, history.Lows{}
			if h := st.historyOf(in, o.Container.Container); h != nil {
				h.Restarted(o.Container, endOf(o, now))
			}
		}
		in.statusSeen = memory.InstantOf(now)
		in.ended = in.ended || in.endedIn(o)
	}
}

// endedIn reports whether a status shows that this instance, or a later one, has ended.
func (in *instance) endedIn(o *oom.Observation) bool {
	n := len(o.Ended)
	return n > 0 && o.Ended[n-1].Index >= in.restarts
}

func endOf(o *oom.Observation, now time.Time) time.Time {
	if n := len(o.Ended); n > 0 && !o.Ended[n-1].Finished.IsZero() {
		if at := o.Ended[n-1].Finished; at.Before(now) {
			return at
		}
	}
	return now
}

func (st *State) addSamples(samples []memory.Sample, now time.Time) {
	at := memory.InstantOf(now)
	for i := range samples {
		s := &samples[i]
		in := st.instance(&s.Container)
		if in == nil {
			in = &instance{program: st.programs[keyOf(&s.Container)].ID}
			st.instances[keyOf(&s.Container)] = in
		}
		in.seen = at
		if started := memory.InstantOf(s.Started); started > in.started {
			// a new process; the pod's status reports the end of the previous one
			in.started, in.peak, in.recent, in.lows = started, 0, readings{}, history.Lows{}
		}
		if s.HasRSS || s.Exact { // a working set contains page cache
			in.peak = max(in.peak, s.Demand())
		}
		in.recent.add(s)
		in.lows.Add(*s, in.started.Time())
		if h := st.historyOf(in, s.Container.Container); h != nil {
			h.Add(*s, in.limit)
		}
		if e := st.evidenceOf(s.Container.Container, in.program); e != nil && st.completes && (s.HasRSS || s.Exact) {
			e.Runs = withRun(e.Runs, runID(s.Container.UID), s.Demand())
		}
	}
	st.keepSamples(samples)
}

// peak returns the highest demand of the running or just ended instance.
func (st *State) peak(c memory.ContainerRef) memory.Bytes {
	if in := st.instance(&c); in != nil {
		return in.peak
	}
	return 0
}

// limit returns a container's limit in its pod's current or last status; 0: none, or unknown.
func (st *State) limit(c memory.ContainerRef) memory.Bytes {
	if in := st.instance(&c); in != nil {
		return in.limit
	}
	return 0
}

// instanceKept is how long a missing container is kept, so that a late event still finds its peak.
const instanceKept = time.Hour
