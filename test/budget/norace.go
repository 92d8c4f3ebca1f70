// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package budget

// Race reports whether this test runs under the race detector.
const Race = false

const (
	cpuFactor   = 1
	bytesFactor = 1
)
