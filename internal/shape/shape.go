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
	// Unknown: too little data, or no match.
	Unknown Kind = "Unknown"
	// Flat: it does not change much.
	Flat Kind = "Flat"
	// Sawtooth: it rises and falls with collections; the trough is the live set.
	Sawtooth Kind = "Sawtooth"
	// StepRetention: it jumps and remains there.
	StepRetention Kind = "StepRetention"
	// Climb: it grows without bound.
	Climb Kind = "Climb"
	// FollowsLimit: it fills a cap derived from the limit, which is not demand.
	FollowsLimit Kind = "FollowsLimit"
	// Burst: short peaks.
	Burst Kind = "Burst"
)

// Point is one sample of one instance.
type Point struct {
	Time time.Time
	// RSS is the memory of the instance: demand if measured by memfit, RSS in recordings.
	RSS memory.Bytes
}

// Instance is one container between its start and its end; a restart begins a new one.
type Instance struct {
	Container memory.ContainerRef
	// Started is when it started, zero when unknown.
	Started time.Time
	// Points are in any order; duplicates and gaps are tolerated.
	Points []Point
}

// Replica is the current demand of one pod's container.
type Replica struct {
	Pod string
	RSS memory.Bytes
}

// Input is the input of Classify: one container name of one workload. Each of the three kinds of evidence may be
// missing.
type Input struct {
	Instances []Instance
	// Past is a longer history than Instances, oldest first, of the fullest instance of each time.
	Past []history.Span
	// Regimes are the use under the current and earlier limits.
	Regimes []history.Regime
	// Replicas are all running pods, for finding outliers.
	Replicas []Replica
	// Limit is the current effective limit; 0: none.
	Limit memory.Bytes
	// Cap is the managed heap's cap derived from the limit (the injected value, or the runtime's own default); 0: none or
	// unknown.
	Cap memory.Bytes
	// CapUnknown: Cap is the runtime's default, and there may be another one. It then makes a climb less certain, but
	// explains no level.
	CapUnknown bool
	// Overhead is the runtime's memory besides its heap (code, threads, buffers), if known.
	Overhead memory.Bytes
}

// Shape is the classification of a container's memory, with its numbers.
type Shape struct {
	Kind       Kind
	Confidence memory.Confidence
	// RatePerDay is the climb per day; 0 unless Kind is Climb.
	RatePerDay memory.Bytes
	// TimeToLimit is the time to the limit at the highest and the lowest rate (95 % interval, a fifth wider either way);
	// zero if not climbing or without a limit.
	TimeToLimit [2]time.Duration
	// Trough is the live set: the median of the low points.
	Trough memory.Bytes
	// Peak is the highest point.
	Peak memory.Bytes
	// Steps are the sizes of retained jumps, oldest first, at most 8.
	Steps []memory.Bytes
	// Outliers names pods whose memory is far above their replicas', highest first, at most 5.
	Outliers []string
	// Pods are the pods with this shape, if known; empty: the fullest.
	Pods []string
	// Summary is a sentence with numbers.
	Summary string
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
