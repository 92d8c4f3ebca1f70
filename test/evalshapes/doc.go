// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package evalshapes classifies recordings of real processes with internal/shape, compares the results with the
// recordings' labels, and fails when accuracy is below the bar. test/recordings/README.md explains the labels.
package evalshapes
