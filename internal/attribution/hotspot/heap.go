// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"cmp"
	"fmt"
	"slices"
)

// span is a part of the heap that is filled from its start: a region, or a space of a generation.
type span struct {
	start, top, end uint64
	free            bool // not in use, regardless of top
}

// heap is the Java heap.
type heap struct {
	start, end uint64 // reserved range
	spans      []span
}

// maxRegions bounds the regions of a heap: 64 GiB of the smallest, 2 TiB of the largest. G1 aims at 2,048 regions.
const maxRegions = 1 << 16

// collectors maps the flag of a collector to the method that reads its heap. Others, such as ZGC, are not read.
var collectors = []struct {
	flag string
	read func(*jvm, *heap, uint64)
}{
	{"UseG1GC", (*jvm).g1},
	{"UseSerialGC", (*jvm).serial},
	{"UseParallelGC", (*jvm).parallel},
	{"UseShenandoahGC", (*jvm).shenandoah},
}

// heap reads the range and spans of the heap. end is 0 if the range is unknown. After an error, spans are incomplete.
func (j *jvm) heap(flags map[string]uint64) heap {
	at := j.static("Universe::_collectedHeap")
	if at == 0 {
		j.fail(fmt.Errorf("%w: no heap", ErrNoTables))
	}
	reserved := j.member(at, "CollectedHeap::_reserved")
	start, size := j.word(reserved, "MemRegion::_start"), j.word(reserved, "MemRegion::_word_size")
	h := heap{start: start, end: start + size*8}
	if h.start == 0 || h.end <= h.start || size > 1<<44 {
		j.fail(fmt.Errorf("%w: a heap of %d words", ErrNoTables, size))
	}
	if j.err != nil {
		return heap{}
	}
	for _, c := range collectors {
		if flags[c.flag] != 0 {
			c.read(j, &h, at)
			return h
		}
	}
	j.fail(fmt.Errorf("%w: unsupported collector", ErrNoTables))
	return h
}

// add reads the span of a region or space. Each of its three fields has several names, of which the tables have one.
func (j *jvm) add(h *heap, at uint64, free bool, bottom, top, end []string) {
	one := span{start: j.word(at, bottom...), top: j.word(at, top...), end: j.word(at, end...), free: free}
	if one.start < h.start || one.end > h.end || one.start > one.top || one.top > one.end {
		j.fail(fmt.Errorf("%w: a span from %#x to %#x, filled to %#x", ErrNoTables, one.start, one.end, one.top))
	}
	h.spans = append(h.spans, one)
}

// overlap reports whether any spans overlap, which is invalid. It sorts the spans.
func (h *heap) overlap() bool {
	slices.SortFunc(h.spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(h.spans); i++ {
		if h.spans[i].start < h.spans[i-1].end {
			return true
		}
	}
	return false
}

// g1 reads the table of regions. The entry of a region is 0 until the region is first committed.
func (j *jvm) g1(h *heap, at uint64) {
	manager := j.member(at, "G1CollectedHeap::_hrm")
	table := j.member(manager, "HeapRegionManager::_regions", "G1HeapRegionManager::_regions")
	base, length := j.word(table, "G1HeapRegionTable::_base"), j.word(table, "G1HeapRegionTable::_length")
	j.each(base, length, func(region uint64) {
		kind := j.member(region, "HeapRegion::_type", "G1HeapRegion::_type")
		free := j.half(kind, "HeapRegionType::_tag", "G1HeapRegionType::_tag") == 0
		j.add(h, region, free, []string{"HeapRegion::_bottom", "G1HeapRegion::_bottom", "Space::_bottom"},
			[]string{"HeapRegion::_top", "G1HeapRegion::_top", "G1ContiguousSpace::_top"},
			[]string{"HeapRegion::_end", "G1HeapRegion::_end", "Space::_end"})
	})
}

// shenandoah reads the array of regions. The first two states mean that a region is empty.
func (j *jvm) shenandoah(h *heap, at uint64) {
	base, length := j.word(at, "ShenandoahHeap::_regions"), j.word(at, "ShenandoahHeap::_num_regions")
	j.each(base, length, func(region uint64) {
		free := j.half(region, "ShenandoahHeapRegion::_state") <= 1
		j.add(h, region, free, []string{"ShenandoahHeapRegion::_bottom"}, []string{"ShenandoahHeapRegion::_top"},
			[]string{"ShenandoahHeapRegion::_end"})
	})
}

// each visits the structures that an array of pointers points to.
func (j *jvm) each(base, length uint64, visit func(at uint64)) {
	if length > maxRegions {
		j.fail(fmt.Errorf("%w: %d regions", ErrNoTables, length))
	}
	for i := uint64(0); i < length && j.err == nil; i++ {
		if at := j.number(base+8*i, 8); at != 0 {
			visit(at)
		}
	}
}

// serial reads three spaces of the young generation and one of the old.
func (j *jvm) serial(h *heap, at uint64) {
	young := j.word(at, "GenCollectedHeap::_young_gen", "SerialHeap::_young_gen")
	old := j.word(at, "GenCollectedHeap::_old_gen", "SerialHeap::_old_gen")
	for name, generation := range map[string]uint64{
		"DefNewGeneration::_eden_space": young, "DefNewGeneration::_from_space": young,
		"DefNewGeneration::_to_space": young, "TenuredGeneration::_the_space": old,
	} {
		j.add(h, j.word(generation, name), false, []string{"Space::_bottom", "ContiguousSpace::_bottom"},
			[]string{"ContiguousSpace::_top"}, []string{"Space::_end", "ContiguousSpace::_end"})
	}
}

// parallel reads the same spaces as serial, under other names.
func (j *jvm) parallel(h *heap, at uint64) {
	young := j.word(at, "ParallelScavengeHeap::_young_gen")
	old := j.word(at, "ParallelScavengeHeap::_old_gen")
	for name, generation := range map[string]uint64{
		"PSYoungGen::_eden_space": young, "PSYoungGen::_from_space": young, "PSYoungGen::_to_space": young,
		"PSOldGen::_object_space": old,
	} {
		j.add(h, j.word(generation, name), false, []string{"MutableSpace::_bottom", "ImmutableSpace::_bottom"},
			[]string{"MutableSpace::_top"}, []string{"MutableSpace::_end", "ImmutableSpace::_end"})
	}
}
