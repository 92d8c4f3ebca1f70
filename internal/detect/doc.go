// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package detect recognizes the language runtime of a process with its exact version, its C library and allocator, and
// the memory settings that are effective. It only reads; nothing is executed in the process.
//
// [Cache.Gather] inspects the mapped programs and libraries, within bounds, and returns [Facts]; [Detect] decides from
// facts alone. The traces of each runtime are in its own file of internal/runtimes ([runtimes.Mark]).
package detect
