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

// folder is an [os.DirFS] for the files of cgroups, of which the agent opens a hundred a second to read one number
// each. os.Open adds each to the program's epoll set and removes it again, which is half of the cost.
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

// Keep implements [cgroup.Keeper]: reading a file of a removed cgroup fails with ENODEV.
func (f folder) Keep(name string) (io.ReadCloser, error) {
	fd, err := f.open(name)
	if err != nil {
		return nil, err
	}
	return line(fd), nil
}

// line is an open file with one line.
type line int

func (l line) Read(p []byte) (int, error) {
	n, err := syscall.Pread(int(l), p, 0)
	return max(n, 0), err
}

func (l line) Close() error { return syscall.Close(int(l)) }

// Leaf implements [cgroup.Leaves]: the kernel counts a link for each folder in a folder, and two for the folder itself.
// File systems that do not count links report 1.
func (f folder) Leaf(dir string) bool {
	var s syscall.Stat_t
	return syscall.Stat(string(f)+"/"+dir, &s) == nil && s.Nlink == 2
}
