// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package evalattribution starts real processes, lets internal/attribution find where their memory is, asks the
// processes themselves, and fails where the two differ by more than docs/design/attribution.md allows: make
// eval-attribution. It needs root or the capabilities of the agent, and the build tag "runtimes".
package evalattribution
