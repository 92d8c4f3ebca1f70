// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot turns the agent's findings into MemorySnapshots, decides when two differ enough for a write, and
// writes them.
package snapshot
