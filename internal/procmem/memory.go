// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"encoding/binary"
	"errors"
	"io"
)

var le = binary.LittleEndian

// PageSize is the only supported page size, in bytes. arm64 kernels with pages of 16 or 64 KiB are refused.
const PageSize = 4096

// Errors of reading the memory of a process.
var (
	ErrAbsent = errors.New("the memory is not mapped or not resident")
	ErrBudget = errors.New("the maximum number of pages was read")
	ErrGone   = errors.New("the process has ended")
)

// AlignUp rounds an address up to a multiple of unit, a power of two.
func AlignUp(addr, unit uint64) uint64 { return (addr + unit - 1) &^ (unit - 1) }

// Run is a range of resident pages.
type Run struct {
	Start, Length uint64
}

// End returns the first address after the run.
func (r Run) End() uint64 { return r.Start + r.Length }

// File is a mapped file of a process.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
	// Identity distinguishes the file from others; ok is false if it is unknown.
	Identity() (id FileIdentity, ok bool)
}

// FileIdentity distinguishes a file from others, and from itself after a change.
type FileIdentity struct {
	Device, Inode uint64
	Size          int64
	// Modified and Changed are nanoseconds since 1970. Writers of the file can set Modified; the kernel sets Changed.
	Modified, Changed int64
}

// Memory is the memory of a running process.
type Memory interface {
	// ReadAt copies the memory at an address. It never waits for the process. The caller must read only pages that
	// [Memory.Resident] returned, as [Window] does: reading another page makes the kernel create page tables, or fetch the
	// page from swap, charged to the process.
	ReadAt(p []byte, addr uint64) (int, error)
	// Resident returns the resident ranges between two addresses, in ascending order, without the shared page of zeroes.
	Resident(start, end uint64) ([]Run, error)
}
