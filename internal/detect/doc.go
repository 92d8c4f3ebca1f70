// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package detect recognizes the language runtime of a process with its exact version, its C library and allocator, and
// the effective memory settings. The agent calls it. It only reads; nothing is executed in the process.
//
// [Cache.Gather] inspects the mapped programs and libraries, within bounds, and returns [Facts]. [Detect] decides from
// facts alone. What identifies a runtime ([runtimes.Mark]) is in the file of the runtime in internal/runtimes.
package detect
