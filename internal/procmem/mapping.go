// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import "github.com/memfit/memfit/internal/memory"

// Perms are the permissions of a mapping.
type Perms uint8

// Permissions, as the second column of /proc/PID/maps shows them.
const (
	Readable Perms = 1 << iota
	Writable
	Executable
	Shared
)

// Mapping is one line of /proc/PID/maps with its amounts of /proc/PID/smaps.
type Mapping struct {
	Start, End uint64
	Perms      Perms
	Offset     uint64
	Inode      uint64
	// Path is the last column: a path as seen inside the container, "[heap]", "[anon: NAME]" or "". The process chose it.
	Path string
	// RSS is its resident memory, HugeTLB its reserved huge pages, which no RSS counts.
	RSS, HugeTLB memory.Bytes
}

// Size returns the size of its address range.
func (m *Mapping) Size() uint64 { return m.End - m.Start }

// Contains reports whether it contains an address.
func (m *Mapping) Contains(addr uint64) bool { return m.Start <= addr && addr < m.End }

// Has reports whether it has all of these permissions.
func (m *Mapping) Has(p Perms) bool { return m.Perms&p == p }

// Anonymous reports whether it is private memory without a file.
func (m *Mapping) Anonymous() bool { return m.Inode == 0 && !m.Has(Shared) && !m.Kernel() }

// Kernel reports whether the kernel created it for its own purposes.
func (m *Mapping) Kernel() bool {
	switch m.Path {
	case "[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]":
		return true
	}
	return false
}
