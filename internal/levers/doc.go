// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package levers predicts which actions would give memory of a container back, with bounds and their computation.
// internal/runtimes has the levers; their input is from internal/attribution.
//
// It performs no I/O. The agent predicts, and a MemorySnapshot has the predictions for all readers.
package levers
