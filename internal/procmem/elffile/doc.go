// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package elffile reads headers and exported symbols of ELF files that another party wrote, in bounded bytes. The
// debug/elf package of the standard library says of itself that it is not hardened against that.
package elffile
