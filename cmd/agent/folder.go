// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// folder is an [os.DirFS] for the files of cgroups, of which the agent opens a hundred a second to read one number of
// each. os.Open adds each of them to the program's epoll set and removes it again, which is half of the cost.
type folder string

// Open implements [fs.FS].
func (f folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	path := string(f) + "/" + name
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Leaf implements [cgroup.Leaves]: the kernel counts a link for each folder in a folder, and two for the folder itself.
// File systems that do not count links report 1.
func (f folder) Leaf(dir string) bool {
	var s syscall.Stat_t
	return syscall.Stat(string(f)+"/"+dir, &s) == nil && s.Nlink == 2
}
