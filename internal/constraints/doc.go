// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraints says what else in the cluster has a say in a workload's memory: autoscalers that write or follow
// it, LimitRanges and ResourceQuotas of its namespace, the sizes of nodes. It reads no clock and performs no I/O: the
// objects are arguments, and of each only what is said here is read, so a cache may drop the rest. Malformed objects
// say nothing.
package constraints
