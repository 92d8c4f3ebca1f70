// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package live

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/procmem"
)

// Target is a running process, identified by its open directory: it never returns data of another process with its PID.
type Target struct {
	dir     *Dir
	process procmem.Process
	pagemap *os.File
	noScan  bool // the kernel has no PAGEMAP_SCAN
	regions []pageRegion
}

// Target returns the process of the directory. pid is its PID. Closing the Target closes the directory.
func (d *Dir) Target(pid int) (*Target, error) {
	t := &Target{dir: d}
	if err := t.open(pid); err != nil {
		t.Close()
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return t, nil
}

func (t *Target) open(pid int) (err error) {
	// An open pagemap belongs to the process's current address space: after an exec it reads nothing.
	if t.pagemap, err = t.dir.open("pagemap", unix.O_RDONLY); err != nil {
		return err
	}
	if t.process, err = procmem.Read(t.dir, pid); err != nil {
		return err
	}
	if size := os.Getpagesize(); size != procmem.PageSize { // a kernel has one page size
		return fmt.Errorf("pages of %d bytes are not supported", size)
	}
	t.process.RobustLists = t.robustLists()
	return nil
}

// Close closes the directory and all other files.
func (t *Target) Close() {
	if t.pagemap != nil {
		_ = t.pagemap.Close()
	}
	_ = t.dir.Close()
}

// Dir returns the directory of the process. It is closed with the Target.
func (t *Target) Dir() *Dir { return t.dir }

// Process returns the identity of the process, read when the Target was opened.
func (t *Target) Process() procmem.Process { return t.process }

// Mappings returns the current mappings.
func (t *Target) Mappings() ([]procmem.Mapping, error) {
	m, err := procmem.Mappings(t.dir)
	if err != nil {
		return nil, err
	}
	return m, t.Same() // if the process has ended, the list may be incomplete
}

// Environ returns the named environment variables, as set when the program started.
func (t *Target) Environ(names []string) (map[string]string, error) {
	return procmem.Environ(t.dir, names)
}

// Times returns the processor times of the process and its threads.
func (t *Target) Times() (procmem.Times, error) { return procmem.TimesOf(t.dir) }

// Same returns [procmem.ErrGone] if the process has ended. nil means that all earlier reads by PID were of this
// process. An exec is not detected, but makes the headers of heaps inconsistent.
func (t *Target) Same() error {
	if _, err := procmem.StartTime(t.dir); err != nil {
		return fmt.Errorf("process %d: %w", t.process.PID, procmem.ErrGone)
	}
	return nil
}

// ReadAt implements [procmem.Memory].
func (t *Target) ReadAt(p []byte, addr uint64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	local := unix.Iovec{Base: &p[0]}
	local.SetLen(len(p))
	remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(p)}
	n, err := unix.ProcessVMReadv(t.process.PID, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
	runtime.KeepAlive(p)
	switch {
	case errors.Is(err, unix.EFAULT):
		return 0, procmem.ErrAbsent
	case errors.Is(err, unix.ESRCH):
		return 0, procmem.ErrGone
	case err != nil:
		return 0, fmt.Errorf("reading memory of process %d: %w", t.process.PID, err)
	case n < len(p):
		return n, procmem.ErrAbsent
	}
	return n, nil
}

// robustLists returns the robust list of each thread except the first. It omits ended threads.
func (t *Target) robustLists() []uint64 {
	dir, err := t.dir.open("task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(procmem.MaxThreads)
	var heads []uint64
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil || tid == t.process.PID {
			continue
		}
		var head, length uintptr
		//nolint:gosec // the kernel writes two words at the given addresses
		_, _, errno := unix.Syscall(
			unix.SYS_GET_ROBUST_LIST, uintptr(tid), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&length)),
		)
		if errno == 0 && head != 0 {
			heads = append(heads, uint64(head))
		}
	}
	return heads
}

// ErrNotRegular means that a mapped path does not name a regular file.
var ErrNotRegular = errors.New("not a regular file")

type mappedFile struct {
	*os.File
	size int64
}

func (f mappedFile) Size() int64 { return f.size }

// Identity implements [procmem.File]. On overlayfs it omits the device: each container has its own device number, but
// inodes are those of the image's layers.
func (f mappedFile) Identity() (id procmem.FileIdentity, ok bool) {
	var stat unix.Stat_t
	var of unix.Statfs_t
	fd := int(f.Fd())
	if unix.Fstat(fd, &stat) != nil || unix.Fstatfs(fd, &of) != nil {
		return id, false
	}
	id = procmem.FileIdentity{
		Device: stat.Dev, Inode: stat.Ino, Size: stat.Size, Modified: stat.Mtim.Nano(), Changed: stat.Ctim.Nano(),
	}
	if of.Type == unix.OVERLAYFS_SUPER_MAGIC {
		id.Device = 0
	}
	return id, true
}

// OpenFile opens a regular file as the process sees it: inside its own root, which no symbolic link leaves. It checks
// the type before opening, because opening a device or a pipe may have side effects.
func (t *Target) OpenFile(path string) (procmem.File, error) {
	root, err := t.dir.open("root", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("root of process %d: %w", t.process.PID, err)
	}
	defer func() { _ = root.Close() }()
	fd, err := unix.Openat2(int(root.Fd()), strings.TrimPrefix(path, "/"), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("mapped file of process %d: %w", t.process.PID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, fmt.Errorf("mapped file of process %d: %w", t.process.PID, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, ErrNotRegular
	}
	// Without O_NONBLOCK the open would wait for a process with a lease on the file.
	f, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("mapped file of process %d: %w", t.process.PID, err)
	}
	return mappedFile{f, stat.Size}, nil
}
