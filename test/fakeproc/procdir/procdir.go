// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package procdir creates directories that replace /proc in tests: their processes are real, with cgroups and IDs that
// the test chooses.
package procdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Add adds a running process to the directory proc. It gets the PID number, and cgroup as the text of /proc/PID/cgroup.
// A process that has the number already is replaced, as when the kernel reuses a PID.
func Add(proc string, number, process int, cgroup string) error {
	real := filepath.Join("/proc", strconv.Itoa(process))
	exe, err := os.Readlink(filepath.Join(real, "exe"))
	if err != nil {
		return fmt.Errorf("reading process %d: %w", process, err)
	}
	made, err := os.MkdirTemp(proc, "new-")
	if err != nil {
		return err
	}
	err = errors.Join(
		os.Chmod(made, 0o755),
		os.Symlink(exe, filepath.Join(made, "exe")),
		os.WriteFile(filepath.Join(made, "cgroup"), []byte(cgroup), 0o644),
	)
	for _, name := range []string{
		"cmdline", "environ", "maps", "pagemap", "root", "smaps", "stat", "status", "task",
	} {
		err = errors.Join(err, os.Symlink(filepath.Join(real, name), filepath.Join(made, name)))
	}
	if err != nil {
		return err
	}
	at := filepath.Join(proc, strconv.Itoa(number))
	if err := os.Rename(at, made+"-before"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(made, at)
}

// Cgroup returns the text of /proc/PID/cgroup for a process of a container.
func Cgroup(pod, container string) string {
	return "4:memory:/kubepods/burstable/pod" + pod + "/" + container + "\n"
}
