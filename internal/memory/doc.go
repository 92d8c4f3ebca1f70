// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory has the types that every other package uses: [Bytes], [WorkloadRef], [ContainerRef] and [Sample].
// Arithmetic saturates; nothing here reads a clock or performs I/O.
package memory
