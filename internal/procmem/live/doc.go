// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package live reads the memory and the mapped files of running processes for the agent. It needs CAP_SYS_PTRACE and
// CAP_DAC_READ_SEARCH. It never stops a process, never writes to it, and opens only regular files below its root.
package live
