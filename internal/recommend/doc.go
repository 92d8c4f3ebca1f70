// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package recommend computes a container's request and limit, with reasons, from its memory history and its OOM kills.
// internal/workload calls [Evaluate]. The package reads no clock and performs no I/O: equal input gives equal output.
// docs/design/sizing.md explains the cost model.
package recommend
