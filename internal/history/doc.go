// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package history stores the memory use of one container name of one workload, in at most 1.5 KiB. Samples of all
// replicas go into one [Container], which internal/recommend and internal/shape read.
//
// A Container has a sparse, decaying histogram of hourly peaks, the peaks and troughs of 35 days, a timeline of one
// instance in up to 96 spans, and the points of the last two hours. Duplicates and late samples are harmless. The
// package reads no clock and performs no I/O: samples carry their time, and equal input gives equal bytes.
package history
