// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package budget

// Race reports whether this test runs under the race detector. It costs 2 to 20 times the processor time, says its
// documentation, and takes a quarter of what is put into a sync.Pool away on purpose: under it a budget is larger by
// these factors, which still tells seconds from minutes and megabytes from gigabytes. `make test-race` holds all who
// have a budget to the real one in a second run without it.
const Race = true

const (
	cpuFactor   = 20
	bytesFactor = 2
)
