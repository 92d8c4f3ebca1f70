// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution finds where the memory of a process is, from outside and while it runs: from its mappings, their
// resident pages and a few words of headers it computes regions that add up to the kernel's figure. Unrecognized memory
// is reported as [Other]. It performs no I/O of its own; the process comes as a [Snapshot].
//
// A [Reader] reads one allocator or runtime. Readers are called in order, and no byte is claimed twice.
// docs/design/attribution.md has the rules and measurements.
package attribution
