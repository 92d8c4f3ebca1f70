// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package words reads single words in the memory of a process, for readers of runtimes that follow pointers. It reads
// only resident pages, has a cache, and limits the number of pages read. It reads read-only file mappings from the
// file, so that no page becomes resident in the process.
package words

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/procmem"
)

// maxCached is the number of cached pages, 512 KiB in total. The names in HotSpot's tables are on some 50 pages.
const maxCached = 128

// Reader reads words of a process. It is not safe for concurrent use.
type Reader struct {
	s     *attribution.Snapshot
	left  int // pages that may still be read
	pages map[uint64]*[procmem.PageSize]byte
	order []uint64 // addresses of cached pages, the oldest first
}

// New returns a Reader that reads at most this many pages.
func New(s *attribution.Snapshot, pages int) *Reader {
	return &Reader{s: s, left: pages, pages: map[uint64]*[procmem.PageSize]byte{}}
}

// Close overwrites the cached memory of the process.
func (r *Reader) Close() {
	for _, page := range r.pages {
		clear(page[:])
	}
	r.pages, r.order = nil, nil
}

// FatalError returns err if no later read can succeed either, and nil if only this memory is unreadable.
func FatalError(err error) error {
	if errors.Is(err, procmem.ErrBudget) || errors.Is(err, procmem.ErrGone) {
		return err
	}
	return nil
}

// Pointer reports whether a word may be a pointer to a structure: it is aligned and inside a mapping.
func (r *Reader) Pointer(word uint64) bool { return word%8 == 0 && r.s.MappingOf(word) != nil }

// Read fills p with the memory at an address.
func (r *Reader) Read(p []byte, addr uint64) error {
	for len(p) > 0 {
		base := addr &^ (procmem.PageSize - 1)
		page, err := r.page(base)
		if err != nil {
			return err
		}
		n := copy(p, page[addr-base:])
		p, addr = p[n:], addr+uint64(n) //nolint:gosec // at most a page
	}
	return nil
}

// Uint64 reads 8 bytes.
func (r *Reader) Uint64(addr uint64) (uint64, error) {
	var b [8]byte
	err := r.Read(b[:], addr)
	return binary.LittleEndian.Uint64(b[:]), err
}

// Uint32 reads 4 bytes.
func (r *Reader) Uint32(addr uint64) (uint32, error) {
	var b [4]byte
	err := r.Read(b[:], addr)
	return binary.LittleEndian.Uint32(b[:]), err
}

// Text reads a zero-terminated string of less than most bytes.
func (r *Reader) Text(addr uint64, most int) (string, error) {
	b := make([]byte, 0, most)
	for len(b) < most {
		base := addr &^ (procmem.PageSize - 1)
		page, err := r.page(base)
		if err != nil {
			return "", err
		}
		part := page[addr-base:]
		part = part[:min(len(part), most-len(b))]
		if i := bytes.IndexByte(part, 0); i >= 0 {
			return string(append(b, part[:i]...)), nil
		}
		b = append(b, part...)
		addr += uint64(len(part))
	}
	return "", fmt.Errorf("%w: unterminated string", procmem.ErrAbsent)
}

func (r *Reader) page(base uint64) (*[procmem.PageSize]byte, error) {
	if page, cached := r.pages[base]; cached {
		return page, nil
	}
	if r.left <= 0 {
		return nil, procmem.ErrBudget // for example circular pointers, or a wrong length
	}
	r.left--
	page := r.buffer()
	if err := r.load(page, base); err != nil {
		return nil, err
	}
	r.pages[base] = page
	r.order = append(r.order, base)
	return page, nil
}

// buffer returns an empty page to read into. If the cache is full, it evicts the oldest page.
func (r *Reader) buffer() *[procmem.PageSize]byte {
	if len(r.order) < maxCached {
		return new([procmem.PageSize]byte)
	}
	oldest := r.order[0]
	page := r.pages[oldest]
	delete(r.pages, oldest)
	r.order = append(r.order[:0], r.order[1:]...)
	clear(page[:])
	return page
}

func (r *Reader) load(page *[procmem.PageSize]byte, base uint64) error {
	m := r.s.MappingOf(base)
	if m == nil {
		return fmt.Errorf("%w: %#x is not mapped", procmem.ErrAbsent, base)
	}
	runs, err := r.s.Memory.Resident(base, base+procmem.PageSize)
	if err != nil {
		return err
	}
	if procmem.ResidentBytes(runs, base, base+procmem.PageSize) < procmem.PageSize {
		if m.Inode != 0 && !m.Has(procmem.Writable) {
			return r.fromFile(page, m, base)
		}
		return fmt.Errorf("%w: the page of %#x is not resident", procmem.ErrAbsent, base)
	}
	n, err := r.s.Memory.ReadAt(page[:], base)
	if err == nil && n < len(page) {
		err = procmem.ErrAbsent
	}
	if err != nil {
		clear(page[:])
		return fmt.Errorf("reading the page of %#x: %w", base, err)
	}
	return nil
}

func (r *Reader) fromFile(page *[procmem.PageSize]byte, m *procmem.Mapping, base uint64) error {
	file, err := r.s.File(m.Path)
	if err != nil {
		return fmt.Errorf("%w: the file mapped at %#x cannot be read", procmem.ErrAbsent, base)
	}
	offset := m.Offset + base - m.Start
	if offset >= uint64(max(file.Size(), 0)) {
		return fmt.Errorf("%w: %#x is past the end of its file", procmem.ErrAbsent, base)
	}
	_, err = file.ReadAt(page[:], int64(offset)) //nolint:gosec // it is below the file's size
	if err != nil && offset+procmem.PageSize <= uint64(max(file.Size(), 0)) {
		return fmt.Errorf("reading a mapped file: %w", err)
	}
	return nil
}
