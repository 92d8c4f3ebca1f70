// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package golang reads the heap of a Go program, stripped or not. The garbage collector has six consecutive counters in
// a variable (gcControllerState: heapInUse, heapReleased, heapFree, totalAlloc, totalFree, mappedReady). The reader
// searches the program's variables for words that are consistent with each other and with the size of the heap's
// mappings. If none or several places match, it reports nothing.
package golang

import (
	"context"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// HeapInUse is a further detail in [amounts.Usage.Details]: the bytes of spans with objects.
const HeapInUse = "heapInUse"

// Reader reads the heap of a Go program.
type Reader struct {
	// Now is the clock, to watch a program for a second if most of its heap is alive. nil: the counters are read once.
	Now func() time.Time
}

// Name implements [attribution.Reader].
func (Reader) Name() string { return amounts.Go }

// Detect implements [attribution.Reader]: the program has a section that only Go's linker writes.
func (Reader) Detect(s *attribution.Snapshot) bool {
	exe, err := s.Exe()
	if err != nil {
		return false
	}
	_, err = exe.ELF.Section(".go.buildinfo")
	return err == nil
}

// Claim implements [attribution.Reader].
func (r Reader) Claim(ctx context.Context, s *attribution.Snapshot) ([]attribution.Region, amounts.Usage, error) {
	heap := heapOf(s)
	var size, resident uint64
	regions := make([]attribution.Region, 0, len(heap))
	for _, m := range heap {
		size += m.Size()
		resident += uint64(max(m.RSS, 0))
		regions = append(regions, attribution.Region{Start: m.Start, End: m.End, Kind: attribution.GoHeap})
	}
	c, err := find(ctx, s.Memory, variables(s), size)
	if err != nil {
		return nil, amounts.Usage{}, err
	}
	c.live = c.leastAlive(ctx, s.Memory, size, r.Now)
	return regions, c.usage(resident), nil
}

// usage converts the counters to amounts. Free memory that was not released is resident if it was ever touched.
func (c *counters) usage(resident uint64) amounts.Usage {
	objects := c.totalAlloc - c.totalFree
	free := min(c.free, resident-min(resident, objects))
	//nolint:gosec // the counters fit the size of the heap
	u := amounts.Usage{
		InUse:        memory.Bytes(objects),
		FreeResident: memory.Bytes(free),
		Returnable:   memory.Bytes(free),
		FreePartial:  memory.Bytes(c.inUse - objects),
		Coverage:     1,
		Details: map[string]int64{
			HeapInUse: int64(c.inUse), amounts.HeapIdle: int64(c.free),
			amounts.Objects: int64(objects), amounts.MappedReady: int64(c.ready),
		},
	}
	if c.live > 0 {
		u.Details[amounts.Live] = int64(c.live) //nolint:gosec // as above
	}
	if c.spent.collections > 0 {
		u.Details[amounts.Allocated] = int64(memory.FromUint64(c.totalAlloc))
		u.Details[amounts.CollectorTime], u.Details[amounts.BusyTime] = int64(c.spent.collector), int64(c.spent.busy)
		u.Details[amounts.Collections] = int64(c.spent.collections) //nolint:gosec // 32 bits
	}
	return u
}

const (
	arenaSize = 64 << 20 // Go reserves address space for its heap in arenas of this size
	growth    = 4 << 20  // an arena becomes usable in steps of this size
)

// heapOf returns the mappings of the heap: those with the name of the heap (on kernels that can name mappings), and
// groups of adjacent mappings that [arenas] accepts. They are grouped because madvise for huge pages splits mappings.
func heapOf(s *attribution.Snapshot) []*procmem.Mapping {
	var heap, group []*procmem.Mapping
	for i := range s.Mappings {
		m := &s.Mappings[i]
		if len(group) > 0 && group[len(group)-1].End != m.Start {
			heap, group = append(heap, arenas(group, nil)...), nil
		}
		switch {
		case strings.HasPrefix(m.Path, "[anon: Go: heap]"):
			heap = append(heap, m)
		case usable(m):
			group = append(group, m)
		default:
			heap, group = append(heap, arenas(group, m)...), nil
		}
	}
	return append(heap, arenas(group, nil)...)
}

// usable reports whether a mapping may be the usable part of an arena.
func usable(m *procmem.Mapping) bool {
	return m.Anonymous() && m.Path == "" && m.Has(procmem.Readable|procmem.Writable)
}

// arenas returns the group if it is part of the heap: it begins where an arena may grow, and ends with an arena or
// before the reserved rest of one. next is the mapping directly after the group, or nil.
func arenas(group []*procmem.Mapping, next *procmem.Mapping) []*procmem.Mapping {
	if len(group) == 0 || group[0].Start%growth != 0 {
		return nil
	}
	end := group[len(group)-1].End
	reserved := next != nil && next.Anonymous() && !next.Has(procmem.Readable) && next.End%arenaSize == 0
	if end%arenaSize == 0 || end%growth == 0 && reserved {
		return group
	}
	return nil
}

// variables returns the writable mappings of the program's file, and the anonymous mappings directly after them (.bss).
func variables(s *attribution.Snapshot) []procmem.Run {
	var ranges []procmem.Run
	var end uint64 // of the program's last mapping
	for i := range s.Mappings {
		m := &s.Mappings[i]
		own := m.Inode != 0 && m.Path == s.Process.Exe
		zeroed := m.Inode == 0 && m.Start == end && end != 0
		if own || zeroed {
			end = m.End
		}
		if !own && !zeroed || !m.Has(procmem.Writable) {
			continue
		}
		if n := len(ranges); n > 0 && ranges[n-1].End() == m.Start { // adjacent
			ranges[n-1].Length += m.Size()
		} else {
			ranges = append(ranges, procmem.Run{Start: m.Start, Length: m.Size()})
		}
	}
	return ranges
}
