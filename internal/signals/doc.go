// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package signals turns what a cluster says about memory into two facts: which OOM kills happened, each exactly once
// ([Ledger]), and what a container's memory does over time ([Classify]). It reads no clock and performs no I/O: equal
// input gives equal output. It reads pods (core/v1) and nothing else of Kubernetes. docs/signals.md is the same for
// users.
package signals
