// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// Further details in [amounts.Usage.Details], in bytes.
const (
	Cached    = "cached"    // free, in thread caches
	Free      = "free"      // free chunks except tops, resident or not
	Allocated = "allocated" // allocated from heaps, resident or not
)

// ErrNone is returned if a process has no consistent arena: it has another malloc, or has not called malloc.
var ErrNone = errors.New("no arena of glibc was found")

// Reader reads the heaps of glibc's malloc.
type Reader struct{}

// maxPages bounds the memory pages read of one process: 8 GiB, which take about a second if chunks are small.
const maxPages = 2 << 20

// Name implements [attribution.Reader].
func (Reader) Name() string { return amounts.Glibc }

// Detect implements [attribution.Reader]: a C library with a name of glibc is mapped, or the program is static.
func (Reader) Detect(s *attribution.Snapshot) bool {
	return s.HasFile("libc.so") || s.HasFile("libc-2") || !s.HasFile("ld-") // without a dynamic loader
}

// Claim implements [attribution.Reader].
func (Reader) Claim(ctx context.Context, s *attribution.Snapshot) ([]attribution.Region, amounts.Usage, error) {
	probe := procmem.NewProbe(s.Memory)
	arenas, err := find(ctx, s, probe)
	if err != nil {
		return nil, amounts.Usage{}, err
	}
	if len(arenas) == 0 {
		return nil, amounts.Usage{}, ErrNone
	}
	window, err := procmem.NewWindow(s.Memory, 0, 0) // one for all heaps, to keep its buffers
	if err != nil {
		return nil, amounts.Usage{}, err
	}
	defer window.Close()
	window.Limit(maxPages)
	total := tally{s: s, probe: probe, caches: readCaches(arenas, probe), window: window}
	total.caches.trimUnit = trimUnit(s)
	for i := range arenas {
		if err := total.arena(ctx, &arenas[i]); err != nil {
			return nil, amounts.Usage{}, err
		}
	}
	if err := total.largeBlocks(ctx); err != nil {
		return nil, amounts.Usage{}, err
	}
	return total.regions, total.usage(arenas), nil
}

// trimUnit returns the unit in bytes in which malloc_trim shortens the main arena.
func trimUnit(s *attribution.Snapshot) uint64 {
	const hugePage = 2 << 20
	if strings.Contains(s.Env["GLIBC_TUNABLES"], "glibc.malloc.hugetlb=1") {
		return hugePage
	}
	return page
}

// tally adds up the contents of all heaps.
type tally struct {
	s       *attribution.Snapshot
	probe   *procmem.Probe
	caches  *caches
	window  *procmem.Window
	regions []attribution.Region

	sums
	size        uint64       // bytes that should be walked
	perArena    []uint64     // resident bytes of each arena
	topBeyond   uint64       // see [amounts.TopsBeyondThreshold]
	mappedBytes memory.Bytes // resident in large blocks
	mappedCount int          // large blocks
}

// thresholdLeaves is how many bytes a trim threshold of 128 KiB leaves at the top of an arena: a pad and a page.
const thresholdLeaves = 128<<10 + page

// arena adds the heaps of an arena, and claims their ranges.
func (t *tally) arena(ctx context.Context, a *arena) error {
	var size uint64
	var all sums
	for _, h := range a.heaps {
		if err := ctx.Err(); err != nil {
			return err
		}
		limit := h.start + heapMax
		if a.main {
			limit = h.end + heapMax // the heap may grow
		}
		found, bytes, err := t.walk(ctx, a, h, limit)
		if err != nil {
			return err
		}
		all.add(found)
		size += bytes
		end := limit
		if a.main {
			_, end = extent(t.s, t.s.MappingOf(h.start))
		}
		t.regions = append(t.regions, attribution.Region{Start: h.start, End: end, Kind: attribution.Arena})
	}
	t.add(all)
	t.perArena = append(t.perArena, all.resident)
	t.topBeyond += all.topResident - min(all.topResident, thresholdLeaves)
	t.size += max(size, a.system)
	return nil
}

// walk walks a heap that may grow up to limit. It returns the sums, and the size of the heap in bytes.
func (t *tally) walk(ctx context.Context, a *arena, h heap, limit uint64) (sums, uint64, error) {
	if t.window.Reads() >= maxPages {
		return sums{}, h.end - h.base, nil
	}
	if err := t.window.Move(h.start, limit); err != nil {
		return sums{}, 0, err
	}
	w := walker{ctx: ctx, window: t.window, probe: t.probe, arena: a, heap: h, caches: t.caches, keepFree: t.s.Locate}
	found, free, size := w.walk()
	for _, r := range free {
		t.s.Free(r.Start, r.End())
	}
	found.resident = t.window.ResidentBytes(h.start, h.base+size)
	return found, size, nil
}

// beyondTwo returns the sum of all sizes except the two largest.
func beyondTwo(sizes []uint64) (sum uint64) {
	sizes = slices.Sorted(slices.Values(sizes))
	for _, size := range sizes[:max(len(sizes)-2, 0)] {
		sum += size
	}
	return sum
}

// largeBlocks claims blocks too large for a heap, which malloc maps: each begins a mapping, or follows another block.
func (t *tally) largeBlocks(ctx context.Context) error {
	heaps := slices.Clone(t.regions)
	slices.SortFunc(heaps, func(a, b attribution.Region) int { return cmp.Compare(a.Start, b.Start) })
	for i := range t.s.Mappings {
		m := &t.s.Mappings[i]
		if !mayHaveHeap(m) || m.Path == "[heap]" || within(heaps, m.Start) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if end := t.blocks(m); end > m.Start {
			resident, err := t.resident(m, end)
			if err != nil {
				return err
			}
			t.mappedBytes += resident
			t.regions = append(t.regions, attribution.Region{Start: m.Start, End: end, Kind: attribution.GlibcMmap})
		}
	}
	return nil
}

// within reports whether an address lies in one of these regions, which are in ascending order.
func within(regions []attribution.Region, addr uint64) bool {
	i, found := slices.BinarySearchFunc(regions, addr, func(r attribution.Region, a uint64) int {
		return cmp.Compare(r.Start, a)
	})
	return found || i > 0 && addr < regions[i-1].End
}

// resident returns the resident bytes of a mapping before an address.
func (t *tally) resident(m *procmem.Mapping, end uint64) (memory.Bytes, error) {
	if end == m.End {
		return m.RSS, nil
	}
	runs, err := t.s.Memory.Resident(m.Start, end)
	return memory.FromUint64(procmem.ResidentBytes(runs, m.Start, end)), err
}

// maxBlocks bounds the large blocks. Linux allows 65,530 mappings, and most blocks are one mapping.
const maxBlocks = 1 << 17

// blocks returns the end of the large blocks at the start of a mapping.
func (t *tally) blocks(m *procmem.Mapping) uint64 {
	at := m.Start
	for at < m.End && t.mappedCount < maxBlocks {
		var w [2]uint64
		if t.probe.Words(at, w[:]) != nil {
			break
		}
		length := w[1] &^ allBits
		rest := length % page
		if w[0] != 0 || w[1]&allBits != isMapped || rest != 0 && rest != page-16 || length < page-16 ||
			length > m.End-at {
			break
		}
		at += procmem.AlignUp(length, page)
		t.mappedCount++
	}
	return at
}

// usage converts the sums to a Usage.
func (t *tally) usage(arenas []arena) amounts.Usage {
	u := amounts.Usage{
		InUse:        memory.FromUint64(t.inUse) + t.mappedBytes,
		FreeResident: memory.FromUint64(t.wholeResident + t.topResident),
		Returnable:   memory.FromUint64(t.wholeResident + t.topReturnable),
		FreePartial:  memory.FromUint64(t.free - t.whole),
		Coverage:     1,
		Details: map[string]int64{
			amounts.Arenas:              int64(len(arenas)),
			Cached:                      int64(memory.FromUint64(t.cached)),
			Free:                        int64(memory.FromUint64(t.free)),
			amounts.TopsBeyondThreshold: int64(memory.FromUint64(t.topBeyond)),
			amounts.Retained:            int64(memory.FromUint64(t.sums.resident - min(t.sums.resident, t.inUse))),
			amounts.ArenasBeyondTwo:     int64(memory.FromUint64(beyondTwo(t.perArena))),
			Allocated:                   int64(memory.FromUint64(t.allocated)),
		},
	}
	if t.size > 0 {
		u.Coverage = min(1, float64(t.walked)/float64(t.size))
	}
	return u
}
