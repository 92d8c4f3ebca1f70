// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution splits the resident memory of a running process by purpose: Java heap, glibc arenas, thread
// stacks and others. The agent calls [Attribute] with a [Snapshot], which has the mappings of the process and access to
// its memory. The resulting regions add up to the RSS that the kernel reports. Unrecognized memory is [Other]. The
// package performs no I/O of its own.
//
// A [Reader] reads one allocator or runtime, without stopping the process. Readers are called in order, and no byte is
// claimed twice. docs/design/attribution.md has the rules and measurements.
package attribution
