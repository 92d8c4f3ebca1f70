// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"cmp"
	"maps"
	"slices"

	"github.com/memfit/memfit/internal/procmem"
)

// caches distinguishes chunks in use from those in thread caches (tcache) and fast bins, which are not marked as free.
type caches struct {
	bases    map[uint64]bool // starts of heaps of non-main arenas
	brk      heap            // of the main arena
	since235 bool            // an arena has a layout of 2.35 or newer
	// mangled is true if links are xored with the page number of their own address (2.32 and newer).
	mangled bool
	// key is the second word of every cached chunk, random since 2.34. 0: unknown.
	key uint64
	// perThread is true if the second word is the address of the thread's cache instead (2.29 to 2.33).
	perThread bool
	owners    map[uint64]bool // results of isKey for these addresses
	probe     *procmem.Probe
	trimUnit  uint64 // bytes; see the function trimUnit
}

// tcache is a layout of struct tcache_perthread_struct, recognized by the size of its chunk.
type tcache struct {
	chunk, entries uint64 // size of the chunk, and offset of the entries, in bytes
	bins           int
}

var tcaches = []tcache{
	{chunk: 0x250, entries: 64, bins: 64},  // 2.26 to 2.29
	{chunk: 0x290, entries: 128, bins: 64}, // 2.30 to 2.41
	{chunk: 0x300, entries: 152, bins: 76}, // 2.42 and newer
}

func tcacheOf(size uint64) (tcache, bool) {
	for _, t := range tcaches {
		if size&^allBits == t.chunk {
			return t, true
		}
	}
	return tcache{}, false
}

// readCaches finds the format of links and the key from thread caches, which are the first chunks of arenas.
func readCaches(arenas []arena, probe *procmem.Probe) *caches {
	c := &caches{probe: probe, bases: map[uint64]bool{}, owners: map[uint64]bool{}, trimUnit: page}
	c.addHeaps(arenas)
	keys := map[uint64]int{}
	mangled := 0
	for i := range arenas {
		for _, h := range arenas[i].heaps {
			mangled += c.inspect(h.first, keys)
		}
		if i >= maxInspected {
			break
		}
	}
	best := 0
	for key, count := range maps.All(keys) {
		if count > best {
			best, c.key = count, key
		}
	}
	c.mangled = mangled > 0 || mangled == 0 && c.since235
	return c
}

// maxInspected bounds the arenas whose thread caches are read.
const maxInspected = 64

// addHeaps records the heaps, and whether glibc is 2.35 or newer: links are then mangled, even if none was read.
func (c *caches) addHeaps(arenas []arena) {
	for i := range arenas {
		a := &arenas[i]
		c.since235 = c.since235 || a.layout.fast == 0 || !a.main && a.addr%heapMax == heapHeaders[1] ||
			len(arenas) == 1 && a.layout.bins == layouts[0].bins
		for _, h := range a.heaps {
			if a.main {
				c.brk = h
			} else {
				c.bases[h.start] = true
			}
		}
	}
}

// inspect counts the keys in the thread cache at chunk, and returns the number of mangled minus plain links.
func (c *caches) inspect(chunk uint64, keys map[uint64]int) (mangled int) {
	size, err := c.probe.Word(chunk + 8)
	t, ok := tcacheOf(size)
	if err != nil || !ok {
		return 0
	}
	var entries [76]uint64
	if c.probe.Words(chunk+16+t.entries, entries[:t.bins]) != nil {
		return 0
	}
	for _, e := range entries[:t.bins] {
		var w [2]uint64
		if e == 0 || e%16 != 0 || !c.inHeaps(e) || c.probe.Words(e, w[:]) != nil {
			continue
		}
		switch {
		case w[0] == e>>12 || c.inHeaps(w[0]^e>>12):
			mangled++
		case w[0] == 0 || c.inHeaps(w[0]):
			mangled--
		}
		if w[1] == chunk+16 {
			c.perThread = true
		}
		if w[1] != 0 {
			keys[w[1]]++
		}
	}
	return mangled
}

// inHeaps reports whether an address may be a chunk of any arena. Heaps may have grown since they were found.
func (c *caches) inHeaps(addr uint64) bool {
	if addr%16 != 0 {
		return false
	}
	return c.bases[addr&^uint64(heapMax-1)] || c.brk.start <= addr && addr < c.brk.end
}

// contains reports whether an address is in a heap of the arena. Heaps must be in ascending order.
func (a *arena) contains(addr uint64) bool {
	i, found := slices.BinarySearchFunc(a.heaps, addr, func(h heap, at uint64) int { return cmp.Compare(h.start, at) })
	if found || i == 0 {
		return found
	}
	h := a.heaps[i-1]
	if a.main {
		return addr < h.end
	}
	return addr < h.start+heapMax
}

// place is the place of a chunk that is not marked as free.
type place uint8

const (
	inProgram place = iota
	inCache
	inFastBin
)

// placeOf returns the place of the chunk at w.at, which is not marked as free. It stores none of the words it reads.
func (w *walker) placeOf(length uint64) place {
	if length > maxTcached {
		return inProgram
	}
	class := int(length>>4) - 2
	fast := class < fastBins && w.arena.fast[class] != 0
	known := w.caches.key != 0
	if !fast && !known {
		return inProgram
	}
	link, err := w.window.Word(w.at + 16)
	if err != nil {
		return inProgram
	}
	if w.caches.mangled {
		link ^= (w.at + 16) >> 12
	}
	if link%16 != 0 {
		return inProgram
	}
	second, err := w.window.Word(w.at + 24)
	if err != nil {
		return inProgram
	}
	switch {
	case known && w.caches.isKey(second):
		if link == 0 || w.caches.inHeaps(link) {
			return inCache
		}
	case fast && (link == 0 && w.caches.mangled || w.arena.contains(link)):
		return inFastBin
	}
	return inProgram
}

// maxOwners bounds the stored addresses of caches, one for each thread.
const maxOwners = 4096

// isKey reports whether the second word of a chunk shows that a thread caches the chunk.
func (c *caches) isKey(word uint64) bool {
	if !c.perThread {
		return word == c.key
	}
	is, known := c.owners[word]
	if !known && word%16 == 0 && len(c.owners) < maxOwners && c.inHeaps(word) {
		size, err := c.probe.Word(word - 8)
		_, is = tcacheOf(size)
		is = is && err == nil
		c.owners[word] = is
	}
	return is
}
