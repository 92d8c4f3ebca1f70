// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/procmem"
)

// Proc is the path of a procfs, such as /proc. Sub returns a *[Dir].
type Proc string

// Open implements [fs.FS].
func (p Proc) Open(name string) (fs.File, error) { return os.DirFS(string(p)).Open(name) }

// Sub implements [fs.SubFS].
func (p Proc) Sub(name string) (fs.FS, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	fd, err := unix.Open(filepath.Join(string(p), name), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &Dir{os.NewFile(uintptr(fd), name)}, nil
}

// Process opens the directory of a process. The error matches [procmem.ErrGone] if no process has this PID.
func (p Proc) Process(pid int) (*Dir, error) {
	dir, err := p.Sub(strconv.Itoa(pid))
	if errors.Is(err, fs.ErrNotExist) {
		err = procmem.ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return dir.(*Dir), nil
}

// Dir is the open directory of a process in /proc. After the process has ended, opening its files fails.
type Dir struct {
	file *os.File // with O_PATH
}

var _ fs.ReadLinkFS = (*Dir)(nil)

// Close closes the directory.
func (d *Dir) Close() error { return d.file.Close() }

// Open implements [fs.FS].
func (d *Dir) Open(name string) (fs.File, error) { return d.open(name, unix.O_RDONLY) }

func (d *Dir) open(name string, flags int) (*os.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	fd, err := unix.Openat(int(d.file.Fd()), name, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// ReadLink implements [fs.ReadLinkFS].
func (d *Dir) ReadLink(name string) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(d.file.Fd()), name, buffer)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(buffer[:n]), nil
}

// Lstat implements [fs.ReadLinkFS]. It is unsupported.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "lstat", Path: name, Err: errors.ErrUnsupported}
}
