// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package elffile reads headers and exported symbols of untrusted ELF files, in bounded bytes. The standard library's
// debug/elf is documented as not hardened against them.
package elffile
