// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package live accesses running processes: system calls that read the memory of another process, and its mapped files.
// It needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, never stops the process, never writes to it, and opens only regular
// files, as the process sees them.
package live
