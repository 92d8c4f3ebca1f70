// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"time"
)

// OOMKind is what died and why. Kinds are counted separately, because their remedies differ.
type OOMKind string

// The kinds of OOM kill.
const (
	OOMMainProcess  OOMKind = "MainProcess"  // the kernel killed the container's main process at the container's limit
	OOMChildProcess OOMKind = "ChildProcess" // the kernel killed a child process while the container kept running
	OOMAtStart      OOMKind = "AtStart"      // killed before memory was measured; the limit is too low for the start
	OOMHeapAbort    OOMKind = "HeapAbort"    // the runtime gave up at its heap cap (V8 134, JVM 3): raise the cap
	OOMPodLimit     OOMKind = "PodLimit"     // the pod-level limit was hit while every container was below its own
	OOMSuspected    OOMKind = "Suspected"    // it resembles an OOM kill that the kubelet did not report
	// OOMStall is never in the ledger of kills: it represents a [Stall], which a higher limit prevents as well.
	OOMStall OOMKind = "Stall"
)

// Killed reports whether it is a kill of the API.
func (k OOMKind) Killed() bool {
	kills := [...]OOMKind{OOMMainProcess, OOMChildProcess, OOMAtStart, OOMHeapAbort, OOMPodLimit, OOMSuspected}
	return slices.Contains(kills[:], k)
}

// Confidence is the certainty of a statement, in three steps.
type Confidence string

// The confidences.
const (
	Low    Confidence = "Low"
	Medium Confidence = "Medium"
	High   Confidence = "High"
)

// Known reports whether it is valid.
func (c Confidence) Known() bool { return c == Low || c == Medium || c == High }

// Lower returns the next lower confidence.
func (c Confidence) Lower() Confidence {
	if c == High {
		return Medium
	}
	return Low
}

// RaiseReaches is how long after a raise a kill may be at the old limit: ends and limits are reported up to 1 s late.
const RaiseReaches = 3 * time.Second

// OOMKill is one kill, counted once.
type OOMKill struct {
	Container ContainerRef `json:"c"`
	Kind      OOMKind      `json:"k"`
	// Time is when the kubelet reports that the container ended, or else when memfit learned of it.
	Time time.Time `json:"t,omitzero"`
	// Seen is when memfit learned of it, on memfit's own clock, unlike Time. Zero: unknown.
	Seen time.Time `json:"s,omitzero"`
	// Limit is the effective limit when it died. 0: none, unknown, or Unreached.
	Limit Bytes `json:"l,omitempty"`
	// Unreached is the effective limit in place of Limit if it was not reached, because the node ran out of memory.
	Unreached Bytes `json:"lu,omitempty"`
	// Asked is the limit in the pod's spec then, if not proven to be effective; Limit is the previous one. 0: Limit was.
	Asked Bytes `json:"la,omitempty"`
	// Own is the container's limit without the loan (sizing.rescue) that it used up. 0: Limit was not a loan.
	Own Bytes `json:"lo,omitempty"`
	// Program is the container's fingerprint; empty: unknown.
	Program string `json:"pg,omitempty"`
	// Proven: Limit was effective beyond doubt, because the pod was created with it or its cgroup is known to have it.
	Proven bool `json:"lp,omitempty"`
	// Peak is the highest demand of that container instance. 0: unknown.
	Peak Bytes `json:"r,omitempty"`
	// Uptime is how long that instance ran. 0: unknown.
	Uptime     time.Duration `json:"up,omitempty"`
	Confidence Confidence    `json:"cf"`
	// Why is the evidence in a few words: "OOMKilled, exit 137, restart 4".
	Why string `json:"e"`
	// Account is the agent's record of the minute before it, in a sentence; empty: none. AccountAt is when the agent
	// detected the kill, on the node's clock, in whole seconds.
	Account   string    `json:"a,omitempty"`
	AccountAt time.Time `json:"at,omitzero"`
	// AgentOnly is true if only the agent has reported it so far. The kernel's counter, shown later, counts the same kill.
	AgentOnly bool `json:"ao,omitempty"`
	// Debugged is true if the kill is of kind [OOMPodLimit], and a debug session filled the pod.
	Debugged bool `json:"db,omitempty"`
}
