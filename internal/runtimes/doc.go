// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimes is the table of what each language runtime understands: which settings keep it inside a memory
// limit, how each is derived from that limit, when it must not be set, and how it is merged with what the user already
// has. It imports nothing but the standard library and internal/memory, reads nothing and decides nothing about pods:
// internal/inject does.
//
// Adding a runtime is one file here and its golden pairs in internal/inject/testdata. Every default, bound and guard
// has its source in docs/evidence/runtimes.md.
package runtimes
