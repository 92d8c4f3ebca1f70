// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package v8 reads the heap of V8 in Node.js 18 to 26. The heap consists of pages of 256 KiB, and of larger pages for
// large objects. Each page begins with a header, or with a pointer to its header, which has the number of allocated
// bytes. V8 has had three layouts of headers. A layout is recognized by fields that must match the address of the page.
//
// Allocated memory includes garbage, which only a collection can identify.
package v8

import (
	"context"
	"errors"
	"slices"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/words"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// Names of further details in [amounts.Usage.Details]: bytes of pages, resident or not.
const (
	Young = "young" // young generation, including its reserve
	Old   = "old"   // all other pages, except freed ones
)

// ErrNone is returned if a process has no page of V8.
var ErrNone = errors.New("no page of V8 was found")

// Reader reads the heap of V8.
type Reader struct{}

// maxPages bounds the memory pages read: enough for heaps of 8 GiB, of which each page of V8 takes at most two.
const maxPages = 64 << 10

// Name implements [attribution.Reader].
func (Reader) Name() string { return amounts.V8 }

// Detect implements [attribution.Reader]: the program is Node.js, or has it as a shared library. Other programs with V8
// were not measured; with compressed pointers, headers differ.
func (Reader) Detect(s *attribution.Snapshot) bool {
	if s.HasFile("libnode.so") {
		return true
	}
	exe, err := s.Exe()
	if err != nil {
		return false
	}
	_, err = exe.Symbol("_ZN4node5StartEiPPc") // int node::Start(int, char**)
	return err == nil
}

// Claim implements [attribution.Reader].
func (Reader) Claim(ctx context.Context, s *attribution.Snapshot) ([]attribution.Region, amounts.Usage, error) {
	reader := words.New(s, maxPages)
	defer reader.Close()
	v, known := versionOf(s, reader) // first, because reading the heap may use up maxPages
	regions, u, err := pagesOf(ctx, s, reader)
	if !known || !slices.Contains(measured, v) { // freed pages cannot be distinguished
		u.Coverage = 0
	}
	return regions, u, err
}

// pagesOf reads all pages of the heap.
func pagesOf(
	ctx context.Context, s *attribution.Snapshot, reader *words.Reader,
) ([]attribution.Region, amounts.Usage, error) {
	h := heap{s: s, words: reader}
	for i := range s.Mappings {
		if err := ctx.Err(); err != nil {
			return nil, amounts.Usage{}, err
		}
		if err := h.mapping(&s.Mappings[i]); err != nil {
			return nil, amounts.Usage{}, err
		}
	}
	if len(h.pages) == 0 {
		return nil, amounts.Usage{}, ErrNone
	}
	return h.regions, h.usage(), nil
}

// version is a version of V8.
type version struct{ major, minor uint32 }

// measured has the versions in Node.js 18, 20, 22, 24 and 26, whose results were compared with V8's own
// (docs/design/attribution.md). Amounts of other versions are not reported: in V8 14.1 (Node.js 25), freed pages cannot
// be distinguished from used ones.
var measured = []version{{10, 2}, {11, 3}, {12, 4}, {13, 6}, {14, 6}}

// versionOf reads the version from variables that the program or libnode exports: members of v8::internal::Version.
func versionOf(s *attribution.Snapshot, r *words.Reader) (v version, known bool) {
	module, err := s.Module("libnode.so")
	if err != nil {
		module, err = s.Exe()
	}
	if err != nil {
		return v, false
	}
	for _, one := range []struct {
		symbol string
		into   *uint32
	}{{"_ZN2v88internal7Version6major_E", &v.major}, {"_ZN2v88internal7Version6minor_E", &v.minor}} {
		at, err := module.Symbol(one.symbol)
		if err != nil {
			return v, false
		}
		if *one.into, err = r.Uint32(at); err != nil {
			return v, false
		}
	}
	return v, true
}

// heap adds up the contents of pages.
type heap struct {
	s       *attribution.Snapshot
	words   *words.Reader
	pages   []page
	reached uint64 // end of the last page
	regions []attribution.Region
	total   amounts.Usage

	young, old, oldInUse        uint64
	youngResident, poolResident uint64
	read, unread                uint64 // resident bytes of valid pages, and of invalid ones
}

// mapping reads the pages of a mapping, at each address where one may start.
func (h *heap) mapping(m *procmem.Mapping) error {
	if !m.Anonymous() || !m.Has(procmem.Readable) || m.RSS == 0 || m.Path != "" {
		return nil
	}
	var runs []procmem.Run
	for at := procmem.AlignUp(max(m.Start, h.reached), pageSize); at < m.End; {
		p, ok, err := readPage(h.words, at)
		if final := words.FatalError(err); final != nil {
			return final
		}
		ok = ok && err == nil && h.mapped(p, m)
		if ok && runs == nil {
			if runs, err = h.s.Memory.Resident(m.Start, max(m.End, p.end())); err != nil {
				return err
			}
		}
		if !ok {
			h.countUnread(m, at)
			at += pageSize
			continue
		}
		h.add(p, m, runs)
		at = max(at+pageSize, procmem.AlignUp(p.end(), pageSize))
	}
	return nil
}

// mapped reports whether all of a page is mapped. A page may continue in the next mapping if V8 returned part of it.
func (h *heap) mapped(p page, m *procmem.Mapping) bool {
	for m.End < p.end() {
		next := h.s.MappingOf(m.End)
		if next == nil || !next.Anonymous() {
			return false
		}
		m = next
	}
	return true
}

// countUnread counts a mapping with the size and alignment of a page that is not a valid page.
func (h *heap) countUnread(m *procmem.Mapping, at uint64) {
	if m.Start == at && m.Size() == pageSize && m.Has(procmem.Writable) {
		h.unread += uint64(max(m.RSS, 0))
	}
}

func (h *heap) add(p page, m *procmem.Mapping, runs []procmem.Run) {
	h.pages = append(h.pages, p)
	h.reached = p.end()
	kind := attribution.V8Page
	if m.Has(procmem.Executable) {
		kind = attribution.V8Code
	}
	h.regions = append(h.regions, attribution.Region{Start: p.start, End: p.end(), Kind: kind})
	resident := procmem.ResidentBytes(runs, p.start, p.end())
	used := min(p.used()+p.area-p.start, resident) // also in use: the header
	h.read += resident
	h.total.InUse += memory.FromUint64(used)
	switch {
	case p.pooled:
		h.poolResident += resident
		h.total.FreeResident += memory.FromUint64(resident - used)
		h.s.Free(procmem.AlignUp(p.area, procmem.PageSize), p.end())
	case p.flags&(fromSpace|toSpace) != 0:
		h.young += p.size
		h.youngResident += resident
		unused := procmem.AlignUp(p.area+p.used(), procmem.PageSize)
		h.total.FreeResident += memory.FromUint64(procmem.ResidentBytes(runs, unused, p.end()))
		h.s.Free(unused, p.end())
	default:
		h.old += p.size
		h.oldInUse += p.used()
		h.total.FreePartial += memory.FromUint64(resident - used)
	}
}

func (h *heap) usage() amounts.Usage {
	u := h.total
	u.Coverage = 1
	if all := h.read + h.unread; all > 0 {
		u.Coverage = float64(h.read) / float64(all)
	}
	//nolint:gosec // sums of sizes of mappings, which are below 2^47
	u.Details = map[string]int64{
		Young: int64(h.young), Old: int64(h.old), amounts.OldInUse: int64(h.oldInUse),
		amounts.YoungResident: int64(h.youngResident), amounts.PoolResident: int64(h.poolResident),
	}
	return u
}
