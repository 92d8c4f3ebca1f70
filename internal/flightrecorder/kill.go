// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"fmt"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Detection is how a kill was detected.
type Detection string

// Ways to detect a kill, as the API names them (evidence of a KillSnapshot).
const (
	CounterRose Detection = "CounterRose"
	PodStatus   Detection = "PodStatus"
)

// Kind is the kind of process that a kill ended.
type Kind string

// Kinds of kills, as the API names them.
const (
	MainProcess  Kind = "MainProcess"
	ChildProcess Kind = "ChildProcess"
)

// Kill is the record of an OOM kill and of the minute before it was detected.
type Kill struct {
	Limits
	Minute

	Time          time.Time // when it was detected
	Kind          Kind
	Detection     Detection
	Reached       Reached
	LimitsChanged bool      // between the full readings before and after the kill; the lower ones are reported
	Processes     []Process // that ended with the kill, the largest first
}

// Limits are the limits that the kernel enforced.
type Limits struct {
	ContainerLimit, PodLimit memory.Bytes // cgroup.Unlimited: none
}

// Minute is the record of the minute before a kill or stall.
type Minute struct {
	Seen     bool          // there are readings; otherwise all fields are zero
	Usage    memory.Bytes  // in the last reading before the event
	LastRead time.Duration // time from that reading to the event
	Growth   Growth
	Series   []Point
}

// Point is one reading of a series.
type Point struct {
	Before time.Duration // time from this reading to the kill or stall
	Usage  memory.Bytes
}

// approach returns the minute before a time, with the growth until usage reached level.
func (r *Recorder) approach(before time.Time, level memory.Bytes) Minute {
	m, points := r.minute(before), r.points(before, history)
	first := len(points)
	for first > 0 && points[first-1].usage >= level {
		first--
	}
	m.Growth = growth(points[:min(first+1, len(points))])
	return m
}

// minute returns the record of the minute before a time.
func (r *Recorder) minute(before time.Time) Minute {
	points := r.points(before, history)
	if len(points) == 0 {
		return Minute{}
	}
	last := points[len(points)-1]
	return Minute{
		Seen: true, Usage: last.usage, LastRead: before.Sub(last.at), Growth: growth(points),
		Series: series(points, before),
	}
}

const (
	// A series has every reading of the last 10 s, at most 40, and the highest of each earlier bucket, at most 20.
	detail = 10 * time.Second
	bucket = 2500 * time.Millisecond
	// MaxSeries bounds the points of a series.
	MaxSeries = int(detail/fastest) + int((history-detail)/bucket)
	// maxProcesses bounds the processes reported for a kill: a group kill may end hundreds.
	maxProcesses = 4
)

// record records a kill that was detected in s. The usage in s is from after the kill.
func (r *Recorder) record(s Sample, detection Detection) {
	k := &Kill{
		Limits: Limits{s.Reading.Limit, s.PodLimit}, Minute: r.minute(s.At), Time: s.At, Kind: ChildProcess,
		Detection: detection, Reached: r.reach.before(s.At, s.Neighbor),
	}
	if !r.lastFull.IsZero() { // the limit may have been raised after the kill
		k.LimitsChanged = r.last.Limit != k.ContainerLimit || r.podLimit != k.PodLimit
		k.ContainerLimit, k.PodLimit = min(r.last.Limit, k.ContainerLimit), min(r.podLimit, k.PodLimit)
	}
	if s.Processes != nil {
		k.Processes = largest(r.processes, s.Processes)
	}
	if detection == PodStatus || mainIsGone(r.processes, s.Processes) {
		k.Kind = MainProcess
	}
	r.lastKill = k
	r.killCount++
}

// mainIsGone reports whether the main process, or every process, has ended; false if now was not read.
func mainIsGone(before, now []Process) bool {
	if now == nil {
		return false
	}
	for _, p := range gone(before, now) {
		if p.InnerPID == 1 {
			return true
		}
	}
	return len(now) == 0
}

// series returns at most MaxSeries readings of a minute.
func series(points []point, now time.Time) []Point {
	var out []Point
	current := time.Duration(-1) // the bucket of the last point of out
	for _, p := range points {
		before := max(now.Sub(p.at), 0)
		if before < detail {
			current = -1
			out = append(out, Point{before, p.usage})
			continue
		}
		switch b := before / bucket; {
		case b != current:
			current = b
			out = append(out, Point{before, p.usage})
		case p.usage > out[len(out)-1].Usage:
			out[len(out)-1] = Point{before, p.usage}
		}
	}
	return out[max(len(out)-MaxSeries, 0):]
}

// Limit returns the lower of both limits, and what it applies to. Usage of the pod includes its other containers.
func (l Limits) Limit() (limit memory.Bytes, of string) {
	if l.PodLimit < l.ContainerLimit {
		return l.PodLimit, "the pod"
	}
	return l.ContainerLimit, "the container"
}

// Summary describes the kill in a sentence.
func (k *Kill) Summary() string {
	var b strings.Builder
	b.WriteString("OOM kill of " + k.victim())
	switch limit, of := k.Limit(); {
	case limit == cgroup.Unlimited:
		b.WriteString(" without a limit of container or pod: the node ran out of memory")
	case k.Reached == ReachedNo:
		fmt.Fprintf(&b, ", which had not reached the limit of %s of %s: the node ran out of memory", limit, of)
	default:
		fmt.Fprintf(&b, " at the limit of %s of %s", limit, of)
	}
	if !k.Seen {
		b.WriteString("; earlier usage is unknown: the agent had not read this container yet")
		return b.String()
	}
	fmt.Fprintf(&b, "; %s before detection, usage was %s", format.Short(k.LastRead), k.Usage)
	limit, _ := k.Limit()
	if limit != cgroup.Unlimited && k.Reached != ReachedNo && k.Usage < limit.Percent(fastKillPercent) {
		b.WriteString(", so the last growth was too fast to be recorded")
		return b.String() // the recorded growth does not explain it
	}
	if g := k.Growth; g.For > 0 {
		fmt.Fprintf(&b, ", after growth of %s/s for %s", g.PerSecond, format.Short(g.For))
	}
	return b.String()
}

// fastKillPercent: below this share of the limit, the last reading does not explain the kill.
const fastKillPercent = 90

// victim names the ended process.
func (k *Kill) victim() string {
	who := map[Kind]string{MainProcess: "the main process", ChildProcess: "a child process"}[k.Kind]
	if len(k.Processes) == 0 {
		return who
	}
	p := k.Processes[0]
	return fmt.Sprintf("%s (%s, %s resident when last seen)", who, p.Name, p.Resident)
}
