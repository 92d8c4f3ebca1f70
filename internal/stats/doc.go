// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package stats has robust statistics: medians, ranks, pairs. They take plain numbers in the order of time. It reads no
// clock, performs no I/O, and imports nothing else of memfit.
package stats
