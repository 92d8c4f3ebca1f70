// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package elffile reads headers and exported symbols of untrusted ELF files, and bounds what it reads. The
// documentation of debug/elf states that it is not hardened against such files.
package elffile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Errors for an inconsistent file or another format, and for a missing symbol or section.
var (
	ErrFormat   = errors.New("not a 64-bit little-endian ELF file")
	ErrNotFound = errors.New("not found in the ELF file")
)

// Bounds. The largest known program, Node.js 26, has 14 segments, 42 sections and 40,000 symbols.
const (
	maxSegments = 256
	maxSections = 4096
	maxDynamic  = 64 << 10 // bytes of the dynamic section: 4,096 entries
	maxChain    = 4096     // symbols of one bucket
	maxName     = 1024     // bytes of a name
)

// File is an open ELF file. It keeps the headers and reads all other parts on demand.
type File struct {
	r        io.ReaderAt
	segments []Segment
	dynamic  dynamic
	sections []Section
	sectHdr  sectionTable
	hasSect  bool
}

// Segment is a loaded part of the file. Addr is its link-time address.
type Segment struct {
	Offset, Addr, FileSize uint64
	Flags                  uint32
}

// Writable is a flag of a segment.
const Writable = 2

// Symbol is a symbol of the file. Value is its link-time address.
type Symbol struct{ Value, Size uint64 }

// Section is a named part of the file.
type Section struct {
	Offset, Size uint64
	name         uint32
}

type sectionTable struct {
	offset       uint64
	count, names int
}

const (
	typeLoad    = 1
	typeDynamic = 2
)

// Open reads the headers of a file. r must remain readable.
func Open(r io.ReaderAt) (*File, error) {
	var h [64]byte
	if err := readFull(r, h[:], 0); err != nil {
		return nil, err
	}
	if string(h[:4]) != "\x7fELF" || h[4] != 2 || h[5] != 1 {
		return nil, ErrFormat
	}
	f := &File{r: r}
	f.sectHdr = sectionTable{
		offset: le.Uint64(h[0x28:]), count: int(le.Uint16(h[0x3c:])), names: int(le.Uint16(h[0x3e:])),
	}
	return f, f.readSegments(le.Uint64(h[0x20:]), int(le.Uint16(h[0x36:])), int(le.Uint16(h[0x38:])))
}

func (f *File) readSegments(offset uint64, size, count int) error {
	if count > maxSegments || (count > 0 && size != 56) {
		return fmt.Errorf("%w: %d segments", ErrFormat, count)
	}
	var p [56]byte
	for i := range count {
		if err := readFull(f.r, p[:], offset+uint64(i)*uint64(len(p))); err != nil {
			return err
		}
		s := Segment{
			Flags: le.Uint32(p[4:]), Offset: le.Uint64(p[8:]), Addr: le.Uint64(p[16:]),
			FileSize: le.Uint64(p[32:]),
		}
		switch le.Uint32(p[:]) {
		case typeLoad:
			f.segments = append(f.segments, s)
		case typeDynamic:
			if err := f.readDynamic(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Loads returns the loaded segments in file order.
func (f *File) Loads() []Segment { return f.segments }

// offsetOf returns the file offset of a loaded address.
func (f *File) offsetOf(addr uint64) (uint64, error) {
	for _, s := range f.segments {
		if addr >= s.Addr && addr-s.Addr < s.FileSize {
			return s.Offset + addr - s.Addr, nil
		}
	}
	return 0, fmt.Errorf("%w: address %#x is not loaded", ErrFormat, addr)
}

// Section returns a section by its name, for example ".data".
func (f *File) Section(name string) (Section, error) {
	if err := f.readSections(); err != nil {
		return Section{}, err
	}
	for _, s := range f.sections {
		if same, err := f.isName(f.sections[f.sectHdr.names], s.name, name); err != nil || same {
			return s, err
		}
	}
	return Section{}, fmt.Errorf("%w: section %s", ErrNotFound, name)
}

func (f *File) readSections() error {
	if f.hasSect {
		return nil
	}
	t := f.sectHdr
	if t.count == 0 || t.count > maxSections || t.names >= t.count {
		return fmt.Errorf("%w: %d sections", ErrNotFound, t.count)
	}
	all := make([]Section, 0, t.count)
	var h [64]byte
	for i := range t.count {
		if err := readFull(f.r, h[:], t.offset+uint64(i*len(h))); err != nil {
			return err
		}
		all = append(all, Section{
			name: le.Uint32(h[:]), Offset: le.Uint64(h[0x18:]), Size: le.Uint64(h[0x20:]),
		})
	}
	f.sections, f.hasSect = all, true
	return nil
}

// isName reports whether a table of names has name at index.
func (f *File) isName(table Section, index uint32, name string) (bool, error) {
	if len(name) > maxName || uint64(index)+uint64(len(name)) >= table.Size {
		return false, nil
	}
	buf := make([]byte, len(name)+1)
	if err := readFull(f.r, buf, table.Offset+uint64(index)); err != nil {
		return false, err
	}
	return string(buf) == name+"\x00", nil
}

var le = binary.LittleEndian

func readFull(r io.ReaderAt, p []byte, offset uint64) error {
	if offset > 1<<62 {
		return fmt.Errorf("%w: offset %#x", ErrFormat, offset)
	}
	if n, err := r.ReadAt(p, int64(offset)); n < len(p) {
		return fmt.Errorf("%w: %d bytes at %#x: %w", ErrFormat, len(p), offset, err)
	}
	return nil
}

// dynamic has the addresses and the size of the tables of exported symbols; 0: absent.
type dynamic struct {
	symbols, names, namesSize, gnuHash uint64
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
		case 5: // DT_STRTAB
			f.dynamic.names = value
		case 6: // DT_SYMTAB
			f.dynamic.symbols = value
		case 10: // DT_STRSZ
			f.dynamic.namesSize = value
		case 0x6ffffef5: // DT_GNU_HASH
			f.dynamic.gnuHash = value
		}
	}
	return nil
}

// Symbol returns a symbol that the file exports and defines. It needs a GNU hash table, which linkers write by default.
func (f *File) Symbol(name string) (s Symbol, err error) {
	if d := f.dynamic; d.symbols == 0 || d.names == 0 || d.gnuHash == 0 {
		return s, fmt.Errorf("%w: no exported symbols", ErrNotFound)
	}
	l := lookup{f: f, name: name}
	s, found := l.byGNUHash()
	if !found {
		return s, cmp.Or(l.err, fmt.Errorf("%w: symbol %s", ErrNotFound, name))
	}
	return s, nil
}

// lookup searches for one symbol. It keeps its first error, after which reads return 0.
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

// byGNUHash searches the GNU hash table: four words of header, a Bloom filter, buckets, and chains of hashes.
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

// symbol reads the symbol at an index; found if it has the name and the file defines it.
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
