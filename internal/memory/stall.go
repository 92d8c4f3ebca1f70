// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"time"
)

// Stall is a period in which a container thrashed without being killed: anonymous memory filled nearly all of its
// limit, and the kernel read the remaining page cache from disk repeatedly.
type Stall struct {
	Container ContainerRef `json:"c"`
	Program   string       `json:"pg,omitempty"` // the container's fingerprint; empty: unknown
	Limit     Bytes        `json:"l"`            // the effective limit
	Since     time.Time    `json:"s"`            // the first sample that showed the stall
	Confirmed time.Time    `json:"k"`            // the sample that confirmed the stall
	Ended     time.Time    `json:"e,omitzero"`   // zero: the stall continues
	// Anon is the anonymous memory at Confirmed.
	Anon Bytes `json:"a,omitempty"`
	// Usage is all memory that counts against the limit, at Confirmed.
	Usage Bytes `json:"us,omitempty"`
	// Faults is the number of major page faults a second from Since to Confirmed.
	Faults int32 `json:"f,omitempty"`
	// PressurePercent is the share of time in which all tasks waited for memory (PSI memory full). 0: unknown.
	PressurePercent int32 `json:"pr,omitempty"`
	// RaisedTo is the limit after a raise during the stall. 0: not raised.
	RaisedTo Bytes `json:"rt,omitempty"`
	// FaultsAfter is the number of major page faults a second at RaisedTo.
	FaultsAfter int32 `json:"fa,omitempty"`
	// NotRelieved is true if the faults continued at RaisedTo, so the limit is not the bottleneck.
	NotRelieved bool `json:"nr,omitempty"`
	// Account is the agent's record, in a sentence, of the minute before the stall; empty: none.
	Account string `json:"ac,omitempty"`
	// AccountAt is when the stall began according to the agent; zero: no agent reported it.
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

// throttledPercent is the share of the limit below which a stall is at memory.high. Measured stalls at the limit had a
// usage of 99 %, those at memory.high 93 to 96 %, because processes still get memory there, slowly.
const throttledPercent = 98

// Cache returns the memory left for page cache and kernel memory.
func (s *Stall) Cache() Bytes { return s.Usage.Minus(s.Anon) }
