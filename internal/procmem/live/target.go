// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/procmem"
)

// Target is a process that runs. It is pinned: where its number belongs to another process by now, nothing of that one
// is returned.
type Target struct {
	root    string // "/proc"
	proc    fs.FS
	process procmem.Process
	pagemap *os.File
	noScan  bool // the kernel has no PAGEMAP_SCAN
	regions []pageRegion
}

// Open pins the process of a number, below a folder that is a /proc.
func Open(root string, pid int) (*Target, error) {
	t := &Target{root: root, proc: os.DirFS(root)}
	var err error
	// An open pagemap belongs to the memory that the process has now: after an exec it reads nothing.
	if t.pagemap, err = os.Open(t.file("pagemap", pid)); err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	if t.process, err = procmem.Read(t.proc, pid); err != nil {
		t.Close()
		return nil, err
	}
	aux, err := procmem.Auxiliary(t.proc, pid)
	if err == nil && aux.PageSize != procmem.PageSize {
		err = fmt.Errorf("process %d: pages of %d bytes are not supported", pid, aux.PageSize)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	t.process.Threads = t.threads()
	return t, nil
}

// Close closes what is open.
func (t *Target) Close() { _ = t.pagemap.Close() }

func (t *Target) file(name string, pid int) string {
	return filepath.Join(t.root, strconv.Itoa(pid), name)
}

// Process is the process as it was when it was opened.
func (t *Target) Process() procmem.Process { return t.process }

// Mappings are its mappings now.
func (t *Target) Mappings() ([]procmem.Mapping, error) {
	m, err := procmem.Mappings(t.proc, t.process.PID)
	if err != nil {
		return nil, err
	}
	return m, t.Same()
}

// Environ are variables that it was started with.
func (t *Target) Environ(names []string) (map[string]string, error) {
	env, err := procmem.Environ(t.proc, t.process.PID, names)
	if err != nil {
		return nil, err
	}
	return env, t.Same()
}

// Same returns [procmem.ErrGone] where the number belongs to another process by now. What was read before a nil was of
// this process, but for an exec, which the next reader of headers does not make sense of.
func (t *Target) Same() error {
	start, err := procmem.StartTime(t.proc, t.process.PID)
	if err != nil || start != t.process.StartTime {
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

// maxThreads is how many threads are asked where their stack is.
const maxThreads = 4096

// threads asks the kernel for the robust list of each thread but the first. A thread that is gone is left out.
func (t *Target) threads() []procmem.Thread {
	dir, err := os.Open(t.file("task", t.process.PID))
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(maxThreads)
	var threads []procmem.Thread
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil || tid == t.process.PID {
			continue
		}
		var head uintptr
		var length uintptr
		//nolint:gosec // the kernel writes two words where it is told to
		_, _, errno := unix.Syscall(
			unix.SYS_GET_ROBUST_LIST, uintptr(tid), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&length)),
		)
		if errno == 0 && head != 0 {
			threads = append(threads, procmem.Thread{TID: tid, RobustList: uint64(head)})
		}
	}
	return threads
}
