// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package levers predicts what would give memory of a container back: for each lever of its runtimes the gain in bytes,
// as bounds with how they were computed, honest zeroes among them. The levers are columns of internal/runtimes; what
// they depend on is what internal/attribution found.
//
// It performs no I/O. The agent predicts, a MemorySnapshot carries the predictions, and everybody else repeats them.
package levers
