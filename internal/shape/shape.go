// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// Kind is what a container's memory does over time.
type Kind string

// The kinds of shape.
const (
	// Unknown: too little was seen, or it fits nothing.
	Unknown Kind = "Unknown"
	// Flat: it stays where it is.
	Flat Kind = "Flat"
	// Sawtooth: it rises and falls with collections; the trough is the live set.
	Sawtooth Kind = "Sawtooth"
	// StepRetention: it jumps and never comes down.
	StepRetention Kind = "StepRetention"
	// Climb: it drifts upwards without end.
	Climb Kind = "Climb"
	// FollowsLimit: it fills a cap derived from the limit and stays there, which is not demand.
	FollowsLimit Kind = "FollowsLimit"
	// Burst: short peaks, each coming down again.
	Burst Kind = "Burst"
)

// Point is one sample of one instance.
type Point struct {
	Time time.Time
	// RSS is the memory of the instance: its demand where memfit measured it, RSS alone in recordings.
	RSS memory.Bytes
}

// Instance is one running container between its start and its end: a restart begins a new one.
type Instance struct {
	Container memory.ContainerRef
	// Started is when it started, zero when unknown.
	Started time.Time
	// Points are in any order; duplicates and gaps are tolerated.
	Points []Point
}

// Replica is the demand of one pod's container now.
type Replica struct {
	Pod string
	RSS memory.Bytes
}

// Input is what Classify reads: one container name of one workload. Any of the three kinds of evidence may be missing.
type Input struct {
	Instances []Instance
	// Past reaches further back than Instances, oldest first: the fullest instance of each time.
	Past []history.Span
	// Regimes are what was seen under the limit of now and under those before.
	Regimes []history.Regime
	// Replicas are all running pods, for finding one that is far above the others.
	Replicas []Replica
	// Limit is the effective limit now; 0: none.
	Limit memory.Bytes
	// Cap is the managed heap's cap derived from the limit (the injected value, or the runtime's own default); 0: none or
	// unknown.
	Cap memory.Bytes
	// CapUnknown: Cap is what the runtime takes by itself, and nothing shows whether it has another one. It then makes a
	// climb less certain, and explains no level.
	CapUnknown bool
	// Overhead is what the runtime needs on top of its heap (code, threads, buffers), as far as known.
	Overhead memory.Bytes
}

// Shape is the verdict about a container's memory, with its numbers.
type Shape struct {
	Kind       Kind
	Confidence memory.Confidence
	// RatePerDay is the climb per day; 0 unless Kind is Climb.
	RatePerDay memory.Bytes
	// TimeToLimit is when the limit is reached at the fastest and at the slowest rate that fits (the 95 % interval, a
	// fifth wider either way); zero when not climbing or no limit.
	TimeToLimit [2]time.Duration
	// Trough is the live set: the median of the low points.
	Trough memory.Bytes
	// Peak is the highest point.
	Peak memory.Bytes
	// Steps are how much each of the jumps that stayed was, oldest first, at most 8.
	Steps []memory.Bytes
	// Outliers names pods whose memory is far above their replicas', highest first, at most 5.
	Outliers []string
	// Pods are those that it was seen in, where that is known; empty: in the fullest.
	Pods []string
	// Summary is a sentence with numbers.
	Summary string
}
