// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cpython reads the arenas of pymalloc, the allocator of objects in CPython. pymalloc divides its arenas into
// pools of 16 KiB (4 KiB before 3.10). Each pool begins with a header, which has the size of its blocks and how many
// are in use. A header is recognized by consistent numbers. Objects of more than 512 bytes come from malloc. The
// free-threaded build has another allocator, which is not read.
package cpython

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// ErrNone is returned if a process has no arena, for example with PYTHONMALLOC=malloc.
var ErrNone = errors.New("no arena of pymalloc was found")

// Reader reads the arenas of pymalloc.
type Reader struct{}

// maxPages bounds the memory pages read of one process: enough for 4 GiB of arenas, of which one page in four is read.
const maxPages = 256 << 10

// Name implements [attribution.Reader].
func (Reader) Name() string { return amounts.CPython }

// Detect implements [attribution.Reader].
func (Reader) Detect(s *attribution.Snapshot) bool {
	return s.HasFile("libpython3") || strings.HasPrefix(path.Base(s.Process.Exe), "python")
}

// poolSizes has the size of pools in 3.10 and later, and in earlier versions.
var poolSizes = []uint64{16 << 10, 4 << 10}

// Claim implements [attribution.Reader].
func (Reader) Claim(ctx context.Context, s *attribution.Snapshot) ([]attribution.Region, amounts.Usage, error) {
	return claim(ctx, s, maxPages)
}

func claim(ctx context.Context, s *attribution.Snapshot, pages int) ([]attribution.Region, amounts.Usage, error) {
	for _, size := range poolSizes {
		a := arenas{s: s, pool: size, pages: pages}
		for i := range s.Mappings {
			if err := ctx.Err(); err != nil {
				return nil, amounts.Usage{}, err
			}
			if err := a.mapping(&s.Mappings[i]); err != nil {
				return nil, amounts.Usage{}, err
			}
		}
		if len(a.regions) > 0 {
			return a.regions, a.usage(), nil
		}
	}
	return nil, amounts.Usage{}, ErrNone
}

// arenas adds up the pools of all mappings.
type arenas struct {
	s       *attribution.Snapshot
	pool    uint64
	pages   int // memory pages that may still be read
	regions []attribution.Region
	tally
}

// tally counts pools, and adds up their contents in bytes.
type tally struct {
	pools, skipped               int // skipped: not read because of maxPages
	odd                          int // resident, but neither a pool nor all zero
	used, freePartial, freeWhole uint64
}

// minArena is the size of an arena before 3.10; later ones have 1 MiB.
const minArena = 256 << 10

// mapping counts the pools of a mapping. If most of it is pools, it claims the range from the first to the last one.
func (a *arenas) mapping(m *procmem.Mapping) error {
	if !m.Anonymous() || m.Path != "" || !m.Has(procmem.Readable|procmem.Writable) || m.Size() < minArena || m.RSS == 0 {
		return nil
	}
	w, err := procmem.NewWindow(a.s.Memory, m.Start, m.End)
	if err != nil {
		return err
	}
	defer w.Close()
	before := a.tally
	var first, last uint64
	for at := procmem.AlignUp(m.Start, a.pool); at+a.pool <= m.End; at += a.pool {
		if !w.Resident(at) {
			continue
		}
		if w.Reads() >= a.pages {
			a.skipped++
			continue
		}
		p, kind := readPool(w, at, a.pool)
		switch kind {
		case isPool:
			a.add(w, at, a.pool, p)
			if p.count == 0 {
				a.s.Free(at, at+a.pool)
			}
			if first == 0 {
				first = at
			}
			last = at + a.pool
		case isOdd:
			a.odd++
		case isUntouched:
		}
		if a.odd-before.odd > oddBeforeGivingUp && a.pools == before.pools {
			break // not arenas
		}
	}
	a.pages -= w.Reads()
	if a.pools-before.pools <= a.odd-before.odd {
		a.tally = before
		return nil
	}
	a.regions = append(a.regions, attribution.Region{Start: first, End: last, Kind: attribution.PyArena})
	return nil
}

// oddBeforeGivingUp is after how many odd places a mapping without a pool is skipped: arenas fill from their start.
const oddBeforeGivingUp = 64

func (t *tally) add(w *procmem.Window, at, size uint64, p pool) {
	t.pools++
	resident := w.ResidentBytes(at, at+size)
	used := min(p.used(), resident)
	t.used += used
	if p.count == 0 {
		t.freeWhole += resident
		return
	}
	t.freePartial += resident - used
}

func (a *arenas) usage() amounts.Usage {
	all := a.pools + a.odd + a.skipped
	//nolint:gosec // at most the address space
	return amounts.Usage{
		InUse: memory.Bytes(a.used), FreeResident: memory.Bytes(a.freeWhole), FreePartial: memory.Bytes(a.freePartial),
		Coverage: float64(a.pools) / float64(max(all, 1)),
	}
}

// pool has two fields of a header: the number of blocks in use, and the class of their size. A header has six words:
// the first has count, the fifth the index of the arena and class, the sixth the offsets of the next and last block.
type pool struct{ count, class uint64 }

const (
	headerSize = 48
	blockUnit  = 16 // block sizes are multiples of it
	classes    = 32 // 16 to 512 bytes
)

// kind is what was found where a pool may start.
type kind int

const (
	isUntouched kind = iota // all zero: an arena uses its pools in order
	isPool
	isOdd
)

// readPool reads the header of a pool of this size.
func readPool(w *procmem.Window, at, size uint64) (pool, kind) {
	var h [headerSize / 8]uint64
	for i := range h {
		word, err := w.Word(at + 8*uint64(i))
		if err != nil {
			return pool{}, isOdd
		}
		h[i] = word
	}
	if h == ([headerSize / 8]uint64{}) {
		return pool{}, isUntouched
	}
	p := pool{count: h[0] & 0xffffffff, class: h[4] >> 32}
	next, last := h[5]&0xffffffff, h[5]>>32
	block := p.block()
	fits := p.class < classes && last == size-block && p.count <= (size-headerSize)/block
	begun := next >= headerSize && next <= size && (next-headerSize)%block == 0
	if !fits || !begun {
		return pool{}, isOdd
	}
	return p, isPool
}

// block returns the size of the pool's blocks.
func (p pool) block() uint64 { return blockUnit * (p.class + 1) }

// used returns the bytes of blocks in use.
func (p pool) used() uint64 { return p.count * p.block() }
