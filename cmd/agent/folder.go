// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// folder is an [os.DirFS] for the files of cgroups. The agent opens a hundred of them a second, to read one number
// each. os.Open would double the cost, because it adds each file to the epoll set and removes it again.
type folder string

// Open implements [fs.FS].
func (f folder) Open(name string) (fs.File, error) {
	fd, err := f.open(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), string(f)+"/"+name), nil
}

func (f folder) open(name string) (fd int, err error) {
	if !fs.ValidPath(name) {
		return 0, fs.ErrInvalid
	}
	return syscall.Open(string(f)+"/"+name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
}

// Keep implements [cgroup.FileKeeper]. Reads fail with ENODEV once the cgroup is removed.
func (f folder) Keep(name string) (io.ReadCloser, error) {
	fd, err := f.open(name)
	if err != nil {
		return nil, err
	}
	return line(fd), nil
}

// line is the descriptor of a file with one line. Each Read starts at the beginning of the file.
type line int

func (l line) Read(p []byte) (int, error) {
	n, err := syscall.Pread(int(l), p, 0)
	return max(n, 0), err
}

func (l line) Close() error { return syscall.Close(int(l)) }

// Leaf implements [cgroup.LeafChecker]: the link count of a directory is 2 plus the number of its subdirectories. File
// systems that do not count links report 1.
func (f folder) Leaf(dir string) bool {
	var s syscall.Stat_t
	return syscall.Stat(string(f)+"/"+dir, &s) == nil && s.Nlink == 2
}
