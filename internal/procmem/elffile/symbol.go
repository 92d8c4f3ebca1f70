// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package elffile

import (
	"cmp"
	"fmt"
)

// dynamic has the addresses of the tables of exported symbols; 0: absent.
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
	l := lookup{f: f, name: name}
	var s Symbol
	var found bool
	switch d := f.dynamic; {
	case d.symbols == 0 || d.names == 0:
		return Symbol{}, fmt.Errorf("%w: it exports nothing", ErrNotFound)
	case d.gnuHash != 0:
		s, found = l.byGNUHash()
	case d.hash != 0:
		s, found = l.byHash()
	default:
		return Symbol{}, fmt.Errorf("%w: it has no table of hashes", ErrNotFound)
	}
	if !found {
		return Symbol{}, cmp.Or(l.err, fmt.Errorf("%w: symbol %s", ErrNotFound, name))
	}
	return s, nil
}

// lookup searches for one symbol. It keeps its first error, and later reads return 0.
type lookup struct {
	f    *File
	name string
	err  error
}

// read reads the file contents at a loaded address.
func (l *lookup) read(p []byte, addr uint64) {
	var offset uint64
	if l.err == nil {
		offset, l.err = l.f.offsetOf(addr)
	}
	if l.err == nil {
		l.err = readFull(l.f.r, p, offset)
	}
	if l.err != nil {
		clear(p)
	}
}

func (l *lookup) word(addr uint64) uint32 {
	var b [4]byte
	l.read(b[:], addr)
	return le.Uint32(b[:])
}

func (l *lookup) byGNUHash() (s Symbol, found bool) {
	h := uint32(5381)
	for _, c := range []byte(l.name) {
		h = h*33 + uint32(c)
	}
	table := l.f.dynamic.gnuHash
	buckets, first, bloom := uint64(l.word(table)), l.word(table+4), uint64(l.word(table+8))
	if buckets == 0 {
		return s, false
	}
	table += 16 + 8*bloom
	start := l.word(table + 4*(uint64(h)%buckets))
	if start < first {
		return s, false
	}
	table += 4 * buckets
	for i := start; i-start < maxChain && l.err == nil; i++ {
		entry := l.word(table + 4*uint64(i-first))
		if entry|1 == h|1 {
			if s, found = l.symbol(i); found {
				return s, true
			}
		}
		if entry&1 != 0 {
			break
		}
	}
	return Symbol{}, false
}

func (l *lookup) byHash() (s Symbol, found bool) {
	var h uint32
	for _, c := range []byte(l.name) {
		h = h<<4 + uint32(c)
		high := h & 0xf0000000
		h ^= high>>24 ^ high
	}
	table := l.f.dynamic.hash
	buckets := uint64(l.word(table))
	if buckets == 0 {
		return s, false
	}
	next := l.word(table + 8 + 4*(uint64(h)%buckets))
	for i := 0; i < maxChain && next != 0; i++ {
		if s, found = l.symbol(next); found {
			return s, true
		}
		next = l.word(table + 8 + 4*(buckets+uint64(next)))
	}
	return Symbol{}, false
}

// symbol reads the symbol of an index; found if it has the name and is defined in this file.
func (l *lookup) symbol(index uint32) (s Symbol, found bool) {
	var b [24]byte
	l.read(b[:], l.f.dynamic.symbols+24*uint64(index))
	at := uint64(le.Uint32(b[:]))
	if le.Uint16(b[6:]) == 0 || at+uint64(len(l.name)) >= l.f.dynamic.namesSize {
		return s, false
	}
	name := make([]byte, len(l.name)+1)
	l.read(name, l.f.dynamic.names+at)
	return Symbol{Value: le.Uint64(b[8:]), Size: le.Uint64(b[16:])}, string(name) == l.name+"\x00"
}
