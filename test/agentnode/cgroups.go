// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package agentnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// Cgroups are real cgroups for containers, below a cgroup of their own.
type Cgroups struct {
	// Root is the value of the agent's --cgroup-root.
	Root string

	top     string // path of the top cgroup
	version int
}

const mounted = "/sys/fs/cgroup"

// NewCgroups creates the top cgroup, which needs root. dir is an empty directory.
func NewCgroups(dir string) (*Cgroups, error) {
	name := "memfit-agentnode-" + strconv.Itoa(os.Getpid())
	if _, err := os.Stat(filepath.Join(mounted, "memory", "memory.stat")); err == nil {
		c := &Cgroups{Root: dir, top: filepath.Join(mounted, "memory", name), version: 1}
		return c, errors.Join(os.MkdirAll(c.top, 0o755), os.Symlink(c.top, filepath.Join(dir, "memory")))
	}
	c := &Cgroups{Root: filepath.Join(mounted, name), top: filepath.Join(mounted, name), version: 2}
	return c, errors.Join(c.delegate(mounted), os.MkdirAll(c.top, 0o755), c.delegate(c.top))
}

// delegate enables the memory controller for the children of a cgroup.
func (c *Cgroups) delegate(dir string) error {
	if c.version == 1 {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory"), 0o600)
}

// Make creates the cgroup of a pod's container and returns its directory. A process joins it with cgroup.procs.
func (c *Cgroups) Make(i int) (string, error) {
	at := c.top
	for part := range strings.SplitSeq(dirOf(i), "/") {
		at = filepath.Join(at, part)
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
		if part != filepath.Base(dirOf(i)) {
			if err := c.delegate(at); err != nil {
				return "", err
			}
		}
	}
	return at, nil
}

// Usage returns the kernel's memory usage of a container.
func (c *Cgroups) Usage(i int) (memory.Bytes, error) {
	text, err := os.ReadFile(filepath.Join(c.top, dirOf(i), c.file("memory.usage_in_bytes", "memory.current")))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return memory.Bytes(n), err
}

// OpenUsage opens the file that Usage reads.
func (c *Cgroups) OpenUsage(i int) (*os.File, error) {
	return os.Open(filepath.Join(c.top, dirOf(i), c.file("memory.usage_in_bytes", "memory.current")))
}

// SetLimit sets the memory limit of a container.
func (c *Cgroups) SetLimit(i int, limit memory.Bytes) error {
	file := filepath.Join(c.top, dirOf(i), c.file("memory.limit_in_bytes", "memory.max"))
	return os.WriteFile(file, []byte(strconv.FormatInt(int64(limit), 10)), 0o600)
}

func (c *Cgroups) file(v1, v2 string) string {
	if c.version == 1 {
		return v1
	}
	return v2
}

// Remove removes the cgroups. It fails if processes are left.
func (c *Cgroups) Remove() error {
	var dirs []string
	err := filepath.WalkDir(c.top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) { // the innermost first
		err = errors.Join(err, os.Remove(dir))
	}
	if err != nil {
		return fmt.Errorf("removing cgroups: %w", err)
	}
	return nil
}
