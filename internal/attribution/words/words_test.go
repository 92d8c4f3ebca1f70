// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package words_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/memfit/memfit/internal/attribution/words"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/fakeproc"
)

const at = 0x7f0000000000

func TestWordsAndTexts(t *testing.T) {
	p := fakeproc.New().Map(at, 0x3000, fakeproc.RW, "")
	p.Put(at+0x10, 0x1122334455667788)
	p.Write(at+0xffe, []byte("across two pages\x00"))
	r := words.New(p.Snapshot(), 10)
	defer r.Close()
	if v, err := r.Uint64(at + 0x10); err != nil || v != 0x1122334455667788 {
		t.Errorf("%#x, %v", v, err)
	}
	if v, err := r.Uint32(at + 0x14); err != nil || v != 0x11223344 {
		t.Errorf("%#x, %v", v, err)
	}
	if text, err := r.Text(at+0xffe, 64); err != nil || text != "across two pages" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := r.Text(at+0xffe, 5); !errors.Is(err, procmem.ErrAbsent) {
		t.Errorf("a text that is too long: %v", err)
	}
	for _, absent := range []uint64{at + 0x2000, at - 8, 0} {
		if _, err := r.Uint64(absent); !errors.Is(err, procmem.ErrAbsent) {
			t.Errorf("%#x: %v", absent, err)
		}
	}
	p.NothingAbsent(t)
}

func TestBudget(t *testing.T) {
	p := fakeproc.New().Map(at, 0x1000000, fakeproc.RW, "")
	p.Touch(at, 4096)
	r := words.New(p.Snapshot(), 1000)
	defer r.Close()
	for i := range uint64(1000) {
		if _, err := r.Uint64(at + i*procmem.PageSize); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Uint64(at + 999*procmem.PageSize); err != nil {
		t.Errorf("a page that is held costs nothing: %v", err)
	}
	if _, err := r.Uint64(at + 1000*procmem.PageSize); !errors.Is(err, procmem.ErrBudget) {
		t.Errorf("%v, want %v", err, procmem.ErrBudget)
	}
}

// file is a file in memory.
type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

func (file) Identity() (id procmem.FileIdentity, ok bool) { return id, false }

// TestConstantsComeFromTheFile: a page of a file that the process has not touched is not brought into it.
func TestConstantsComeFromTheFile(t *testing.T) {
	content := strings.Repeat("x", 0x1000) + "in the file\x00" + strings.Repeat("y", 100)
	p := fakeproc.New().Map(at, 0x3000, fakeproc.RX, "/lib/x.so").Map(at+0x3000, 0x1000, fakeproc.RW, "/lib/x.so")
	s := p.Snapshot()
	s.OpenFile = func(path string) (procmem.File, error) {
		if path != "/lib/x.so" {
			t.Errorf("%s is opened", path)
		}
		return file{bytes.NewReader([]byte(content))}, nil
	}
	r := words.New(s, 10)
	defer r.Close()
	if text, err := r.Text(at+0x1000, 64); err != nil || text != "in the file" {
		t.Errorf("%q, %v", text, err)
	}
	for name, absent := range map[string]uint64{"behind the end": at + 0x2000, "writable": at + 0x3000} {
		if _, err := r.Uint64(absent); !errors.Is(err, procmem.ErrAbsent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.NothingAbsent(t)
}
