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
	Flat          Kind = "Flat"          // it does not change much
	Sawtooth      Kind = "Sawtooth"      // it rises and falls with collections; the trough is the live set
	StepRetention Kind = "StepRetention" // it jumps and remains there
	Climb         Kind = "Climb"         // it grows without bound
	FollowsLimit  Kind = "FollowsLimit"  // it fills a cap derived from the limit, which is not demand
	Burst         Kind = "Burst"         // short peaks
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

// Input is the input of Classify: one container name of one workload. Any evidence may be missing.
type Input struct {
	Instances []Instance
	// Past is a longer history than Instances, oldest first, of the fullest instance of each time.
	Past     []history.Span
	Regimes  []history.Regime // the use under the current and earlier limits
	Replicas []Replica        // all running pods, for finding outliers
	Limit    memory.Bytes     // the current effective limit; 0: none
	// Cap is the managed heap's cap derived from the limit (injected, or the runtime's default); 0: none or unknown.
	Cap memory.Bytes
	// CapUnknown is true if there may be another cap than this default. It makes a climb less certain, but explains no
	// level.
	CapUnknown bool
	// Overhead is the runtime's memory besides its heap (code, threads, buffers), if known.
	Overhead memory.Bytes
}

// Shape is the classification of a container's memory, with its numbers.
type Shape struct {
	Kind       Kind
	Confidence memory.Confidence
	RatePerDay memory.Bytes // of a Climb
	// TimeToLimit is the time to the limit at the highest and the lowest rate (95 % interval, a fifth wider either way);
	// zero if not climbing or without a limit.
	TimeToLimit [2]time.Duration
	Trough      memory.Bytes   // the live set: the median of the low points
	Peak        memory.Bytes   // the highest point
	Steps       []memory.Bytes // sizes of retained jumps, oldest first, at most 8
	Outliers    []string       // pods whose memory is far above their replicas', highest first, at most 5
	Pods        []string       // with this shape, if known; empty: the fullest
	Summary     string         // a sentence with numbers
}

// FromHistory returns a history as evidence for [Classify]: the last two hours by instance, and the spans of the last
// days of the fullest. The caller adds the limit, the runtime's cap and the running replicas.
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
