// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"io/fs"
	"os"

	"github.com/memfit/memfit/internal/cgroup"
)

// Holds reports whether a process runs in a container now. Numbers of processes are listed before they are used, and
// the kernel may assign one again meanwhile, to a process of a pod that refuses inspections. dir is the directory of
// the process below /proc; what is read through it afterwards is of the same process.
func Holds(container string, pid int, dir fs.FS) bool {
	if pid == os.Getpid() {
		return true // the agent's own number; its cgroup namespace shows its path as "/", without its container
	}
	text, err := fs.ReadFile(dir, "cgroup")
	return err == nil && cgroup.Holds(container, text)
}
