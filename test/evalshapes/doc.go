// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package evalshapes classifies recordings of real processes with internal/shape, compares the result with what the
// processes were made to do, and fails below the bar. test/recordings/README.md explains the labels.
package evalshapes
