// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"runtime/debug"
	"testing"
)

// TestMain lets garbage grow: these tests allocate gigabytes beside a live heap of some megabytes, and to collect at
// twice of that takes a third of their processor time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	m.Run()
}
