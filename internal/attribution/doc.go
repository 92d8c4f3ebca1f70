// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution finds where the memory of a process is, from outside and while it runs: its mappings, which of
// their pages are in memory, and a few words of their headers become regions that add up to what the kernel counts.
// Unrecognized memory is reported as [Other]. It performs no I/O of its own; the process comes as a [Snapshot].
//
// A [Reader] knows one allocator or runtime. Readers are asked in order, and a claimed byte cannot be claimed again.
// docs/design/attribution.md has the rules, and what was measured.
package attribution
