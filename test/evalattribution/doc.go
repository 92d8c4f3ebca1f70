// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package evalattribution starts real processes, attributes their memory with internal/attribution, compares the result
// with the processes' own numbers, and fails when they differ by more than docs/design/attribution.md allows (make
// eval-attribution). It needs root or the capabilities of the agent, and the build tag "runtimes".
package evalattribution
