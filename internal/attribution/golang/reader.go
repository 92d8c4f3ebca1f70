// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package golang reads the heap of a Go program from outside, stripped or not. The runtime's collector keeps six
// counters behind each other in its variables (gcControllerState: heapInUse, heapReleased, heapFree, totalAlloc,
// totalFree, mappedReady). They must be consistent with each other and with the size of the heap's mappings, which only
// one place in the variables fulfils; if none or several match, nothing is reported.
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
	// Now is the clock, to watch a program for a second if its heap is nearly all alive. nil: it is read once.
	Now func() time.Time
}

// Name implements [attribution.Reader].
func (Reader) Name() string { return amounts.Go }

// Detect implements [attribution.Reader]: the program has the section that only Go's linker writes.
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

// usage sums up the heap. Memory neither in use nor released is resident if it was ever touched.
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
	arenaSize = 64 << 20 // Go reserves its heap in arenas of this size,
	growth    = 4 << 20  // and makes this much of one usable at a time
)

// heapOf returns the mappings of the heap. Adjacent mappings count as one, because advice about huge pages splits them.
// A group begins where an arena may grow, and ends with an arena or before its reserved rest. Kernels that can name
// mappings show their name.
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

func usable(m *procmem.Mapping) bool {
	return m.Anonymous() && m.Path == "" && m.Has(procmem.Readable|procmem.Writable)
}

// arenas returns the group if it is part of the heap; behind is the mapping directly after it, or nil.
func arenas(group []*procmem.Mapping, behind *procmem.Mapping) []*procmem.Mapping {
	if len(group) == 0 || group[0].Start%growth != 0 {
		return nil
	}
	end := group[len(group)-1].End
	reserved := behind != nil && behind.Anonymous() && !behind.Has(procmem.Readable) && behind.End%arenaSize == 0
	if end%arenaSize == 0 || end%growth == 0 && reserved {
		return group
	}
	return nil
}

// variables returns the writable mappings of the program, and the zeroed ones behind them.
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
		if n := len(ranges); n > 0 && ranges[n-1].End() == m.Start { // variables continue behind the file
			ranges[n-1].Length += m.Size()
		} else {
			ranges = append(ranges, procmem.Run{Start: m.Start, Length: m.Size()})
		}
	}
	return ranges
}
