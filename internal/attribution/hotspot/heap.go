// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// span is a part of the heap that is filled from its start: a region, or a space of a generation.
type span struct {
	start, top, end uint64
	free            bool // nothing in it is in use, whatever the value of top
}

// heap is the Java heap.
type heap struct {
	start, end uint64 // what is reserved
	collector  string
	spans      []span
}

// maxRegions is how many regions a heap may have: G1 aims at 2048 and takes 1 MiB at least, so that 64 GiB of the
// smallest regions, or 2 TiB of the largest, fit.
const maxRegions = 1 << 16

// ErrCollector is returned for collectors whose heap is not read.
var ErrCollector = errors.New("the heap of this collector cannot be read")

// collectors are the flags that choose one, with how its heap is read; nil: it cannot be.
var collectors = []struct {
	flag, name string
	read       func(*structs, *heap, uint64) error
}{
	{"UseG1GC", "G1", (*structs).g1},
	{"UseSerialGC", "Serial", (*structs).serial},
	{"UseParallelGC", "Parallel", (*structs).parallel},
	{"UseShenandoahGC", "Shenandoah", (*structs).shenandoah},
	{"UseZGC", "ZGC", nil},
	{"UseConcMarkSweepGC", "CMS", nil},
	{"UseEpsilonGC", "Epsilon", nil},
}

// heap reads where the heap is, and its parts. The range is known even where the parts are not.
func (s *structs) heap(flags map[string]uint64) (heap, error) {
	var h heap
	at, err := s.static("Universe::_collectedHeap")
	if err != nil || at == 0 {
		return h, errors.Join(ErrNoTables, err)
	}
	reserved, err := s.member(at, "CollectedHeap::_reserved")
	if err != nil {
		return h, err
	}
	if h.start, err = s.word(reserved, "MemRegion::_start"); err != nil {
		return h, err
	}
	size, err := s.word(reserved, "MemRegion::_word_size")
	if err != nil {
		return h, err
	}
	if h.end = h.start + size*8; h.start == 0 || h.end <= h.start || size > 1<<44 {
		return h, fmt.Errorf("%w: a heap of %d words", ErrNoTables, size)
	}
	for _, c := range collectors {
		if flags[c.flag] == 0 {
			continue
		}
		h.collector = c.name
		if c.read == nil {
			return h, ErrCollector
		}
		return h, c.read(s, &h, at)
	}
	return h, ErrCollector
}

// add takes a span that makes sense; what does not is counted by the caller as not understood.
func (h *heap) add(one span) error {
	if one.start < h.start || one.end > h.end || one.start > one.top || one.top > one.end {
		return fmt.Errorf("%w: a part from %#x to %#x, filled to %#x", ErrNoTables, one.start, one.end, one.top)
	}
	h.spans = append(h.spans, one)
	return nil
}

// overlap reports whether two spans share an address, which no heap's do. It sorts them.
func (h *heap) overlap() bool {
	slices.SortFunc(h.spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(h.spans); i++ {
		if h.spans[i].start < h.spans[i-1].end {
			return true
		}
	}
	return false
}

// g1 reads the table of regions. Its entries exist once a region was committed, and stay.
func (s *structs) g1(h *heap, at uint64) error {
	manager, err := s.member(at, "G1CollectedHeap::_hrm")
	if err != nil {
		return err
	}
	table, err := s.member(manager, "HeapRegionManager::_regions", "G1HeapRegionManager::_regions")
	if err != nil {
		return err
	}
	base, err := s.word(table, "G1HeapRegionTable::_base")
	if err != nil {
		return err
	}
	length, err := s.word(table, "G1HeapRegionTable::_length")
	if err != nil || length > maxRegions {
		return errors.Join(ErrNoTables, err)
	}
	return s.each(base, length, func(region uint64) error {
		one, err := s.span(region, []string{"HeapRegion::_bottom", "G1HeapRegion::_bottom", "Space::_bottom"},
			[]string{"HeapRegion::_top", "G1HeapRegion::_top", "G1ContiguousSpace::_top"},
			[]string{"HeapRegion::_end", "G1HeapRegion::_end", "Space::_end"})
		if err != nil {
			return err
		}
		kind, err := s.member(region, "HeapRegion::_type", "G1HeapRegion::_type")
		if err != nil {
			return err
		}
		tag, err := s.lookup("HeapRegionType::_tag", "G1HeapRegionType::_tag")
		if err != nil {
			return err
		}
		value, err := s.Uint32(kind + tag.offset)
		one.free = value == 0
		return errors.Join(err, h.add(one))
	})
}

// shenandoah reads its regions; the first two states are those of empty ones.
func (s *structs) shenandoah(h *heap, at uint64) error {
	base, err := s.word(at, "ShenandoahHeap::_regions")
	if err != nil {
		return err
	}
	length, err := s.word(at, "ShenandoahHeap::_num_regions")
	if err != nil || length > maxRegions {
		return errors.Join(ErrNoTables, err)
	}
	return s.each(base, length, func(region uint64) error {
		one, err := s.span(region, []string{"ShenandoahHeapRegion::_bottom"}, []string{"ShenandoahHeapRegion::_top"},
			[]string{"ShenandoahHeapRegion::_end"})
		if err != nil {
			return err
		}
		state, err := s.lookup("ShenandoahHeapRegion::_state")
		if err != nil {
			return err
		}
		value, err := s.Uint32(region + state.offset)
		one.free = value <= 1
		return errors.Join(err, h.add(one))
	})
}

// each visits the structures that an array of pointers points at.
func (s *structs) each(base, length uint64, visit func(at uint64) error) error {
	for i := range length {
		at, err := s.Uint64(base + 8*i)
		if err != nil {
			return err
		}
		if at == 0 {
			continue
		}
		if err := visit(at); err != nil {
			return err
		}
	}
	return nil
}

// span reads the three addresses of a region or space.
func (s *structs) span(at uint64, start, top, end []string) (span, error) {
	var one span
	for _, f := range []struct {
		value *uint64
		names []string
	}{{&one.start, start}, {&one.top, top}, {&one.end, end}} {
		value, err := s.word(at, f.names...)
		if err != nil {
			return one, err
		}
		*f.value = value
	}
	return one, nil
}

// serial reads three spaces of the young generation and one of the old.
func (s *structs) serial(h *heap, at uint64) error {
	young, err := s.word(at, "GenCollectedHeap::_young_gen", "SerialHeap::_young_gen")
	if err != nil {
		return err
	}
	old, err := s.word(at, "GenCollectedHeap::_old_gen", "SerialHeap::_old_gen")
	if err != nil {
		return err
	}
	bottom := []string{"Space::_bottom", "ContiguousSpace::_bottom"}
	end := []string{"Space::_end", "ContiguousSpace::_end"}
	return s.spaces(h, bottom, []string{"ContiguousSpace::_top"}, end, map[string]uint64{
		"DefNewGeneration::_eden_space": young, "DefNewGeneration::_from_space": young,
		"DefNewGeneration::_to_space": young, "TenuredGeneration::_the_space": old,
	})
}

// parallel has the same under other names; its generations are static.
func (s *structs) parallel(h *heap, at uint64) error {
	young, err := s.word(at, "ParallelScavengeHeap::_young_gen")
	if err != nil {
		return err
	}
	old, err := s.word(at, "ParallelScavengeHeap::_old_gen")
	if err != nil {
		return err
	}
	bottom := []string{"MutableSpace::_bottom", "ImmutableSpace::_bottom"}
	end := []string{"MutableSpace::_end", "ImmutableSpace::_end"}
	return s.spaces(h, bottom, []string{"MutableSpace::_top"}, end, map[string]uint64{
		"PSYoungGen::_eden_space": young, "PSYoungGen::_from_space": young, "PSYoungGen::_to_space": young,
		"PSOldGen::_object_space": old,
	})
}

// spaces reads the spaces that fields of generations point at.
func (s *structs) spaces(h *heap, bottom, top, end []string, fields map[string]uint64) error {
	for name, generation := range fields {
		at, err := s.word(generation, name)
		if err != nil {
			return err
		}
		one, err := s.span(at, bottom, top, end)
		if err != nil {
			return err
		}
		if err := h.add(one); err != nil {
			return err
		}
	}
	return nil
}
