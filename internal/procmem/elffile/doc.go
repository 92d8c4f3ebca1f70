// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package elffile reads headers and exported symbols of untrusted ELF files, in bounded bytes. The debug/elf package
// of the standard library is documented not to be hardened against them.
package elffile
