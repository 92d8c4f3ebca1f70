// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"encoding/binary"
	"errors"
	"io"
)

var le = binary.LittleEndian

// PageSize is the size of a page of the machines that memfit runs on. Kernels with pages of 16 or 64 KiB exist on arm64
// and are refused where a process is opened.
const PageSize = 4096

// ErrAbsent is returned for memory that is not mapped, or no longer.
var ErrAbsent = errors.New("no memory there")

// ErrBudget is returned where as much was read as was allowed.
var ErrBudget = errors.New("as many pages were read as are allowed")

// ErrGone is returned when the process has ended, or its number belongs to another one by now.
var ErrGone = errors.New("the process is gone")

// AlignUp is the first multiple of a unit, a power of two, that is not below an address.
func AlignUp(addr, unit uint64) uint64 { return (addr + unit - 1) &^ (unit - 1) }

// Run is a range of pages that are in memory.
type Run struct {
	Start, Length uint64
}

// End is the first address behind the run.
func (r Run) End() uint64 { return r.Start + r.Length }

// File is a mapped file of a process.
type File interface {
	io.ReaderAt
	io.Closer
	// Size is how long it is.
	Size() int64
	// Identity distinguishes it from other files; not ok: that cannot be reported.
	Identity() (id FileIdentity, ok bool)
}

// FileIdentity distinguishes a file from others, and from itself after a change.
type FileIdentity struct {
	Device, Inode uint64
	Size          int64
	// Modified and Changed are nanoseconds since 1970. Whoever may write to the file chooses Modified; Changed is the
	// kernel's.
	Modified, Changed int64
}

// Memory is the memory of a process that runs on meanwhile.
type Memory interface {
	// ReadAt copies the memory at an address. It never waits for the process. The caller must read only pages that
	// [Memory.Resident] named: reading another page makes the kernel create page tables, or fetch it from swap, charged
	// to the process that is read. [Window] takes care of that.
	ReadAt(p []byte, addr uint64) (int, error)
	// Resident returns the ranges between two addresses whose pages are in memory, in ascending order, without pages of
	// zeroes that are only mapped.
	Resident(start, end uint64) ([]Run, error)
}
