// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeproc provides synthetic processes for tests, with mappings and memory. Only written pages are resident.
// The package counts reads of other pages, which would cost a real process page tables or swap.
package fakeproc

import (
	"cmp"
	"encoding/binary"
	"io/fs"
	"slices"
	"testing"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// Permissions of mappings.
const (
	RW = procmem.Readable | procmem.Writable
	RX = procmem.Readable | procmem.Executable
)

// Process is a synthetic process. It is a [procmem.Memory].
type Process struct {
	Mappings []procmem.Mapping
	// Absent counts reads of pages that are not resident.
	Absent int
	// BeforeRead, if set, is called before each read, so that memory may change meanwhile.
	BeforeRead func(addr uint64)

	pages map[uint64]*[procmem.PageSize]byte
}

// New returns a process without memory.
func New() *Process { return &Process{pages: map[uint64]*[procmem.PageSize]byte{}} }

// Map adds a mapping. A path that begins with a slash gets an inode.
func (p *Process) Map(start, size uint64, perms procmem.Perms, path string) *Process {
	m := procmem.Mapping{Start: start, End: start + size, Perms: perms, Path: path}
	if path != "" && path[0] == '/' {
		m.Inode = 1
	}
	p.Mappings = append(p.Mappings, m)
	return p
}

// Put writes words and makes their pages resident.
func (p *Process) Put(addr uint64, words ...uint64) {
	for i, w := range words {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], w)
		p.Write(addr+uint64(8*i), b[:])
	}
}

// Write writes bytes and makes their pages resident.
func (p *Process) Write(addr uint64, b []byte) {
	for len(b) > 0 {
		page := addr &^ (procmem.PageSize - 1)
		p.Touch(page, 1)
		n := copy(p.pages[page][addr-page:], b)
		addr, b = addr+uint64(n), b[n:]
	}
}

// Touch makes pages resident, filled with zeroes unless they were resident.
func (p *Process) Touch(addr uint64, pages int) {
	for i := range pages {
		page := addr&^(procmem.PageSize-1) + uint64(i)*procmem.PageSize
		if p.pages[page] == nil {
			p.pages[page] = new([procmem.PageSize]byte)
		}
	}
}

// Drop removes pages, like madvise.
func (p *Process) Drop(addr uint64, pages int) {
	for i := range pages {
		delete(p.pages, addr&^(procmem.PageSize-1)+uint64(i)*procmem.PageSize)
	}
}

// ReadAt implements [procmem.Memory].
func (p *Process) ReadAt(b []byte, addr uint64) (int, error) {
	if p.BeforeRead != nil {
		p.BeforeRead(addr)
	}
	done := 0
	for done < len(b) {
		at := addr + uint64(done)
		page := p.pages[at&^(procmem.PageSize-1)]
		if page == nil {
			p.Absent++
			return done, procmem.ErrAbsent
		}
		done += copy(b[done:], page[at%procmem.PageSize:])
	}
	return done, nil
}

// Resident implements [procmem.Memory].
func (p *Process) Resident(start, end uint64) ([]procmem.Run, error) {
	start &^= procmem.PageSize - 1
	var found []uint64
	if pages := (end - start) / procmem.PageSize; pages < uint64(len(p.pages)) {
		for page := start; page < end; page += procmem.PageSize {
			if p.pages[page] != nil {
				found = append(found, page)
			}
		}
	} else {
		for page := range p.pages {
			if start <= page && page < end {
				found = append(found, page)
			}
		}
		slices.Sort(found)
	}
	var runs []procmem.Run
	for _, page := range found {
		if n := len(runs); n > 0 && runs[n-1].End() == page {
			runs[n-1].Length += procmem.PageSize
			continue
		}
		runs = append(runs, procmem.Run{Start: page, Length: procmem.PageSize})
	}
	return runs, nil
}

// Snapshot returns the process for package attribution, with the RSS of mappings as the kernel reports it. Files and
// times of the process are unavailable.
func (p *Process) Snapshot() *attribution.Snapshot {
	slices.SortFunc(p.Mappings, func(a, b procmem.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	s := &attribution.Snapshot{
		Process: procmem.Process{PID: 1, Exe: "/app"}, Mappings: slices.Clone(p.Mappings), Memory: p,
		OpenFile: func(string) (procmem.File, error) { return nil, fs.ErrNotExist },
		Times:    func() (procmem.Times, error) { return procmem.Times{}, fs.ErrNotExist },
		Same:     func() error { return nil },
	}
	for page := range p.pages {
		if m := s.MappingOf(page); m != nil {
			m.RSS += memory.Bytes(procmem.PageSize)
		}
	}
	return s
}

// NothingAbsent fails the test if a page was read that is not resident.
func (p *Process) NothingAbsent(t testing.TB) {
	t.Helper()
	if p.Absent > 0 {
		t.Errorf("%d reads of pages that are not in memory: each costs the process page tables or swap", p.Absent)
	}
}
