// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package detect tells what runs in a process: its language runtime with the exact version, its C library and
// allocator, and the settings of memory that are effective. It only reads; nothing is executed, and the process is not
// asked.
//
// [Gather] inspects the programs and libraries that a process has mapped, within bounds, and returns [Facts]; [Detect]
// decides from facts alone. Which traces belong to which runtime stands in the runtime's own file of internal/runtimes
// ([runtimes.Mark]).
package detect
