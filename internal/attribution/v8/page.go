// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"encoding/binary"

	"github.com/memfit/memfit/internal/attribution/words"
	"github.com/memfit/memfit/internal/procmem"
)

// pageSize is the alignment of pages in V8 10.2 to 14.6. Pages of small objects have this size.
const pageSize = 256 << 10

// Bits of a page's flags, equal in all known layouts.
const (
	fromSpace = 1 << 3 // dead objects, until the next scavenge
	toSpace   = 1 << 4 // new objects
	// freed: removed from the heap, not yet returned (12.4 and 13.6). V8 14.6 clears words of the header instead.
	freed = 1 << 16
)

// page has the header of a V8 page.
type page struct {
	start, size, flags uint64
	area               uint64 // address of the first object
	allocated          uint64 // bytes; not maintained in pages of new objects
	highWater          uint64 // highest filled offset
	pooled             bool   // freed by V8, and not yet returned to the kernel
}

// end returns the first address after the page.
func (p *page) end() uint64 { return p.start + p.size }

// layout has the offsets of a header's fields, in words.
type layout struct {
	self                                                   int // holds the address of the page; -1: none
	size, area, areaEnd, allocated, highWater, heap, flags int
	reserved                                               int    // size of the page's mapping, if apart
	freed                                                  uint64 // flag of freed pages; 0: unknown
	apart                                                  bool   // the page begins with flags and a pointer to its header
}

// layouts has the layouts of V8 10.2 and 11.3 (Node.js 18, 20), 12.4 (22), and 13.6 and 14.6 (24 to 26).
var layouts = []layout{
	{self: -1, size: 0, flags: 1, heap: 2, area: 3, areaEnd: 4, allocated: 5, highWater: 7},
	{flags: 0, self: 1, size: 2, heap: 3, area: 4, areaEnd: 5, allocated: 6, highWater: 8, freed: freed},
	{apart: true, freed: freed, self: 1, size: 2, allocated: 3, highWater: 5, reserved: 6, areaEnd: 7, heap: 8, area: 9},
}

const (
	headerWords = 12
	maxHeader   = 8 << 10 // offset of the first object; headers with mark bitmaps are smaller
	maxPage     = 4 << 30 // bytes; large objects of V8 are smaller
)

// readPage reads the header of the page at start. ok is false if no layout fits.
func readPage(r *words.Reader, start uint64) (p page, ok bool, err error) {
	var first [headerWords]uint64
	if err := header(r, start, &first); err != nil {
		return p, false, err
	}
	for _, l := range layouts {
		at := first
		if l.apart && (!r.Pointer(first[1]) || header(r, first[1], &at) != nil) {
			continue
		}
		if p, ok := l.page(start, at); ok {
			if l.apart {
				p.flags = first[0]
			}
			p.pooled = p.pooled || p.flags&l.freed != 0
			return p, true, nil
		}
	}
	return p, false, nil
}

func header(r *words.Reader, at uint64, into *[headerWords]uint64) error {
	var b [8 * headerWords]byte
	if err := r.Read(b[:], at); err != nil {
		return err
	}
	for i := range into {
		into[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return nil
}

// page interprets h as the header of the page at start. It returns false if this layout does not fit.
func (l layout) page(start uint64, h [headerWords]uint64) (page, bool) {
	p := page{start: start, size: h[l.size], area: h[l.area], allocated: h[l.allocated], highWater: h[l.highWater]}
	if !l.apart {
		p.flags = h[l.flags]
	}
	if l.self >= 0 && h[l.self] != start {
		if !l.apart || h[l.self] != 0 || p.size != 0 {
			return p, false
		}
		p.pooled, p.size = true, h[l.reserved] // V8 14.6 clears both words of a freed page
	}
	inside := p.area > start && p.area <= start+maxHeader && h[l.areaEnd] > p.area && h[l.areaEnd] <= start+p.size
	sized := p.size%procmem.PageSize == 0 && p.size > 0 && p.size <= maxPage && start+p.size > start
	filled := p.allocated <= p.size && p.highWater <= p.size
	return p, inside && sized && filled && (h[l.heap] != 0 || p.pooled)
}

// used returns the bytes of objects on the page, including garbage.
func (p *page) used() uint64 {
	header := p.area - p.start
	switch {
	case p.pooled || p.flags&fromSpace != 0:
		return 0
	case p.flags&toSpace != 0 && p.size == pageSize: // upper bound: the allocation pointer is not in the page
		return max(p.highWater, header) - header
	}
	return min(p.allocated, p.size-header)
}
