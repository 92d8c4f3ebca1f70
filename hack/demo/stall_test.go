// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const testMiB = memory.Bytes(1 << 20)

// TestStall has numbers of containers on a lab's node; only the first is a stall.
func TestStall(t *testing.T) {
	limit := 256 * testMiB
	full := usage{total: 255 * testMiB, rss: 241 * testMiB}
	for name, tc := range map[string]struct {
		use      usage
		faults   uint64 // a minute
		bursts   func(second int) int
		running  bool
		restarts func(second int) int32
		want     bool
	}{
		"held at its limit":            {use: full, faults: 3700, running: true, want: true},
		"waits for a processor":        {use: usage{total: 231 * testMiB, rss: 223 * testMiB}, running: true},
		"full, but reads nothing back": {use: full, faults: 3, running: true},
		"reads, but not full": {
			use: usage{total: 200 * testMiB, rss: 190 * testMiB}, faults: 6000, running: true,
		},
		"works at its limit": {
			use: full, faults: 3700, running: true, bursts: func(s int) int { return s / 40 },
		},
		"waits for its restart": {use: full, faults: 3700},
		"is killed and started every 30 s": {
			use: full, faults: 3700, running: true, restarts: func(s int) int32 { return int32(s / 30) },
		},
		"its usage is not measured yet": {running: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := stallWatch{limit: limit}
			var got *stall
			for second := 0; second <= 90 && got == nil; second++ {
				use := tc.use
				use.faults = 400 + tc.faults*uint64(second)/60
				bursts, restarts := 0, int32(0)
				if tc.bursts != nil {
					bursts = tc.bursts(second)
				}
				if tc.restarts != nil {
					restarts = tc.restarts(second)
				}
				got = w.observe(time.Unix(int64(second), 0), tc.running, bursts, restarts, use)
			}
			if (got != nil) != tc.want {
				t.Fatalf("stall = %v, want %v", got, tc.want)
			}
			if got != nil && (got.lasted < patience || got.lasted > patience+2*time.Second || got.readFaults < 2400) {
				t.Errorf("stall after %s with %d faults, want one after %s with 3700", got.lasted, got.readFaults, patience)
			}
		})
	}
}
