// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package picture draws the memory of a pod from its MemorySnapshot, as text for a terminal and as SVG. It is pure: a
// snapshot in, a drawable [Pod] out; the choice of colors is an argument.
//
// Both show the same: a bar for each container with a segment for each part, hatched for free memory, unexplained
// memory always shown, the limit as a mark, and a legend with the numbers. Where the snapshot has a map of pages, each
// region is drawn block by block.
package picture
