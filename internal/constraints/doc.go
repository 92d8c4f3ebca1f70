// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraints reads what else in the cluster determines a workload's memory: autoscalers that write or follow
// it, LimitRanges and ResourceQuotas of its namespace, the sizes of nodes. It reads no clock and performs no I/O: the
// objects are arguments, and it reads only the fields named here, so a cache may drop the others. Malformed objects
// have no effect.
package constraints
