// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package stats has the statistics that do not believe a single point: medians, ranks, pairs. They take plain numbers
// in the order of time; what the numbers are is the caller's business. It reads no clock, performs no I/O, and imports
// nothing else of memfit.
package stats
