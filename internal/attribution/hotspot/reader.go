// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"context"
	"maps"
	"math"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/words"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// Filled is a further detail in [amounts.Usage.Details]: the filled bytes of regions, resident or not.
const Filled = "filled"

// Reader reads the heap of a HotSpot JVM.
type Reader struct {
	// Now is the clock, to watch a JVM with costly collections for a second. nil: its counters are read once.
	Now func() time.Time
}

// maxPages bounds the memory pages read: enough for 65,536 regions of G1. A JVM with 2,048 regions takes some 300.
const maxPages = 16 << 10

// Name implements [attribution.Reader].
func (Reader) Name() string { return amounts.HotSpot }

// library is mapped by every HotSpot JVM; the file of this name in OpenJ9 exports no tables.
const library = "libjvm.so"

// Detect implements [attribution.Reader].
func (Reader) Detect(s *attribution.Snapshot) bool { return s.HasFile(library) }

// Claim implements [attribution.Reader].
func (r Reader) Claim(ctx context.Context, s *attribution.Snapshot) ([]attribution.Region, amounts.Usage, error) {
	module, err := s.Module(library)
	if err != nil {
		return nil, amounts.Usage{}, err
	}
	if err := ctx.Err(); err != nil {
		return nil, amounts.Usage{}, err
	}
	reader := words.New(s, maxPages)
	defer reader.Close()
	regions, usage, err := claim(module, s, reader)
	if err == nil && usage.Details != nil {
		maps.Copy(usage.Details, r.collections(ctx, s, usage.Details))
	}
	return regions, usage, err
}

func claim(m exports, s *attribution.Snapshot, r *words.Reader) ([]attribution.Region, amounts.Usage, error) {
	j := jvm{s: s, words: r, fields: map[string]field{}, sizes: map[string]uint64{}}
	j.readTables(m)
	flags := j.flags()
	h := j.heap(flags)
	if h.end == 0 {
		return nil, amounts.Usage{}, j.err
	}
	regions := append(j.code(flags), attribution.Region{Start: h.start, End: h.end, Kind: attribution.JVMHeap})
	if j.err != nil || h.overlap() { // only the range is known
		h.spans = nil
	}
	usage, err := j.usage(h, flags)
	return regions, usage, err
}

// usage adds up the contents and the free resident pages of spans, and reports flags and processor time.
func (j *jvm) usage(h heap, flags map[string]uint64) (amounts.Usage, error) {
	var u amounts.Usage
	runs, err := j.s.Memory.Resident(h.start, h.end)
	if err != nil {
		return u, err
	}
	var filled uint64
	for _, one := range h.spans {
		if one.free {
			one.top = one.start
		}
		filled += one.top - one.start
		u.InUse += memory.FromUint64(procmem.ResidentBytes(runs, one.start, one.top))
		whole := procmem.AlignUp(one.top, procmem.PageSize)
		u.FreeResident += memory.FromUint64(procmem.ResidentBytes(runs, whole, one.end))
		j.s.Free(whole, one.end)
	}
	u.Coverage = coverage(h, runs)
	u.Details = map[string]int64{Filled: int64(memory.FromUint64(filled))}
	for _, name := range append([]string{amounts.HeapFollowsMemory}, Flags...) {
		if value, set := flags[name]; set && value <= math.MaxInt64 {
			u.Details[name] = int64(value)
		}
	}
	if collector, busy, ok := j.times(flags); ok {
		u.Details[amounts.CollectorTime], u.Details[amounts.BusyTime] = int64(collector), int64(busy)
	}
	return u, nil
}

// coverage returns the share of the heap's resident bytes that are in spans.
func coverage(h heap, runs []procmem.Run) float64 {
	all := procmem.ResidentBytes(runs, h.start, h.end)
	var within uint64
	for _, one := range h.spans {
		within += procmem.ResidentBytes(runs, one.start, one.end)
	}
	switch {
	case len(h.spans) == 0:
		return 0
	case all == 0:
		return 1
	}
	return min(1, float64(within)/float64(all))
}

// code returns the code cache and the class space, whose ranges are static fields, if the JVM has them.
func (j *jvm) code(flags map[string]uint64) []attribution.Region {
	var regions []attribution.Region
	cache, class := *j, *j // each has its own error
	cache.err, class.err = nil, nil
	low, high := cache.static("CodeCache::_low_bound"), cache.static("CodeCache::_high_bound")
	const largest = 2 << 30 // HotSpot's maximum for a code cache
	if low < high && high-low <= largest {
		regions = append(regions, attribution.Region{Start: low, End: high, Kind: attribution.JVMCode})
	}
	base := class.static(
		"CompressedKlassPointers::_base", "CompressedKlassPointers::_narrow_klass._base", "Universe::_narrow_klass._base",
	)
	if base != 0 {
		regions = append(regions, j.classSpace(base, flags["CompressedClassSpaceSize"])...)
	}
	return regions
}

// classSpace returns size bytes of anonymous memory from the base of compressed class pointers. A mapped file of
// archived classes may come first.
func (j *jvm) classSpace(base, size uint64) []attribution.Region {
	const archived = 128 << 20 // space for archives before the class space
	var regions []attribution.Region
	left := size
	for m := j.s.MappingOf(base); m != nil && m.Start < base+size+archived && left > 0; m = j.s.MappingOf(m.End) {
		if m.Inode != 0 {
			continue
		}
		length := min(m.Size(), left)
		left -= length
		regions = append(regions, attribution.Region{Start: m.Start, End: m.Start + length, Kind: attribution.JVMClass})
	}
	return regions
}
