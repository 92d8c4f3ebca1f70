// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"time"
)

// Stall is a time in which a container stalled for lack of memory without being killed: anonymous memory, which the
// kernel cannot drop without swap, filled nearly all of the limit, and the little page cache that was left (the
// program's own text, mapped files) was read back from the disk again and again. It is counted apart from kills.
type Stall struct {
	Container ContainerRef `json:"c"`
	// Program is what the container ran; empty: unknown.
	Program string `json:"pg,omitempty"`
	// Limit is the effective limit.
	Limit Bytes `json:"l"`
	// Since is the first sample that showed it, Known the one that made it certain.
	Since time.Time `json:"s"`
	Known time.Time `json:"k"`
	// Ended is zero while it goes on.
	Ended time.Time `json:"e,omitzero"`
	// Anon is the anonymous memory, and Usage all memory, when it was certain.
	Anon  Bytes `json:"a,omitempty"`
	Usage Bytes `json:"us,omitempty"`
	// Faults are the major page faults a second from Since to Known.
	Faults int32 `json:"f,omitempty"`
	// PressurePercent is the share of that time in which no task of the container could go on (PSI memory full). 0:
	// unknown.
	PressurePercent int32 `json:"pr,omitempty"`
	// RaisedTo is the higher limit that the container got while it stalled. 0: none.
	RaisedTo Bytes `json:"rt,omitempty"`
	// FaultsAfter are the major page faults a second at RaisedTo, when that was decided on.
	FaultsAfter int32 `json:"fa,omitempty"`
	// NotRelieved: at RaisedTo the faults went on, and what was read did not stay in memory. More memory is not what it
	// lacks.
	NotRelieved bool `json:"nr,omitempty"`
	// Account is what the agent of the node saw of the minute before it, in a sentence; empty: nothing. AccountAt is when
	// it started as the agent saw it; zero: no agent reported it.
	Account   string    `json:"ac,omitempty"`
	AccountAt time.Time `json:"at,omitzero"`
}

// Why is how memfit knows, in a few words: "235Mi of 256Mi anonymous, 20Mi left for page cache, 150 major faults a
// second".
func (s *Stall) Why() string {
	words := fmt.Sprintf("%s of %s anonymous, %s left for page cache, %d major faults a second",
		s.Anon, s.Limit, s.Cache(), s.Faults)
	if s.PressurePercent > 0 {
		words += fmt.Sprintf(", nothing could go on for %d %% of the time", s.PressurePercent)
	}
	if s.Throttled() {
		words += "; the kernel slows it down below its limit already, at memory.high, which the kubelet's MemoryQoS sets " +
			"and a higher limit or request raises"
	}
	return words
}

// throttledPercent of the limit: what stalls at its limit was seen at 99 %, because reclaim keeps usage within 1 %;
// what memory.high holds was seen at 93 to 96 %, because a process that asks for more gets it, slowly.
const throttledPercent = 98

// Throttled reports whether it stalled below its limit, which only memory.high causes, and only waiting shows.
func (s *Stall) Throttled() bool {
	return s.Usage < s.Limit.Percent(throttledPercent) && s.PressurePercent > 0
}

// Cache is what was left for page cache, with what the kernel itself used.
func (s *Stall) Cache() Bytes { return s.Usage.Minus(s.Anon) }
