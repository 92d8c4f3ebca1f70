// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagemap draws which pages of a process's regions are in use, free but resident, or absent, in a bounded
// number of bytes: run-lengths of blocks, with larger blocks where a region is large or much scattered. The exact
// amounts of each region are stored as well, so that a map adds up to its parts whatever its blocks.
//
// It performs no I/O. The agent draws a map from the results of internal/attribution, a MemorySnapshot stores it, and
// `kubectl memfit map` renders it.
package pagemap
