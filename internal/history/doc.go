// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package history stores the memory use of one container name of one workload, in at most 1.5 KiB.
//
// It keeps a sparse, decaying histogram of window peaks, the peaks and troughs of 35 days, the lowest, usual and
// highest memory of one instance in up to 96 spans of the last days, and the last two hours in points. Samples of all
// replicas go into one [Container]; duplicates and late samples are harmless. It reads no clock and performs no I/O:
// time arrives with the samples, and equal input gives equal bytes.
package history
