// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory defines the types that all other packages share, among them [Bytes], [WorkloadRef], [ContainerRef] and
// [Sample]. Arithmetic saturates; nothing here reads a clock or performs I/O.
package memory
