// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package glibc reads the heaps of glibc's malloc, 2.26 to 2.43, while threads of the process allocate. It reports
// which chunks are free, which of their pages are resident, and what malloc_trim would return. An arena has one or more
// heaps. A heap is a sequence of chunks; the last chunk of an arena is its free top. No symbols are needed: arenas are
// found by the headers of their heaps and by the ring that links them.
package glibc
