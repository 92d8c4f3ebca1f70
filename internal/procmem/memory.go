// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"encoding/binary"
	"errors"
	"io"
)

var le = binary.LittleEndian

// PageSize is the supported page size. On arm64, kernels with pages of 16 or 64 KiB exist, and are refused.
const PageSize = 4096

// Errors for memory that is not mapped, after the allowed number of reads, and for a process that has ended.
var (
	ErrAbsent = errors.New("no memory there")
	ErrBudget = errors.New("the maximum number of pages was read")
	ErrGone   = errors.New("the process is gone")
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
	// Identity distinguishes it from other files; ok is false if unknown.
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
	// [Memory.Resident] returned: reading another page makes the kernel create page tables, or fetch it from swap,
	// charged to that process. [Window] ensures that.
	ReadAt(p []byte, addr uint64) (int, error)
	// Resident returns the resident ranges between two addresses, in ascending order, without mapped zero pages.
	Resident(start, end uint64) ([]Run, error)
}
