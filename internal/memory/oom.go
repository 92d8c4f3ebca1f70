// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import "time"

// OOMKind is what died and what ended it. Different remedies help against the kinds, so they are counted separately.
type OOMKind string

// The kinds of OOM kill.
const (
	// OOMMainProcess: the kernel killed the container's main process at the container's limit.
	OOMMainProcess OOMKind = "MainProcess"
	// OOMChildProcess: the kernel killed a child process while the container kept running.
	OOMChildProcess OOMKind = "ChildProcess"
	// OOMAtStart: killed before memory was ever measured; the limit is below what starting takes.
	OOMAtStart OOMKind = "AtStart"
	// OOMHeapAbort: the runtime gave up at its own heap cap (V8 134, JVM 3). The limit may be fine: raise the cap.
	OOMHeapAbort OOMKind = "HeapAbort"
	// OOMPodLimit: the pod-level limit was hit while every container was below its own.
	OOMPodLimit OOMKind = "PodLimit"
	// OOMSuspected: it resembles an OOM kill that the kubelet did not report.
	OOMSuspected OOMKind = "Suspected"
	// OOMStall is not a kill, and never in the ledger of kills: it is how a [Stall] is handed to what decides about
	// sizes, because a higher limit helps against both.
	OOMStall OOMKind = "Stall"
)

// Killed reports whether it is a kind of kill that the API has.
func (k OOMKind) Killed() bool {
	switch k {
	case OOMMainProcess, OOMChildProcess, OOMAtStart, OOMHeapAbort, OOMPodLimit, OOMSuspected:
		return true
	case OOMStall:
	}
	return false
}

// Confidence is how sure a statement is, in the three steps an operator can act on.
type Confidence string

// The confidences.
const (
	Low    Confidence = "Low"
	Medium Confidence = "Medium"
	High   Confidence = "High"
)

// Known reports whether it is one of the three.
func (c Confidence) Known() bool { return c == Low || c == Medium || c == High }

// Lower is one step less sure.
func (c Confidence) Lower() Confidence {
	if c == High {
		return Medium
	}
	return Low
}

// RaiseReaches is how soon after a raise a container may die without the raise having reached it: a raise is sent to a
// container that runs, and the kubelet reports ends and limits up to a second late each.
const RaiseReaches = 3 * time.Second

// OOMKill is one kill, counted once.
type OOMKill struct {
	Container ContainerRef `json:"c"`
	Kind      OOMKind      `json:"k"`
	// Time is when the kubelet reports that the container ended, or else when memfit learned of it.
	Time time.Time `json:"t,omitzero"`
	// Seen is when memfit learned of it, by memfit's own clock: what memfit did before can be compared with it, and with
	// Time only as far as the node's clock is right. Zero: not known.
	Seen time.Time `json:"s,omitzero"`
	// Limit is the effective limit when it died (status.containerStatuses[].resources, not the spec). 0: none, unknown, or
	// not reached, because its node ran out of memory.
	Limit Bytes `json:"l,omitempty"`
	// Asked is the limit that the pod's spec asked for when the container died, where that was not proven to be effective
	// for the container and for its pod: a resize that the kubelet had not carried out. Limit is then the one before. 0:
	// Limit was effective.
	Asked Bytes `json:"la,omitempty"`
	// Own is the limit that the container was to have without its loan (sizing.rescue), which it used up. 0: Limit was no
	// loan.
	Own Bytes `json:"lo,omitempty"`
	// Program is what the container ran; empty: unknown.
	Program string `json:"pg,omitempty"`
	// Proven: the kernel held the container to Limit beyond doubt, because its pod was created with it or the pod's
	// cgroup is known to have it. Otherwise a limit that a resize brought is effective only as far as is visible from
	// outside.
	Proven bool `json:"lp,omitempty"`
	// Peak is the highest demand memfit saw in that container instance. 0: none seen.
	Peak Bytes `json:"r,omitempty"`
	// Uptime is how long that instance ran. 0: unknown.
	Uptime     time.Duration `json:"up,omitempty"`
	Confidence Confidence    `json:"cf"`
	// Why is how memfit knows, in a few words: "OOMKilled, exit 137, restart 4".
	Why string `json:"e"`
	// Account is what the agent of the node saw of the minute before it, in a sentence; empty: nothing. AccountAt is when
	// the agent noticed the kill, by the node's clock, in whole seconds.
	Account   string    `json:"a,omitempty"`
	AccountAt time.Time `json:"at,omitzero"`
	// AgentOnly: only the agent has reported it so far. The kernel's counter, which the kubelet shows later, counts the
	// same kill.
	AgentOnly bool `json:"ao,omitempty"`
	// Debugged: of kind [OOMPodLimit], and a debug session filled the pod.
	Debugged bool `json:"db,omitempty"`
}
