// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/internal/procmem/perfdata"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/fakeproc/hsperf"
)

// nameless is what a file is without an identity.
type nameless struct{}

func (nameless) Identity() (id procmem.FileIdentity, ok bool) { return id, false }

// mapped is a file in memory.
type mapped struct {
	*bytes.Reader
	nameless
}

func (mapped) Close() error { return nil }

// onDisk is a file of this machine.
type onDisk struct {
	*os.File
	nameless
}

func (f onDisk) Size() int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// opens returns the same bytes for every path.
func opens(b []byte) Open {
	return func(string) (procmem.File, error) { return mapped{Reader: bytes.NewReader(b)}, nil }
}

func openHere(path string) (procmem.File, error) {
	f, err := os.Open(path)
	return onDisk{File: f}, err
}

// TestThisProcess: the test is a Go program, which holds what it was built with.
func TestThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ELF files only")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	facts, err := new(Cache).Gather("", Process{Program: self}, openHere)
	if err != nil {
		t.Fatal(err)
	}
	got := Detect(facts)
	if got.Title != "Go" || got.Version == "" || !strings.HasPrefix(runtime.Version(), "go"+got.Version) {
		t.Errorf("%+v, want Go and the version of %s", got, runtime.Version())
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	refuse := func(string) (procmem.File, error) { return nil, errors.New("no") }
	f, err := new(Cache).Gather("", Process{Program: "/srv/app"}, refuse)
	if f.Unreadable != "its file cannot be opened" || err == nil {
		t.Errorf("%+v, error %v", f, err)
	}
	script := opens([]byte("#!/bin/sh\n"))
	f, err = new(Cache).Gather("", Process{Program: "/srv/app"}, script)
	if f.Unreadable != "it is not a 64-bit ELF file" || err != nil {
		t.Errorf("%+v, error %v", f, err)
	}
}

// TestFewFilesAreOpened: whatever a process maps, only files whose names may bear a mark are opened, and few of them.
func TestFewFilesAreOpened(t *testing.T) {
	opened := map[string]int{}
	open := func(path string) (procmem.File, error) {
		opened[path]++
		return nil, errors.New("no")
	}
	p := Process{Program: "/usr/bin/app"}
	for i := range 4000 {
		name := "/lib/libpython3." + strings.Repeat("1", i%100) + ".so"
		p.Mappings = append(p.Mappings, procmem.Mapping{Path: name, Inode: 1},
			procmem.Mapping{Path: "/etc/passwd", Inode: 2}, procmem.Mapping{Path: "/lib/libjvm.so"})
	}
	_, _ = new(Cache).Gather("", p, open)
	if len(opened) != maxFiles || opened["/etc/passwd"] > 0 || opened["/lib/libjvm.so"] > 0 {
		t.Errorf("%d files opened: %v", len(opened), opened)
	}
}

func TestPerfData(t *testing.T) {
	b := hsperf.File(hsperf.Entry{Name: "sun.rt.name", Text: []byte("x\x00")},
		hsperf.Entry{Name: "java.rt.vmArgs", Text: []byte("-Xmx64m -Da=b\x00")},
		hsperf.Entry{Name: "java.rt.vmFlags", Text: []byte("-Xms32m\x00")}, hsperf.Entry{Name: "java.threads.live", Value: 9})
	if got, err := parsePerfData(b); err != nil || got != "-Xmx64m -Xms32m" {
		t.Errorf("%q, %v", got, err)
	}
	open := func(path string) (procmem.File, error) {
		if path == "/tmp/hsperfdata_app/1" {
			return mapped{Reader: bytes.NewReader(b)}, nil
		}
		return nil, errors.New("no")
	}
	mappings := []procmem.Mapping{{Path: "/tmp/hsperfdata_app/1", Inode: 1}}
	facts, _ := new(Cache).Gather("", Process{Program: "/bin/java", Mappings: mappings}, open)
	if flags := Detect(facts).Flags; len(flags) != 2 || flags[0] != (Flag{"-Xmx64m", "hsperfdata"}) {
		t.Errorf("flags %v", flags)
	}
	for _, cut := range []int{0, 31, 40, len(b) - 1} {
		if _, err := parsePerfData(b[:cut]); !errors.Is(err, perfdata.ErrFormat) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

// TestPasswordsOfAJVMAreNotKept: neither those among its own arguments, nor the program's, nor where they were read to.
func TestPasswordsOfAJVMAreNotKept(t *testing.T) {
	const secret = "hunter2"
	var buffer []byte
	open := func(string) (procmem.File, error) {
		return readInto{mapped{Reader: bytes.NewReader(hsperf.File(
			hsperf.Entry{Name: "java.rt.vmArgs", Text: []byte("-Xmx64m -Dpassword=" + secret + " -XX:MaxRAMPercentage=50\x00")},
			hsperf.Entry{Name: "sun.rt.javaCommand", Text: []byte("app.jar --password=" + secret + "\x00")},
		))}, &buffer}, nil
	}
	p := Process{Mappings: []procmem.Mapping{{Path: "/tmp/hsperfdata_app/1", Inode: 1}}}
	facts, _ := new(Cache).Gather("", p, open)
	if facts.VMArgs != "-Xmx64m -XX:MaxRAMPercentage=50" {
		t.Errorf("kept %q", facts.VMArgs)
	}
	if len(buffer) == 0 || len(bytes.Trim(buffer, "\x00")) > 0 {
		t.Errorf("%d bytes were read, and %q is left", len(buffer), bytes.Trim(buffer, "\x00"))
	}
}

// readInto records where a file was read to.
type readInto struct {
	mapped
	buffer *[]byte
}

func (r readInto) ReadAt(b []byte, at int64) (int, error) {
	*r.buffer = b
	return r.mapped.ReadAt(b, at)
}

// perfDataBudget: every entry is cut out and named once.
var perfDataBudget = budget.Budget{Bytes: 64 << 10, PerByte: 16, CPU: time.Second}

func FuzzParsePerfData(f *testing.F) {
	f.Add(hsperf.File(
		hsperf.Entry{Name: "java.rt.vmArgs", Text: []byte("-Xmx64m\x00")}, hsperf.Entry{Name: "java.threads.live", Value: 9},
	))
	f.Fuzz(func(t *testing.T, b []byte) {
		budget.Check(t, perfDataBudget, len(b), func() {
			kept, err := parsePerfData(b)
			if err == nil && len(kept) > 2*len(b)+1 {
				t.Errorf("more text than there is: %q", kept)
			}
		})
	})
}

// buildBudget: the list of modules is parsed by the standard library, which keeps all of it.
var buildBudget = budget.Budget{Bytes: 128 << 10, PerByte: 64, CPU: time.Second}

func FuzzParseBuild(f *testing.F) {
	f.Add(section("go1.26.1", modules))
	f.Add(section("go1.18", ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		budget.Check(t, buildBudget, len(b), func() {
			if version := parseBuild(b); version != plain(version) {
				t.Errorf("version %q", version)
			}
		})
	})
}

// section is a section ".go.buildinfo".
func section(version, modules string) []byte {
	b := append([]byte(buildMagic), 8, buildInline)
	b = append(b, make([]byte, buildHeader-len(b))...)
	b = append(binary.AppendUvarint(b, uint64(len(version))), version...)
	return append(binary.AppendUvarint(b, uint64(len(modules))), modules...)
}

const modules = "path\tx\nmod\tx\tv1\ndep\tgithub.com/KimMachineGun/automemlimit\tv1.0.1\nbuild\tCGO_ENABLED=1\n"

func TestBuild(t *testing.T) {
	whole := section("go1.26.1 X:nocoverageredesign", modules)
	for want, in := range map[string][]byte{
		"1.26.1":      whole,
		"1.26.8":      section("go1.26.8", strings.Repeat(modules, 100))[:buildRead],
		"1.27-abcdef": section("devel go1.27-abcdef", ""),
		"":            whole[:buildHeader+4],
	} {
		if got := parseBuild(in); got != want {
			t.Errorf("version %q, want %q", got, want)
		}
	}
}

// lookBudget: a file is read in pieces of 1 MiB; its headers may have 4,096 sections of 64 bytes.
var lookBudget = budget.Budget{Bytes: 8 << 20, PerByte: 64, CPU: 2 * time.Second}

// FuzzLook reads a program that anybody may have written, once as each of the files that may bear marks.
func FuzzLook(f *testing.F) {
	self, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	head := make([]byte, 8<<10)
	file, err := os.Open(self)
	if err != nil {
		f.Fatal(err)
	}
	n, err := file.Read(head)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(head[:n])
	f.Add([]byte("\x7fELF\x02\x01"))
	names := []string{"/a/node", "/a/libpython3.11.so", "/a/libruby.so", "/a/libjvm.so", "/a/libc.so.6"}
	f.Fuzz(func(t *testing.T, b []byte) {
		budget.Check(t, lookBudget, len(b), func() {
			for i, name := range names {
				found, err := new(Cache).identifyAt("", File{Path: name, Program: i == 0}, opens(b))
				if err != nil && len(found.Texts) > 0 {
					t.Errorf("%s: %v and %+v", name, err, found)
				}
			}
		})
	})
}
