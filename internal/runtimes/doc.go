// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimes is the table of language runtimes: which settings keep each within a memory limit, how they are
// derived from it, when they must not be set, and how they are merged with the user's. It imports only the standard
// library and internal/memory, and performs no I/O; internal/inject decides about pods.
//
// Adding a runtime is one file here and its golden pairs in internal/inject/testdata. Every default, bound and guard
// has its source in docs/evidence/runtimes.md.
package runtimes
