// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package glibc reads the heaps of glibc's malloc, 2.26 to 2.43, from outside and while threads allocate: which chunks
// are free, which pages of them are resident, and what malloc_trim would give back. No symbols are needed: it finds
// arenas by the headers of their heaps and by their ring, and chooses the layout that is consistent with both.
package glibc
