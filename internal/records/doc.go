// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package records decides to which workload a stored MemoryRecommendation or MemoryCheckpoint belongs: the one that
// exists, an earlier one of the same name, or none. A record lives and dies with its workload, which its UID
// identifies; a workload that is deleted and created again starts afresh, because it may run another program.
//
// It is pure: what exists is an argument, and an unknown state never causes a deletion.
package records
