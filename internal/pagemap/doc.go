// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagemap draws which pages of a process's regions are in use, free but resident, or absent, in a bounded
// number of bytes: run-lengths of blocks, with larger blocks where a region is large or much scattered. The exact
// amounts of each region are stored beside them, so that a map adds up to the parts it was drawn from whatever its
// blocks.
//
// It performs no I/O. The agent draws a map from what internal/attribution found, a MemorySnapshot carries it, and
// `kubectl memfit map` makes a picture of it.
package pagemap
