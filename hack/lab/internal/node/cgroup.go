// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// cgroupMount is the usual mount point of both cgroup versions. Version 1 has one hierarchy per controller below it,
// version 2 a single hierarchy.
const cgroupMount = "/sys/fs/cgroup"

// cgroupHierarchies returns the root directories of all hierarchies.
func cgroupHierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		return []string{cgroupMount}, nil // version 2
	}
	// Version 1, possibly with version 2 in `unified`. Links, such as cpu, lead to directories that are listed as well.
	entries, err := os.ReadDir(cgroupMount)
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup hierarchies: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(cgroupMount, e.Name())
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && e.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("no cgroup hierarchy is mounted in %s: a node needs one", cgroupMount)
	}
	return dirs, nil
}

// makeCgroups creates the cgroup lab, the parent of the node's pods, in every hierarchy. The kubelet creates the
// cgroups below it, but requires that the parent exists.
func makeCgroups(lab string) error {
	dirs, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, root := range dirs {
		if err := os.MkdirAll(filepath.Join(root, lab), 0o755); err != nil {
			return fmt.Errorf("creating the lab's cgroup: %w", err)
		}
		if err := delegateControllers(root); err != nil {
			return err
		}
		// In version 1 a new cpuset is empty, and an empty cpuset accepts no process.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(root, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("reading the machine's cpuset: %w", err)
			}
			if err := os.WriteFile(filepath.Join(root, lab, file), value, 0o644); err != nil {
				return fmt.Errorf("filling the lab's cpuset: %w", err)
			}
		}
	}
	return nil
}

// delegateControllers enables all controllers of the root for its children. In version 1 it does nothing.
func delegateControllers(root string) error {
	offered, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the machine's cgroup controllers: %w", err)
	}
	for controller := range strings.FieldsSeq(string(offered)) {
		// One at a time, because a kernel may refuse some. The kubelet reports a controller that it needs and misses.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
	return nil
}

// cgroupPIDs returns the processes in the lab's cgroups, which are those of its containers.
func cgroupPIDs(lab string) ([]int, error) {
	dirs, err := cgroupHierarchies()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, root := range dirs {
		err := walkCgroups(filepath.Join(root, lab), func(dir string) error {
			data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) { // removed meanwhile
				return nil
			}
			if err != nil {
				return err
			}
			for field := range strings.FieldsSeq(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
					pids = append(pids, pid)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// removeCgroups removes the lab's cgroups. They must not contain processes.
func removeCgroups(lab string) error {
	dirs, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, root := range dirs {
		var below []string
		err := walkCgroups(filepath.Join(root, lab), func(dir string) error {
			below = append(below, dir)
			return nil
		})
		if err != nil {
			return err
		}
		for _, dir := range slices.Backward(below) { // children before their parents
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("removing the lab's cgroup: %w", err)
			}
		}
	}
	return nil
}

// walkCgroups visits dir and all cgroups below it, parents first. A missing dir is not an error.
func walkCgroups(dir string, visit func(dir string) error) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a container ended meanwhile
		}
		if err != nil || !entry.IsDir() {
			return err
		}
		return visit(path)
	})
	if err != nil {
		return fmt.Errorf("walking the lab's cgroups: %w", err)
	}
	return nil
}
