// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cpython reads the object allocator of CPython (pymalloc) from outside. It cuts its arenas into pools of 16
// KiB (4 KiB before 3.10), each of which begins with a header: how many blocks are in use, of which size. A header is
// recognized by consistent numbers. Blocks of more than 512 bytes are malloc's, and the free-threaded build has another
// allocator.
package cpython
