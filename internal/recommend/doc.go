// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package recommend turns a container's memory history and its OOM kills into a request and a limit, with reasons. It
// reads no clock and performs no I/O: equal input gives equal output. The cost model and its measured curve are in
// docs/design/sizing.md.
package recommend
