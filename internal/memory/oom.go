// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"time"
)

// OOMKind classifies a kill by what died and why. Kinds are counted separately, because their remedies differ.
type OOMKind string

// The kinds of OOM kill.
const (
	OOMMainProcess  OOMKind = "MainProcess"  // the kernel killed the container's main process at the container's limit
	OOMChildProcess OOMKind = "ChildProcess" // the kernel killed a child process while the container kept running
	OOMAtStart      OOMKind = "AtStart"      // killed before memory was measured; the limit is too low for the start
	OOMHeapAbort    OOMKind = "HeapAbort"    // the runtime exited at its heap cap (V8: 134, JVM: 3); raise the cap
	OOMPodLimit     OOMKind = "PodLimit"     // the pod-level limit was hit while every container was below its own
	OOMSuspected    OOMKind = "Suspected"    // resembles an OOM kill, but the kubelet did not report one
	// OOMStall represents a [Stall], which a higher limit prevents like a kill. It is never in the ledger of kills.
	OOMStall OOMKind = "Stall"
)

// Killed reports whether k is a kind of kill in the API: any but OOMStall.
func (k OOMKind) Killed() bool {
	kills := [...]OOMKind{OOMMainProcess, OOMChildProcess, OOMAtStart, OOMHeapAbort, OOMPodLimit, OOMSuspected}
	return slices.Contains(kills[:], k)
}

// Confidence is the certainty of a result.
type Confidence string

// The confidences.
const (
	Low    Confidence = "Low"
	Medium Confidence = "Medium"
	High   Confidence = "High"
)

// Known reports whether c is one of the three confidences.
func (c Confidence) Known() bool { return c == Low || c == Medium || c == High }

// Lower returns the next lower confidence.
func (c Confidence) Lower() Confidence {
	if c == High {
		return Medium
	}
	return Low
}

// RaiseLag is how long after a raise a kill may have been at the previous limit. The kubelet reports ends and
// effective limits up to 1 s late.
const RaiseLag = 3 * time.Second

// OOMKill is one kill, counted once.
type OOMKill struct {
	Container ContainerRef `json:"c"`
	Kind      OOMKind      `json:"k"`
	// Time is when the container ended, by the kubelet's report; without a report, when memfit detected the kill.
	Time time.Time `json:"t,omitzero"`
	// Seen is when memfit detected the kill, by memfit's own clock. Zero: unknown.
	Seen time.Time `json:"s,omitzero"`
	// Limit is the effective limit at the kill. 0: none, unknown, or Unreached is set.
	Limit Bytes `json:"l,omitempty"`
	// Unreached is the effective limit if the container did not reach it, because the node ran out of memory.
	Unreached Bytes `json:"lu,omitempty"`
	// Requested is the limit in the pod's spec if it may not have been effective yet; Limit is then the highest known to
	// be effective. 0: the limit in the spec was effective.
	Requested Bytes `json:"la,omitempty"`
	// LimitWithoutLoan is the container's limit without the loan (sizing.rescue) that it used up. 0: Limit was not a loan.
	LimitWithoutLoan Bytes `json:"lo,omitempty"`
	// Program is the container's fingerprint; empty: unknown.
	Program string `json:"pg,omitempty"`
	// Proven is true if Limit was certainly effective: the pod was created with it, or its cgroup is known to have it.
	Proven bool `json:"lp,omitempty"`
	// Peak is the highest demand of the killed container instance. 0: unknown.
	Peak Bytes `json:"r,omitempty"`
	// Uptime is how long the killed instance ran. 0: unknown.
	Uptime     time.Duration `json:"up,omitempty"`
	Confidence Confidence    `json:"cf"`
	// Why is the evidence in a few words: "OOMKilled, exit 137, restart 4".
	Why string `json:"e"`
	// Account is the agent's record, in a sentence, of the minute before the kill; empty: none.
	Account string `json:"a,omitempty"`
	// AccountAt is when the agent detected the kill, by the node's clock, in whole seconds.
	AccountAt time.Time `json:"at,omitzero"`
	// AgentOnly is true while only the agent has reported the kill; a later count of the kernel is of the same kill.
	AgentOnly bool `json:"ao,omitempty"`
	// Debugged is true if Kind is [OOMPodLimit] and a debug session filled the pod.
	Debugged bool `json:"db,omitempty"`
}
