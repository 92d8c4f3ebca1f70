// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package elffile

import (
	"fmt"
)

// dynamic is where the exported symbols are, by their addresses in the file; 0: absent.
type dynamic struct {
	symbols, names, namesSize, gnuHash, hash uint64
}

func (f *File) readDynamic(s Segment) error {
	size := min(s.FileSize, maxDynamic) &^ 15
	buf := make([]byte, size)
	if err := readFull(f.r, buf, s.Offset); err != nil {
		return err
	}
	for ; len(buf) > 0; buf = buf[16:] {
		value := le.Uint64(buf[8:])
		switch le.Uint64(buf) {
		case 0:
			return nil
		case 4:
			f.dynamic.hash = value
		case 5:
			f.dynamic.names = value
		case 6:
			f.dynamic.symbols = value
		case 10:
			f.dynamic.namesSize = value
		case 0x6ffffef5:
			f.dynamic.gnuHash = value
		}
	}
	return nil
}

// Symbol returns a symbol that the file exports and defines.
func (f *File) Symbol(name string) (Symbol, error) {
	d := f.dynamic
	if d.symbols == 0 || d.names == 0 {
		return Symbol{}, fmt.Errorf("%w: it exports nothing", ErrNotFound)
	}
	if d.gnuHash != 0 {
		return f.byGNUHash(name)
	}
	if d.hash != 0 {
		return f.byHash(name)
	}
	return Symbol{}, fmt.Errorf("%w: it has no table of hashes", ErrNotFound)
}

func (f *File) byGNUHash(name string) (Symbol, error) {
	h := uint32(5381)
	for _, c := range []byte(name) {
		h = h*33 + uint32(c)
	}
	table, err := f.words(f.dynamic.gnuHash, 3)
	if err != nil {
		return Symbol{}, err
	}
	buckets, first, bloom := uint64(table[0]), table[1], uint64(table[2])
	if buckets == 0 {
		return Symbol{}, notExported(name)
	}
	at := f.dynamic.gnuHash + 16 + 8*bloom
	start, err := f.words(at+4*(uint64(h)%buckets), 1)
	if err != nil {
		return Symbol{}, err
	}
	if start[0] < first {
		return Symbol{}, notExported(name)
	}
	at += 4 * buckets
	for i := start[0]; i-start[0] < maxChain; i++ {
		entry, err := f.words(at+4*uint64(i-first), 1)
		if err != nil {
			return Symbol{}, err
		}
		if entry[0]|1 == h|1 {
			if s, ok, err := f.symbol(i, name); ok || err != nil {
				return s, err
			}
		}
		if entry[0]&1 != 0 {
			break
		}
	}
	return Symbol{}, notExported(name)
}

func (f *File) byHash(name string) (Symbol, error) {
	var h uint32
	for _, c := range []byte(name) {
		h = h<<4 + uint32(c)
		high := h & 0xf0000000
		h ^= high>>24 ^ high
	}
	table, err := f.words(f.dynamic.hash, 2)
	if err != nil {
		return Symbol{}, err
	}
	buckets := uint64(table[0])
	if buckets == 0 {
		return Symbol{}, notExported(name)
	}
	next, err := f.words(f.dynamic.hash+8+4*(uint64(h)%buckets), 1)
	for range maxChain {
		if err != nil || next[0] == 0 {
			break
		}
		if s, ok, err := f.symbol(next[0], name); ok || err != nil {
			return s, err
		}
		next, err = f.words(f.dynamic.hash+8+4*(buckets+uint64(next[0])), 1)
	}
	if err != nil {
		return Symbol{}, err
	}
	return Symbol{}, notExported(name)
}

func notExported(name string) error { return fmt.Errorf("%w: symbol %s", ErrNotFound, name) }

// symbol reads the symbol of an index, if it has this name and is defined here.
func (f *File) symbol(index uint32, name string) (Symbol, bool, error) {
	at, err := f.offsetOf(f.dynamic.symbols + 24*uint64(index))
	if err != nil {
		return Symbol{}, false, err
	}
	var b [24]byte
	if err := readFull(f.r, b[:], at); err != nil {
		return Symbol{}, false, err
	}
	names, err := f.offsetOf(f.dynamic.names)
	if err != nil {
		return Symbol{}, false, err
	}
	same, err := f.isName(Section{Offset: names, Size: f.dynamic.namesSize}, le.Uint32(b[:]), name)
	if err != nil || !same || le.Uint16(b[6:]) == 0 {
		return Symbol{}, false, err
	}
	return Symbol{Value: le.Uint64(b[8:]), Size: le.Uint64(b[16:])}, true, nil
}

// words reads 32-bit words at an address.
func (f *File) words(addr uint64, count int) ([]uint32, error) {
	at, err := f.offsetOf(addr)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 4*count)
	if err := readFull(f.r, buf, at); err != nil {
		return nil, err
	}
	words := make([]uint32, count)
	for i := range words {
		words[i] = le.Uint32(buf[4*i:])
	}
	return words, nil
}
