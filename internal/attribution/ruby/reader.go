// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package ruby reads the object heap of CRuby. Its pages have 16 KiB in Ruby 3.1, and 64 KiB in later versions. A page
// begins with a pointer to a structure, which has the size of the slots, their number and how many are free, and points
// back at the page. Strings and arrays that do not fit into a slot come from malloc.
package ruby

import (
	"context"
	"encoding/binary"
	"errors"
	"path"
	"strings"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/words"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// Names of further details in [amounts.Usage.Details]: counts.
const (
	Pages     = "pages"
	Slots     = "slots"
	FreeSlots = "freeSlots"
)

// ErrNone is returned if a process has no page of Ruby's object heap.
var ErrNone = errors.New("no page of Ruby's object heap was found")

// Reader reads the object heap of CRuby.
type Reader struct{}

// maxPages bounds the memory pages read of one process: enough for 1 GiB of heap pages of 16 KiB, with two reads each.
const maxPages = 128 << 10

// Name implements [attribution.Reader].
func (Reader) Name() string { return amounts.Ruby }

// Detect implements [attribution.Reader].
func (Reader) Detect(s *attribution.Snapshot) bool {
	return s.HasFile("libruby") || strings.HasPrefix(path.Base(s.Process.Exe), "ruby")
}

// pageSizes has the sizes in Ruby 3.2 and later, and in earlier versions. The larger is tried first, because a search
// for the smaller would also match the middle of larger pages.
var pageSizes = []uint64{64 << 10, 16 << 10}

// Claim implements [attribution.Reader].
func (Reader) Claim(ctx context.Context, s *attribution.Snapshot) ([]attribution.Region, amounts.Usage, error) {
	for _, size := range pageSizes {
		reader := words.New(s, maxPages)
		h := heap{s: s, words: reader, size: size}
		err := h.all(ctx)
		reader.Close()
		if err != nil {
			return nil, amounts.Usage{}, err
		}
		if len(h.regions) > 0 {
			return append(h.regions, h.transient...), h.usage(), nil
		}
	}
	return nil, amounts.Usage{}, ErrNone
}

// heap adds up the contents of pages.
type heap struct {
	s       *attribution.Snapshot
	words   *words.Reader
	size    uint64
	regions []attribution.Region

	transient                    []attribution.Region // mappings that are probably the transient heap
	pages, odd                   int64
	slots, freeSlots             uint64
	used, freePartial, freeWhole uint64
}

func (h *heap) all(ctx context.Context) error {
	for i := range h.s.Mappings {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := &h.s.Mappings[i]
		if !m.Anonymous() || m.Path != "" || !m.Has(procmem.Readable|procmem.Writable) || m.RSS == 0 {
			continue
		}
		if m.Size() == transientSize {
			h.transient = append(h.transient, attribution.Region{Start: m.Start, End: m.End, Kind: Transient})
			continue
		}
		if err := h.mapping(m); err != nil {
			return err
		}
	}
	return nil
}

// Transient is the kind of Ruby's transient heap, which has the contents of short-lived arrays and hashes up to Ruby
// 3.2. It is one mapping of transientSize, without a header.
const (
	Transient     attribution.Kind = "Ruby transient heap"
	transientSize                  = 32 << 20
)

// oddBeforeGivingUp is after how many places without a page the search of a mapping ends if no page was found.
const oddBeforeGivingUp = 64

// mapping reads the pages of a mapping, at each address where one may start.
func (h *heap) mapping(m *procmem.Mapping) error {
	runs, err := h.s.Memory.Resident(m.Start, m.End)
	if err != nil {
		return err
	}
	var found, odd, others int64
	for at := procmem.AlignUp(m.Start, h.size); at+h.size <= m.End; at += h.size {
		if procmem.ResidentBytes(runs, at, at+procmem.PageSize) == 0 {
			continue
		}
		p, what, err := h.page(at)
		if err != nil {
			return err
		}
		switch what {
		case isPage:
			found++
			h.add(at, p, procmem.ResidentBytes(runs, at, at+h.size))
			continue
		case oddPage:
			odd++
		case noPage:
			others++
		}
		if odd+others > oddBeforeGivingUp && found == 0 {
			return nil
		}
	}
	if found > odd {
		h.odd += odd
	}
	return nil
}

// page has the size of a page's slots, their number, and how many are free.
type page struct {
	slot, total, free uint64
}

// maxBody bounds the offset of the first slot in its page.
const maxBody = 1 << 10

// verdict is what was found where a page may start.
type verdict int

const (
	// noPage: memory of another allocator. The kernel merges adjacent mappings, so large blocks of glibc and thread stacks
	// of Ruby may be between pages.
	noPage verdict = iota
	// oddPage: probably a page, but its structure is unreadable or inconsistent: a thread may be changing it.
	oddPage
	isPage
)

// page reads the structure of the page at an address, if a page starts there.
func (h *heap) page(at uint64) (p page, what verdict, err error) {
	info, err := h.words.Uint64(at)
	if err != nil || !h.words.Pointer(info) {
		return p, noPage, words.FatalError(err) // unreadable memory is not a page
	}
	var b [64]byte
	if err := h.words.Read(b[:], info); err != nil {
		return p, oddPage, words.FatalError(err)
	}
	le := binary.LittleEndian
	p = page{slot: uint64(le.Uint16(b[:])), total: uint64(le.Uint16(b[2:])), free: uint64(le.Uint16(b[4:]))}
	back := false
	for i := 16; i < len(b); i += 8 { // the address of the first slot is the fourth word in 3.1, a later one since
		start := le.Uint64(b[i:])
		back = back || start > at && start <= at+maxBody
	}
	// At the end of a page, up to two slots may be missing.
	filled := p.total*p.slot <= h.size && (p.total+2)*p.slot+maxBody >= h.size
	switch {
	case !back:
		return p, noPage, nil
	case p.slot < 40, p.slot%8 != 0, p.free > p.total, !filled:
		return p, oddPage, nil
	}
	return p, isPage, nil
}

func (h *heap) add(at uint64, p page, resident uint64) {
	h.regions = append(h.regions, attribution.Region{Start: at, End: at + h.size, Kind: attribution.RubyPage})
	used := min((p.total-p.free)*p.slot, resident)
	h.pages++
	h.slots += p.total
	h.freeSlots += p.free
	h.used += used
	if p.free == p.total {
		h.s.Free(at, at+h.size)
		h.freeWhole += resident
		return
	}
	h.freePartial += resident - used
}

func (h *heap) usage() amounts.Usage {
	//nolint:gosec // sums of what is mapped
	return amounts.Usage{
		InUse: memory.Bytes(h.used), FreeResident: memory.Bytes(h.freeWhole), FreePartial: memory.Bytes(h.freePartial),
		Coverage: float64(h.pages) / float64(h.pages+h.odd),
		Details:  map[string]int64{Pages: h.pages, Slots: int64(h.slots), FreeSlots: int64(h.freeSlots)},
	}
}
