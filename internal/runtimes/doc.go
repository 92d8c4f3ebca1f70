// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimes is the table of language runtimes. A row has the settings that keep a runtime within a memory limit,
// how they are derived from the limit, when they must not be set, and how they are merged with the user's values.
// internal/inject plans pods by the table, and internal/detect finds runtimes by it. The package performs no I/O.
//
// Adding a runtime is one file here and its golden pairs in internal/inject/testdata. Every default, bound and guard
// has its source in docs/evidence/runtimes.md.
package runtimes
