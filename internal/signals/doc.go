// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package signals says which OOM kills happened, each exactly once ([Ledger]), and which containers stall just below
// their limit. It reads no clock and performs no I/O: equal input gives equal output. It reads pods (core/v1) and
// nothing else of Kubernetes. docs/signals.md is the same for users.
package signals
