// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package procmem reads the files of a process in /proc: bytes in, values out, in bounded memory. It truncates what a
// process controls (names, paths, its environment), and keeps only what the caller names. It reads an [fs.FS], so that
// tests use recorded files; package live has a real /proc and reads memory.
package procmem
