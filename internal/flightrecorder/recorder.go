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
	PID      int    // as the node numbers it
	InnerPID int    // as the container numbers it; its main process is 1, unless the pod shares one PID namespace
	Name     string // as the kernel shows it, which the process chooses; already fit to be printed
	Resident memory.Bytes
}

// Sample is one reading of a container.
type Sample struct {
	At time.Time
	// Reading of the container. Where only Usage was read, Partial is set.
	Reading cgroup.Reading
	Partial bool
	// PodLimit is the effective limit of its pod; Unlimited if absent. It is ignored in a Partial sample.
	PodLimit memory.Bytes
	// Processes of the container, where they were read; nil otherwise.
	Processes []Process
}

// point is what is kept of a sample.
type point struct {
	at    time.Time
	usage memory.Bytes
}

const (
	// kept is how far back a record goes.
	kept = time.Minute
	// keptMost points hold a minute at the shortest interval.
	keptMost = int(kept/fastest) + 1
)

// Recorder is what is known of one container instance. Its zero value is not ready; use [New].
type Recorder struct {
	recent    []point        // the oldest first
	last      cgroup.Reading // of the last sample that was not partial
	lastFull  time.Time
	podLimit  memory.Bytes
	peak      memory.Bytes
	processes []Process
	kills     uint64
	counted   bool // kills is what the kernel counted, and not a guess
	isNew     bool
	first     time.Time // of the first sample

	killCount int
	lastKill  *Kill
	stall     stallWatch
}

// New returns the recorder of a container. Of one that is new on the node every kill is counted, also one before its
// first sample; of one that ran before the agent started, only what comes after its first sample.
func New(isNew bool) *Recorder {
	return &Recorder{
		counted: isNew, isNew: isNew, podLimit: cgroup.Unlimited, last: cgroup.Reading{Limit: cgroup.Unlimited},
	}
}

// Add takes a sample, not older than the previous one. It reports whether something is to be written immediately: a
// kill, or a stall that began or ended.
func (r *Recorder) Add(s Sample) bool {
	trigger := false
	if r.first.IsZero() {
		r.first = s.At
	}
	if !s.Partial {
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

// killed reports whether the kernel's count rose, and stores the count.
func (r *Recorder) killed(s Sample) bool {
	rose := r.counted && s.Reading.Kills > r.kills
	r.kills, r.counted = s.Reading.Kills, true
	return rose
}

// push keeps a point. One that comes no later than fastest after the last but one replaces the last, so that a minute
// is kept however often a container is read.
func (r *Recorder) push(p point) {
	if n := len(r.recent); n > 1 && p.at.Sub(r.recent[n-2].at) <= fastest && p.at.After(r.recent[n-1].at) {
		r.recent = r.recent[:n-1]
	}
	old := len(r.recent) - len(r.points(p.at, kept))
	if len(r.recent) == keptMost {
		old = max(old, 1)
	}
	r.recent = append(slices.Delete(r.recent, 0, old), p)
	r.peak = max(r.peak, p.usage)
}

// points are those of so long before a time that is not before the last one, oldest first.
func (r *Recorder) points(before time.Time, window time.Duration) []point {
	first, _ := slices.BinarySearchFunc(r.recent, before.Add(-window), func(p point, from time.Time) int {
		return p.at.Compare(from)
	})
	return r.recent[first:]
}

// newest is the last point; the zero point where there is none.
func (r *Recorder) newest() point {
	if len(r.recent) == 0 {
		return point{}
	}
	return r.recent[len(r.recent)-1]
}

// Terminated records that the kubelet reported this container as OOM-killed at a time. noticed is when its cgroup was
// found to be gone, or zero; where it fits, it is taken for the time of the kill, because the kubelet's has whole
// seconds. Terminated reports whether the kill is new. It is not where the count of kills rose just before.
func (r *Recorder) Terminated(at, noticed, now time.Time) bool {
	if noticed.Sub(at).Abs() <= sameKill {
		at = noticed
	}
	if k := r.lastKill; k != nil && at.Sub(k.Time).Abs() <= sameKill {
		news := k.Kind != MainProcess
		k.Kind = MainProcess
		if len(k.Processes) == 0 {
			k.Processes = largest(r.processes, nil)
		}
		return news
	}
	if now.Sub(at) > kept {
		return false // older than this agent's readings
	}
	if newest := r.newest().at; newest.After(at) {
		at = newest
	}
	r.record(Sample{At: at, Reading: r.last, PodLimit: r.podLimit, Processes: []Process{}}, PodStatus)
	return true
}

// Dying is how long a process may take to go after its kill was counted: its memory is given back first.
const Dying = 2 * time.Second

// amend completes the last kill where its victim still existed when the count rose. It reports whether it did.
func (r *Recorder) amend(s Sample) bool {
	k := r.lastKill
	if k == nil || len(k.Processes) > 0 || s.At.Sub(k.Time) > Dying || !s.At.After(k.Time) {
		return false
	}
	if k.Processes = largest(r.processes, s.Processes); mainIsGone(r.processes, s.Processes) {
		k.Kind = MainProcess
	}
	return len(k.Processes) > 0
}

// sameKill: the kubelet's time of an end has whole seconds, and comes after containerd's notice of it.
const sameKill = 5 * time.Second

// Kills is how many times a kill was seen.
func (r *Recorder) Kills() int { return r.killCount }

// LastKill is the last of them; nil: none.
func (r *Recorder) LastKill() *Kill { return r.lastKill }

// LastStall is the last stall; nil: none.
func (r *Recorder) LastStall() *Stall { return r.stall.last }

// Peak is the highest usage of all samples.
func (r *Recorder) Peak() memory.Bytes { return r.peak }

// Usage is that of the last sample, partial or not; 0: there is no sample.
func (r *Recorder) Usage() memory.Bytes { return r.newest().usage }

// Demand is what the container needed at the last sample: if that was partial, page cache and swap are those of the
// last full one.
func (r *Recorder) Demand() memory.Bytes { return r.held().Plus(r.last.Swap) }

// Last is the last reading that was not partial, with its time and the pod's limit; a zero time means that there is
// none.
func (r *Recorder) Last() (reading cgroup.Reading, podLimit memory.Bytes, at time.Time) {
	return r.last, r.podLimit, r.lastFull
}

// largest are the few largest processes that were there before and are not there now.
func largest(before, now []Process) []Process {
	out := gone(before, now)
	return out[:min(len(out), processesMost)]
}

// gone are the processes that were there before and are not there now, the largest first.
func gone(before, now []Process) []Process {
	out := slices.Clone(before)
	out = slices.DeleteFunc(out, func(p Process) bool {
		return slices.ContainsFunc(now, func(q Process) bool { return q.PID == p.PID })
	})
	slices.SortStableFunc(out, func(a, b Process) int { return int(b.Resident - a.Resident) })
	return out
}
