// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package live

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/fakeproc/procdir"
)

// open pins the process that has a number now.
func open(root string, pid int) (*Target, error) {
	dir, err := Proc(root).Process(pid)
	if err != nil {
		return nil, err
	}
	return dir.Target(pid)
}

// self opens this very process, for which no privilege is needed.
func self(t *testing.T) *Target {
	t.Helper()
	target, err := open("/proc", os.Getpid())
	if err != nil {
		t.Skipf("this /proc cannot be read: %v", err)
	}
	t.Cleanup(target.Close)
	return target
}

// mapped maps memory of which only some pages are touched.
func mapped(t *testing.T, pages int, touched ...int) (b []byte, addr uint64) {
	t.Helper()
	b, err := unix.Mmap(-1, 0, pages*procmem.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		t.Fatal(err)
	}
	for _, page := range touched {
		b[page*procmem.PageSize] = byte(page)
	}
	return b, uint64(uintptr(unsafe.Pointer(&b[0]))) //nolint:gosec // an address, which is not followed
}

// TestResident: both ways of asking see the pages that were touched, and no others.
func TestResident(t *testing.T) {
	target := self(t)
	_, addr := mapped(t, 16, 2, 3, 9)
	want := []procmem.Run{
		{Start: addr + 2*procmem.PageSize, Length: 2 * procmem.PageSize},
		{Start: addr + 9*procmem.PageSize, Length: procmem.PageSize},
	}
	for _, noScan := range []bool{false, true} {
		target.noScan = noScan
		runs, err := target.Resident(addr, addr+16*procmem.PageSize)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) != len(want) || runs[0] != want[0] || runs[1] != want[1] {
			t.Errorf("by pagemap %t: %x, want %x", noScan, runs, want)
		}
	}
}

// TestZeroPage: a page that was only read is a page of zeroes that all processes share, and no RSS counts it.
func TestZeroPage(t *testing.T) {
	target := self(t)
	b, addr := mapped(t, 4, 1)
	if b[3*procmem.PageSize] != 0 {
		t.Fatal("fresh memory is not zero")
	}
	runs, err := target.Resident(addr, addr+4*procmem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	if target.noScan {
		t.Skip("this kernel has no PAGEMAP_SCAN")
	}
	if got := procmem.ResidentBytes(runs, addr, addr+4*procmem.PageSize); got != procmem.PageSize {
		t.Errorf("%d bytes are resident, want one page", got)
	}
}

func TestReadAt(t *testing.T) {
	target := self(t)
	b, addr := mapped(t, 2, 0, 1)
	copy(b[procmem.PageSize-2:], "word")
	got := make([]byte, 4)
	if _, err := target.ReadAt(got, addr+procmem.PageSize-2); err != nil || string(got) != "word" {
		t.Errorf("%q, error %v", got, err)
	}
	for _, at := range []uint64{0, addr + 2*procmem.PageSize - 2 + 1<<40, ^uint64(0) - 2} {
		if _, err := target.ReadAt(got, at); !errors.Is(err, procmem.ErrAbsent) {
			t.Errorf("%#x: error %v", at, err)
		}
	}
}

// TestMappings: the mapping that was just made is among them, with the pages that were touched.
func TestMappings(t *testing.T) {
	target := self(t)
	_, addr := mapped(t, 16, 2, 3, 9)
	mappings, err := target.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappings {
		if m.Contains(addr) {
			if m.RSS < 3*memory.Bytes(procmem.PageSize) || !m.Anonymous() || !m.Has(procmem.Readable|procmem.Writable) {
				t.Errorf("%+v", m)
			}
			return
		}
	}
	t.Errorf("%#x is in none of %d mappings", addr, len(mappings))
}

// TestOnlyRegularFiles: what a process has mapped may be something else by now, and links lead no further than its
// root.
func TestOnlyRegularFiles(t *testing.T) {
	target := self(t)
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("1234567"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, "/dev/null", "/proc/self/root/dev/null"} {
		if f, err := target.OpenFile(path); err == nil {
			_ = f.Close()
			t.Errorf("%s was opened", path)
		}
	}
	f, err := target.OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if f.Size() != 7 {
		t.Errorf("size %d, want 7", f.Size())
	}
}

// TestLease: a process that holds a lease of a file makes others wait for 45 s who open it, but not the agent.
func TestLease(t *testing.T) {
	target := self(t)
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "file"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	if f, err := target.OpenFile(file.Name()); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("%v, error %v, want %v", f, err, unix.EWOULDBLOCK)
	}
}

// TestNumberIsAssignedAgain: what is read of a process that was opened is never of another process that has its number
// now.
func TestNumberIsAssignedAgain(t *testing.T) {
	const number = 4711
	proc := t.TempDir()
	if err := procdir.Add(proc, number, os.Getpid(), ""); err != nil {
		t.Fatal(err)
	}
	target, err := open(proc, number)
	if err != nil {
		t.Skipf("this /proc cannot be read: %v", err)
	}
	defer target.Close()
	other := exec.CommandContext(t.Context(), "sleep", "60")
	other.Env = []string{"GOGC=another"}
	if err := other.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	if err := procdir.Add(proc, number, other.Process.Pid, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Mappings(); err != nil {
		t.Errorf("mappings: %v", err)
	}
	if env, err := target.Environ([]string{"GOGC"}); err != nil || env["GOGC"] == "another" {
		t.Errorf("environment %v, error %v", env, err)
	}
	f, err := target.Dir().Open("cmdline")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if text, err := io.ReadAll(f); err != nil || strings.Contains(string(text), "sleep") {
		t.Errorf("command line %q, error %v", text, err)
	}
	if err := target.Same(); err != nil {
		t.Error(err)
	}
}

// TestNoProcess: a number that no process has.
func TestNoProcess(t *testing.T) {
	if _, err := open("/proc", 1<<22+1); err == nil {
		t.Error("process " + strconv.Itoa(1<<22+1) + " was opened")
	}
}
