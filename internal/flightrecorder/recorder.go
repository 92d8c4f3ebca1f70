// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"slices"
	"time"

	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/memory"
)

// Process is one process of a container.
type Process struct {
	PID      int    // in the node's PID namespace
	InnerPID int    // in the container's PID namespace; 1 is the main process, unless the pod shares a namespace
	Name     string // chosen by the process, made printable by the caller
	Resident memory.Bytes
}

// Sample is one reading of a container.
type Sample struct {
	At      time.Time
	Reading cgroup.Reading // of the container
	Partial bool           // only Reading.Usage was read
	// PodLimit is the effective limit of the pod, cgroup.Unlimited if absent. It is ignored in a Partial sample.
	PodLimit memory.Bytes
	Pod      cgroup.Events // of the pod, with all containers
	// Neighbor: another container may have reached its own limit since the last full reading.
	Neighbor  bool
	Processes []Process // of the container; nil: not read
}

// point is the usage in a sample.
type point struct {
	at    time.Time
	usage memory.Bytes
}

const (
	history    = time.Minute              // how long points are kept
	maxHistory = int(history/fastest) + 1 // points in history at the shortest interval
)

// Recorder holds the readings of one container instance. Use [New].
type Recorder struct {
	recent    []point        // the oldest first
	last      cgroup.Reading // of the last full sample
	lastFull  time.Time      // of the last full sample
	podLimit  memory.Bytes
	peak      memory.Bytes
	processes []Process
	kills     uint64
	counted   bool // kills is a count of the kernel, not an assumption
	isNew     bool
	first     time.Time // of the first sample
	reach     reach
	neighbor  bool // as in [Recorder.Ended]

	killCount int
	lastKill  *Kill
	stall     stallWatch
}

// New returns the recorder of a container. If the container is new on the node, kills before its first sample count,
// too; otherwise only later kills do.
func New(isNew bool) *Recorder {
	return &Recorder{
		counted: isNew, isNew: isNew, podLimit: cgroup.Unlimited, last: cgroup.Reading{Limit: cgroup.Unlimited},
		reach: reach{container: counter{known: isNew}},
	}
}

// Add adds a sample, not older than the previous one. It reports whether a kill or a stall must be written immediately.
func (r *Recorder) Add(s Sample) bool {
	trigger := false
	if r.first.IsZero() {
		r.first = s.At
	}
	if !s.Partial {
		r.reach.add(s.Reading.Events, s.Pod, s.At)
		if r.killed(s) {
			r.record(s, CounterRose)
			trigger = true
		}
		trigger = r.stall.add(s, r.approach) || trigger
		r.last, r.podLimit, r.lastFull = s.Reading, s.PodLimit, s.At
	}
	r.push(point{s.At, s.Reading.Usage})
	if s.Processes != nil {
		trigger = r.amend(s) || trigger
		r.processes = s.Processes
	}
	return trigger
}

// Ended adds the events of the pod after the container ended. neighbor is as in [Sample].
func (r *Recorder) Ended(pod cgroup.Events, neighbor bool, at time.Time) {
	r.reach.add(cgroup.Events{}, pod, at)
	r.neighbor = neighbor
}

// ReachedSince reports whether the container may have reached its limit since a time. now has its current events.
func (r *Recorder) ReachedSince(since time.Time, now cgroup.Events) bool {
	c := r.reach.container
	return !now.Known || !c.known || now.LimitFailures > c.count || c.rose.After(since)
}

// killed reports whether the kernel's count rose, and stores the count.
func (r *Recorder) killed(s Sample) bool {
	rose := r.counted && s.Reading.Kills > r.kills
	r.kills, r.counted = s.Reading.Kills, true
	return rose
}

// push adds p. It replaces the last point if p is within fastest of the second-last, so that a minute always fits.
func (r *Recorder) push(p point) {
	if n := len(r.recent); n > 1 && p.at.Sub(r.recent[n-2].at) <= fastest && p.at.After(r.recent[n-1].at) {
		r.recent = r.recent[:n-1]
	}
	old := len(r.recent) - len(r.points(p.at, history))
	if len(r.recent) == maxHistory {
		old = max(old, 1)
	}
	r.recent = append(slices.Delete(r.recent, 0, old), p)
	r.peak = max(r.peak, p.usage)
}

// points returns the points in the window that ends at before, oldest first. No point may be later than before.
func (r *Recorder) points(before time.Time, window time.Duration) []point {
	first, _ := slices.BinarySearchFunc(r.recent, before.Add(-window), func(p point, from time.Time) int {
		return p.at.Compare(from)
	})
	return r.recent[first:]
}

// newest returns the last point, or the zero point.
func (r *Recorder) newest() point {
	if len(r.recent) == 0 {
		return point{}
	}
	return r.recent[len(r.recent)-1]
}

// Terminated records that the kubelet reported this container as OOM-killed at a time in whole seconds. noticed is when
// its cgroup was found removed, or zero; if it is plausible, it replaces at. Terminated reports whether this is new: an
// unrecorded kill, or one that was recorded for a child process.
func (r *Recorder) Terminated(at, noticed, now time.Time) bool {
	if noticed.Sub(at).Abs() <= sameKill {
		at = noticed
	}
	if k := r.lastKill; k != nil && at.Sub(k.Time).Abs() <= sameKill {
		isNew := k.Kind != MainProcess
		k.Kind = MainProcess
		if len(k.Processes) == 0 {
			k.Processes = largest(r.processes, nil)
		}
		return isNew
	}
	if now.Sub(at) > history {
		return false // older than the history
	}
	if newest := r.newest().at; newest.After(at) {
		at = newest
	}
	r.record(
		Sample{At: at, Reading: r.last, PodLimit: r.podLimit, Processes: []Process{}, Neighbor: r.neighbor}, PodStatus,
	)
	return true
}

// ExitGrace is how long a process may exist after its kill was counted, while the kernel frees its memory.
const ExitGrace = 2 * time.Second

// amend adds the ended processes to the last kill if they still existed when the count rose. It reports whether it did.
func (r *Recorder) amend(s Sample) bool {
	k := r.lastKill
	if k == nil || len(k.Processes) > 0 || s.At.Sub(k.Time) > ExitGrace || !s.At.After(k.Time) {
		return false
	}
	if k.Processes = largest(r.processes, s.Processes); mainIsGone(r.processes, s.Processes) {
		k.Kind = MainProcess
	}
	return len(k.Processes) > 0
}

// sameKill bounds the difference between the agent's time of a kill and the kubelet's (containerd's, in whole seconds).
const sameKill = 5 * time.Second

// Kills returns the number of recorded kills.
func (r *Recorder) Kills() int { return r.killCount }

// LastKill returns the last kill; nil: none.
func (r *Recorder) LastKill() *Kill { return r.lastKill }

// LastStall returns the last stall; nil: none.
func (r *Recorder) LastStall() *Stall { return r.stall.last }

// Peak returns the highest usage of all samples.
func (r *Recorder) Peak() memory.Bytes { return r.peak }

// Usage returns the last sample's usage, partial or full; 0: no sample.
func (r *Recorder) Usage() memory.Bytes { return r.newest().usage }

// Demand returns the demand at the last sample. After a partial sample, page cache and swap are of the last full one.
func (r *Recorder) Demand() memory.Bytes { return r.unreclaimable().Plus(r.last.Swap) }

// Last returns the last full reading, with its time and the pod's limit; zero time: none.
func (r *Recorder) Last() (reading cgroup.Reading, podLimit memory.Bytes, at time.Time) {
	return r.last, r.podLimit, r.lastFull
}

// largest returns the maxProcesses largest processes that existed before and no longer do.
func largest(before, now []Process) []Process {
	out := gone(before, now)
	return out[:min(len(out), maxProcesses)]
}

// gone returns the processes that existed before and no longer do, the largest first.
func gone(before, now []Process) []Process {
	out := slices.Clone(before)
	out = slices.DeleteFunc(out, func(p Process) bool {
		return slices.ContainsFunc(now, func(q Process) bool { return q.PID == p.PID })
	})
	slices.SortStableFunc(out, func(a, b Process) int { return int(b.Resident - a.Resident) })
	return out
}
