// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// Kind is the shape of a container's memory over time.
type Kind string

// The kinds of shape.
const (
	Unknown       Kind = "Unknown"       // too little data, or no match
	Flat          Kind = "Flat"          // changes little
	Sawtooth      Kind = "Sawtooth"      // rises and falls with garbage collections; the trough is the live set
	StepRetention Kind = "StepRetention" // jumps, and remains at the new level
	Climb         Kind = "Climb"         // grows without bound
	FollowsLimit  Kind = "FollowsLimit"  // fills a cap that the runtime derives from the limit: use, but not demand
	Burst         Kind = "Burst"         // has short peaks
)

// Point is one sample of one instance.
type Point struct {
	Time time.Time
	RSS  memory.Bytes // demand if measured by memfit, RSS in recordings
}

// Instance is one container between its start and its end; a restart begins a new one.
type Instance struct {
	Container memory.ContainerRef
	Started   time.Time // zero when unknown
	Points    []Point   // in any order; duplicates and gaps are tolerated
}

// Replica is the current demand of one pod's container.
type Replica struct {
	Pod string
	RSS memory.Bytes
}

// Input is the evidence about one container name of one workload. Any field may be empty.
type Input struct {
	Instances []Instance
	// Past is a longer history than Instances, oldest first, of the instance with the highest use at each time.
	Past     []history.Span
	Regimes  []history.Regime // the use under the current and the previous limit
	Replicas []Replica        // all running pods, for finding outliers
	Limit    memory.Bytes     // the current effective limit; 0: none
	// Cap is the heap cap that memfit, or the runtime by default, derives from the limit. 0: none or unknown.
	Cap memory.Bytes
	// CapUnknown is true if the heap may have another cap than Cap. Then Cap makes a climb less certain, but is never the
	// reason for FollowsLimit.
	CapUnknown bool
	// Overhead is the runtime's memory besides its heap (code, threads, buffers), if known.
	Overhead memory.Bytes
}

// Shape is the classification of a container's memory, with its numbers.
type Shape struct {
	Kind       Kind
	Confidence memory.Confidence
	RatePerDay memory.Bytes // growth per day of a Climb
	// TimeToLimit is the shortest and the longest expected time until a Climb reaches the limit (95 % interval of the
	// rate, widened by rateMargin). Zero: no Climb, or no limit.
	TimeToLimit [2]time.Duration
	Trough      memory.Bytes   // the memory retained at the end: the live set
	Peak        memory.Bytes   // the highest point
	Steps       []memory.Bytes // sizes of retained jumps, oldest first, at most 8
	Outliers    []string       // pods with far more memory than the other replicas, highest first, at most 5
	Pods        []string       // pods with this shape, if known; empty: the pod with the highest use
	Summary     string         // a sentence with numbers
}

// FromHistory returns the evidence of a history: the points of the last two hours by instance, and the spans of the
// last days. The caller adds the limit, the runtime's cap and the running replicas.
func FromHistory(h *history.Container) Input {
	var in Input
	if h == nil {
		return in
	}
	at := map[int]int{}
	for _, p := range h.Recent() {
		i, found := at[p.Instance]
		if !found {
			i = len(in.Instances)
			at[p.Instance] = i
			in.Instances = append(in.Instances, Instance{})
		}
		in.Instances[i].Points = append(in.Instances[i].Points, Point{Time: p.Time, RSS: p.Demand})
	}
	in.Past = h.AppendSpans(nil)
	now, before := h.Regimes()
	in.Regimes = []history.Regime{now, before}
	return in
}
