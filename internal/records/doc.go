// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package records decides whose a stored MemoryRecommendation or MemoryCheckpoint is: of the workload that exists, of
// an earlier one of the same name, or of none. A record lives and dies with its workload, which its UID identifies; a
// workload that is deleted and made again starts afresh, because it may run another program.
//
// It is pure: what exists is an argument, and what nobody could read is never a reason to delete.
package records
