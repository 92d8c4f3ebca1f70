// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"time"
)

// Stall is a period in which a container stalled for lack of memory without a kill: anonymous memory filled nearly all
// of the limit, and the remaining page cache was read back from disk again and again.
type Stall struct {
	Container ContainerRef `json:"c"`
	Program   string       `json:"pg,omitempty"` // the container's fingerprint; empty: unknown
	Limit     Bytes        `json:"l"`            // the effective limit
	Since     time.Time    `json:"s"`            // the first sample that showed it
	Known     time.Time    `json:"k"`            // the sample that confirmed it
	Ended     time.Time    `json:"e,omitzero"`   // zero: it continues
	// Anon is the anonymous memory, and Usage all memory, when it was confirmed.
	Anon  Bytes `json:"a,omitempty"`
	Usage Bytes `json:"us,omitempty"`
	// Faults are the major page faults a second from Since to Known.
	Faults int32 `json:"f,omitempty"`
	// PressurePercent is the share of that time in which all tasks waited for memory (PSI memory full). 0: unknown.
	PressurePercent int32 `json:"pr,omitempty"`
	// RaisedTo is the higher limit that the container got while it stalled. 0: none.
	RaisedTo Bytes `json:"rt,omitempty"`
	// FaultsAfter are the major page faults a second at RaisedTo, when memfit decided whether the raise had an effect.
	FaultsAfter int32 `json:"fa,omitempty"`
	// NotRelieved is true if at RaisedTo the faults continued, and their pages did not remain in memory: the limit is not
	// the bottleneck.
	NotRelieved bool `json:"nr,omitempty"`
	// Account is the agent's record of the minute before it, in a sentence; empty: none. AccountAt is the agent's time of
	// its start; zero: no agent reported it.
	Account   string    `json:"ac,omitempty"`
	AccountAt time.Time `json:"at,omitzero"`
}

// Why returns the evidence in a few words: "235Mi of 256Mi anonymous, 20Mi left for page cache, 150 major faults a
// second".
func (s *Stall) Why() string {
	words := fmt.Sprintf("%s of %s anonymous, %s left for page cache, %d major faults a second",
		s.Anon, s.Limit, s.Cache(), s.Faults)
	if s.PressurePercent > 0 {
		words += fmt.Sprintf(", all tasks waited for memory %d %% of the time", s.PressurePercent)
	}
	if s.PressurePercent > 0 && s.Usage < s.Limit.Percent(throttledPercent) {
		words += "; the kernel throttles it at memory.high, below its limit. The kubelet's MemoryQoS sets memory.high; a " +
			"higher limit or request raises it"
	}
	return words
}

// throttledPercent of the limit: stalls at the limit were measured at 99 %, because reclaim keeps usage within 1 %;
// those at memory.high at 93 to 96 %, because processes still get memory there, slowly.
const throttledPercent = 98

// Cache returns the memory left for page cache, including kernel memory.
func (s *Stall) Cache() Bytes { return s.Usage.Minus(s.Anon) }
