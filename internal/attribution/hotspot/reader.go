// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"context"
	"errors"
	"math"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/words"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// Names of what [attribution.Usage.Details] holds besides [Flags].
const (
	Regions = "regions" // count of regions or spaces
	Empty   = "empty"   // how many of them hold nothing
	Filled  = "filled"  // bytes up to where they are filled, resident or not: what the JVM itself calls used
)

// Reader reads the heap of a HotSpot JVM.
type Reader struct {
	// MaxPages is how many pages of a process are read at most; 0 is DefaultMaxPages.
	MaxPages int
}

// DefaultMaxPages are enough for 65,536 regions of G1; a JVM with 2,048 takes some 300.
const DefaultMaxPages = 16 << 10

// Name implements [attribution.Reader].
func (Reader) Name() string { return "hotspot" }

// library is what every HotSpot JVM has mapped; OpenJ9 has a file of this name, too, which exports no tables.
const library = "libjvm.so"

// Detect implements [attribution.Reader].
func (Reader) Detect(s *attribution.Snapshot) bool { return s.HasFile(library) }

// Claim implements [attribution.Reader].
func (r Reader) Claim(ctx context.Context, s *attribution.Snapshot) ([]attribution.Region, attribution.Usage, error) {
	if r.MaxPages == 0 {
		r.MaxPages = DefaultMaxPages
	}
	module, err := s.Module(library)
	if err != nil {
		return nil, attribution.Usage{}, err
	}
	if err := ctx.Err(); err != nil {
		return nil, attribution.Usage{}, err
	}
	reader := words.New(s, r.MaxPages)
	defer reader.Close()
	return claim(module, s, reader)
}

func claim(m exports, s *attribution.Snapshot, r *words.Reader) ([]attribution.Region, attribution.Usage, error) {
	tables, err := readTables(m, r)
	if err != nil {
		return nil, attribution.Usage{}, err
	}
	j := jvm{structs: structs{tables: tables, Reader: r}, s: s}
	return j.read()
}

// jvm is one JVM.
type jvm struct {
	structs
	s *attribution.Snapshot
}

func (j *jvm) read() ([]attribution.Region, attribution.Usage, error) {
	flags, err := j.flags()
	if err != nil {
		return nil, attribution.Usage{}, err
	}
	h, err := j.heap(flags)
	if h.end == 0 {
		return nil, attribution.Usage{}, err
	}
	regions := append(j.code(flags), attribution.Region{Start: h.start, End: h.end, Kind: attribution.JVMHeap})
	if err != nil || h.overlap() { // the range is known, what is in it is not
		h.spans = nil
	}
	usage, measured := j.usage(h, flags)
	if errors.Is(err, ErrCollector) {
		usage.Notes = append(usage.Notes, "the heap of "+known(h.collector)+" is not split: only its size is known")
	}
	return regions, usage, measured
}

func known(collector string) string {
	if collector == "" {
		return "an unknown collector"
	}
	return collector
}

// usage sums up what the spans hold, and which of their pages are in memory without need.
func (j *jvm) usage(h heap, flags map[string]uint64) (attribution.Usage, error) {
	u := attribution.Usage{Committed: j.committed(h)}
	if h.collector != "" {
		u.Notes = append(u.Notes, "the collector is "+h.collector)
	}
	runs, err := j.s.Memory.Resident(h.start, h.end)
	if err != nil {
		return u, err
	}
	empty, filled := int64(0), uint64(0)
	for _, one := range h.spans {
		if one.free {
			one.top = one.start
		}
		if one.top == one.start {
			empty++
		}
		filled += one.top - one.start
		u.InUse += words.Size(procmem.ResidentBytes(runs, one.start, one.top))
		whole := procmem.AlignUp(one.top, procmem.PageSize)
		u.FreeResident += words.Size(procmem.ResidentBytes(runs, whole, one.end))
		j.s.Free(whole, one.end)
	}
	u.Coverage = coverage(h, runs)
	u.Details = append(u.Details,
		attribution.Detail{Name: Regions, Value: int64(len(h.spans))}, attribution.Detail{Name: Empty, Value: empty},
		attribution.Detail{Name: Filled, Value: signed(filled)},
	)
	for _, name := range append([]string{HeapByMemory}, Flags...) {
		if value, set := flags[name]; set && value <= math.MaxInt64 {
			u.Details = append(u.Details, attribution.Detail{Name: name, Value: signed(value)})
		}
	}
	return u, nil
}

func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// coverage is the share of the heap's resident bytes that lie in a span.
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

// committed is how much of the heap can be written: what is reserved only has no permissions.
func (j *jvm) committed(h heap) (sum memory.Bytes) {
	for i := range j.s.Mappings {
		m := &j.s.Mappings[i]
		if from, to := max(m.Start, h.start), min(m.End, h.end); from < to && m.Has(procmem.Writable) {
			sum += words.Size(to - from)
		}
	}
	return sum
}

// code are the code cache and the class space, whose ranges are static fields. A JVM without them has none.
func (j *jvm) code(flags map[string]uint64) []attribution.Region {
	var regions []attribution.Region
	low, err := j.static("CodeCache::_low_bound")
	high, err2 := j.static("CodeCache::_high_bound")
	const largest = 2 << 30 // of a code cache, for HotSpot
	if err == nil && err2 == nil && low < high && high-low <= largest {
		regions = append(regions, attribution.Region{Start: low, End: high, Kind: attribution.JVMCode})
	}
	base, err := j.static(
		"CompressedKlassPointers::_base", "CompressedKlassPointers::_narrow_klass._base", "Universe::_narrow_klass._base",
	)
	if err == nil && base != 0 {
		regions = append(regions, j.classSpace(base, flags["CompressedClassSpaceSize"])...)
	}
	return regions
}

// classSpace is the anonymous memory from the base of compressed class pointers on, up to the size that the flag
// specifies. Archived classes come first where there are some; they are a file.
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
		regions = append(regions, attribution.Region{
			Start: m.Start, End: m.Start + length, Kind: attribution.JVMClass,
		})
	}
	return regions
}
