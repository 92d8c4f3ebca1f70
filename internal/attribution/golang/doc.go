// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package golang reads the heap of a Go program from outside, stripped or not. The runtime's collector keeps six
// counters behind each other in its variables (gcControllerState: heapInUse, heapReleased, heapFree, totalAlloc,
// totalFree, mappedReady). What they mean ties them to each other and to the size of the heap's mappings so closely
// that one place in the variables fits; where none fits, or two do, nothing is reported.
package golang
