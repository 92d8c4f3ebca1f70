// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package golang reads the heap of a Go program from outside, stripped or not. The runtime's collector keeps six
// counters behind each other in its variables (gcControllerState: heapInUse, heapReleased, heapFree, totalAlloc,
// totalFree, mappedReady). They must be consistent with each other and with the size of the heap's mappings, which only
// one place in the variables fulfils; if none or several match, nothing is reported.
package golang
