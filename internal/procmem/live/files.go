// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package live

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/procmem"
)

// ErrNotRegular means that a mapped path is not a regular file any more.
var ErrNotRegular = errors.New("not a regular file")

type mappedFile struct {
	*os.File
	size int64
}

func (f *mappedFile) Size() int64 { return f.size }

// Identity implements [procmem.File]. It omits the device, because each container's overlay has its own device number;
// inodes are those of the image's layers.
func (f *mappedFile) Identity() (id procmem.FileIdentity, ok bool) {
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

// OpenFile opens a path as the process sees it: inside its own root, which no symbolic link leaves, and only a regular
// file. It checks the type before opening, because opening a device or a pipe may have side effects.
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
	return &mappedFile{File: f, size: stat.Size}, nil
}
