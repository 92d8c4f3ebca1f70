// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package elffile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/test/budget"
)

// Where the parts of library are; its one segment is loaded at 0x1000.
const (
	base     = 0x1000
	dynAt    = 0x200
	hashAt   = 0x300
	symAt    = 0x400
	namesAt  = 0x500
	textAt   = 0x600
	sectAt   = 0x700
	fileSize = 0x900
)

// library is an ELF file with the exported symbols "alpha" and "beta", and a section .text.
func library() []byte {
	b := make([]byte, fileSize)
	copy(b, "\x7fELF\x02\x01\x01")
	put64(b, 0x20, 0x40)   // program headers
	put64(b, 0x28, sectAt) // section headers
	put16(b, 0x36, 56)
	put16(b, 0x38, 2)
	put16(b, 0x3c, 4)
	put16(b, 0x3e, 1)
	segment(b[0x40:], typeLoad, 0, base, fileSize)
	segment(b[0x40+56:], typeDynamic, dynAt, base+dynAt, 96)

	const names = "\x00alpha\x00beta\x00.names\x00.text\x00"
	copy(b[namesAt:], names)
	for i, entry := range [][2]uint64{
		{0x6ffffef5, base + hashAt}, {5, base + namesAt}, {6, base + symAt}, {10, uint64(len(names))},
	} {
		put64(b, dynAt+16*i, entry[0])
		put64(b, dynAt+16*i+8, entry[1])
	}
	for i, name := range []string{"alpha", "beta"} {
		at := symAt + 24*(i+1)
		put32(b, at, uint32(strings.Index(names, name+"\x00")))
		put16(b, at+6, 1)
		put64(b, at+8, uint64(0x4000+0x100*i))
		put64(b, at+16, 8)
	}
	gnuHash(b[hashAt:], "alpha", "beta")
	section(b[sectAt+64:], strings.Index(names, ".names"), namesAt, uint64(len(names)))
	section(b[sectAt+128:], strings.Index(names, ".text"), textAt, 0x100)
	return b
}

func put16(b []byte, at int, v uint16) { binary.LittleEndian.PutUint16(b[at:], v) }
func put32(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
func put64(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

func segment(b []byte, kind uint32, offset, addr, size uint64) {
	put32(b, 0, kind)
	put64(b, 8, offset)
	put64(b, 16, addr)
	put64(b, 32, size)
	put64(b, 40, size)
}

func section(b []byte, name int, offset, size uint64) {
	put32(b, 0, uint32(name))
	put64(b, 0x10, base+offset)
	put64(b, 0x18, offset)
	put64(b, 0x20, size)
}

// gnuHash writes a table of one bucket, with symbols from index 1 on.
func gnuHash(b []byte, names ...string) {
	for i, w := range []uint32{1, 1, 1, 0} {
		put32(b, 4*i, w)
	}
	put32(b, 24, 1) // behind one word of 64 bits, the bucket
	for i, name := range names {
		h := uint32(5381)
		for _, c := range []byte(name) {
			h = h*33 + uint32(c)
		}
		h &^= 1
		if i == len(names)-1 {
			h |= 1
		}
		put32(b, 28+4*i, h)
	}
}

func TestSymbols(t *testing.T) {
	f, err := Open(bytes.NewReader(library()))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{"alpha": 0x4000, "beta": 0x4100} {
		if got, err := f.Symbol(name); err != nil || got.Value != want || got.Size != 8 {
			t.Errorf("%s is %+v, error %v", name, got, err)
		}
	}
	for _, name := range []string{"gamma", "", "alph", strings.Repeat("x", 5000)} {
		if _, err := f.Symbol(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%.9q: error %v", name, err)
		}
	}
}

func TestSections(t *testing.T) {
	f, err := Open(bytes.NewReader(library()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.Section(".text")
	if err != nil || text.Offset != textAt {
		t.Fatalf("%+v, error %v", text, err)
	}
	if _, err := f.Section(".tex"); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

// TestThisProgram reads a real file, which Go's linker wrote.
func TestThisProgram(t *testing.T) {
	r, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Skip("no /proc here")
	}
	defer func() { _ = r.Close() }()
	f, err := Open(r)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := f.Section(".gopclntab"); err != nil || s.Size == 0 {
		t.Errorf("%+v, error %v", s, err)
	}
	if len(f.Loads()) == 0 {
		t.Error("nothing of it is loaded")
	}
}

// FuzzFile asks everything of any file: it costs a bounded number of bytes, and what is found lies in the file.
func FuzzFile(f *testing.F) {
	f.Add(library())
	within := budget.Budget{Bytes: 2 << 20, PerByte: 64, CPU: time.Second}
	f.Fuzz(func(t *testing.T, data []byte) {
		budget.Check(t, within, len(data), func() {
			file, err := Open(bytes.NewReader(data))
			if err != nil {
				return
			}
			for _, name := range []string{"alpha", "gamma"} {
				_, _ = file.Symbol(name)
			}
			_, _ = file.Section(".text")
		})
	})
}
