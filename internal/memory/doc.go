// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory holds the nouns every other room speaks: [Bytes], [WorkloadRef], [ContainerRef] and [Sample].
// Arithmetic saturates and nothing here reads a clock or performs I/O.
package memory
