// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// folder is an [os.DirFS] for the files of cgroups, of which the agent opens a hundred a second to read one number of
// each. os.Open adds each of them to the program's epoll set, removes it again, and gives it a finalizer, which is
// more than half of the cost.
type folder string

// Open implements [fs.FS].
func (f folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	path := f.path(name)
	for {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		switch err {
		case nil:
			return &file{fd: fd, path: path}, nil
		case syscall.EINTR:
		default:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// Leaf implements [cgroup.Leaves]: the kernel counts a link for each folder in a folder, and two for the folder itself.
// File systems that do not count links report 1.
func (f folder) Leaf(dir string) bool {
	var s syscall.Stat_t
	return syscall.Stat(f.path(dir), &s) == nil && s.Nlink == 2
}

func (f folder) path(name string) string { return string(f) + string(filepath.Separator) + name }

// file is one that is open, for one goroutine.
type file struct {
	fd     int
	path   string
	folder *os.File // for ReadDir; it has fd from then on
}

// Read implements [fs.File].
func (f *file) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(f.fd, p)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, &fs.PathError{Op: "read", Path: f.path, Err: err}
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// ReadDir implements [fs.ReadDirFile].
func (f *file) ReadDir(n int) ([]fs.DirEntry, error) { return f.os().ReadDir(n) }

// Stat implements [fs.File].
func (f *file) Stat() (fs.FileInfo, error) { return f.os().Stat() }

func (f *file) os() *os.File {
	if f.folder == nil {
		f.folder = os.NewFile(uintptr(f.fd), f.path)
	}
	return f.folder
}

// Close implements [fs.File].
func (f *file) Close() error {
	if f.folder != nil {
		return f.folder.Close()
	}
	return syscall.Close(f.fd)
}
