// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package budget

// Race reports whether this test runs under the race detector. By its documentation the detector multiplies CPU time by
// 2 to 20, and it drops a quarter of the objects put into a sync.Pool. Budgets are larger by the factors below, and
// `make test-race` checks the real budgets in a second run without the detector.
const Race = true

const (
	cpuFactor   = 20
	bytesFactor = 2
)
