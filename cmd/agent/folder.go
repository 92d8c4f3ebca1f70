// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// folder is an [os.DirFS] whose files are not polled: os.Open puts each file of a cgroup into the program's epoll set
// and takes it out again, 4 of the 15 microseconds that it takes to read one number.
type folder string

// Open implements [fs.FS].
func (f folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	path := filepath.Join(string(f), name)
	for {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), path), nil
		case syscall.EINTR:
		default:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}
