// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"io/fs"
	"os"

	"github.com/memfit/memfit/internal/cgroup"
)

// Holds reports whether a process runs in a container now. PIDs are listed before they are used, and the kernel may
// meanwhile reuse one for a process of a pod that declines inspections. dir is the directory of the process in /proc;
// later reads through it are of the same process.
func Holds(container string, pid int, dir fs.FS) bool {
	if pid == os.Getpid() {
		return true // the agent itself: its cgroup namespace shows its path as "/"
	}
	text, err := fs.ReadFile(dir, "cgroup")
	return err == nil && cgroup.Holds(container, text)
}
