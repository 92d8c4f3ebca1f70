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

// nearLimit reports whether the instance uses at least urgentPercent of its limit and grows.
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
	program     string // empty: not known yet
	restarts    int32
	capKnown    bool // heapCap was read
	stallsKnown bool // stalls has the current stall in the ledger, if any
	ended       bool
	started     memory.Instant
	peak        memory.Bytes
	limit       memory.Bytes   // effective; 0: none
	high        memory.Bytes   // usage above which the kernel throttles ([oom.Observation.High]); 0: none
	seen        memory.Instant // when memfit last received a status or sample
	statusSeen  memory.Instant // when memfit last read the pod's status
	recent      readings
	lows        history.Lows // of usage, between garbage collections
	heapCap     memory.Bytes // in the container's environment; 0: none
	stalls      oom.StallWatch
}

// recordLimits stores the limits of containers, and sets the previous limit of each observation: the last seen limit,
// or the limit at creation. Call it before updating the ledger, which records each kill with a limit.
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

// processEnds resets the data of restarted instances. Call it after updating the ledger, which needs the peaks of ended
// instances.
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

// endedIn reports whether an observation contains the end of this instance or of a later one.
func (in *instance) endedIn(o *oom.Observation) bool {
	n := len(o.Ended)
	return n > 0 && o.Ended[n-1].Index >= in.restarts
}

// endOf returns when the last ended instance of an observation finished; now: unknown.
func endOf(o *oom.Observation, now time.Time) time.Time {
	if n := len(o.Ended); n > 0 && !o.Ended[n-1].Finished.IsZero() {
		if at := o.Ended[n-1].Finished; at.Before(now) {
			return at
		}
	}
	return now
}

// addSamples adds samples to instances, histories and runs.
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
			// a new process; the pod's status will report the end of the previous process
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

// peak returns the highest demand of the running or just ended instance; 0: unknown.
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

// instanceKept is how long instances of a deleted pod are kept for late events.
const instanceKept = time.Hour
