// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package levers predicts how much memory of a container each action would free, with bounds and their computation.
// internal/runtimes defines the actions (levers); internal/attribution provides their input.
//
// It performs no I/O. The agent calls [Predict], and writes the result to the MemorySnapshot.
package levers
