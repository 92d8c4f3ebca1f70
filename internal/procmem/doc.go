// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package procmem reads what Linux reports about a process below /proc: bytes in, values out, in bounded memory. What
// a process can write there itself (names, paths, its environment) is cut, and only what the caller names is kept. The
// package opens an [fs.FS] of the caller, so that tests read recorded files; package live is the edge that has a real
// /proc and reads memory.
package procmem
