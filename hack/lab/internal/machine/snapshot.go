// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kubeletSysctls are the sysctls that a kubelet sets when it starts. They apply to the whole machine.
var kubeletSysctls = []string{
	"vm/overcommit_memory",
	"vm/panic_on_oom",
	"kernel/panic",
	"kernel/panic_on_oops",
	"kernel/keys/root_maxkeys",
	"kernel/keys/root_maxbytes",
}

// fixedDirs are directories that a node creates outside the lab's own, with paths that cannot be configured: for device
// plugins, for links to container logs, and for results of the CNI library.
var fixedDirs = []string{"/var/lib/kubelet", "/var/log/containers", "/var/lib/cni"}

// snapshot is the state of the machine before a lab.
type snapshot struct {
	Sysctls map[string]string `json:"sysctls"`
	Absent  []string          `json:"absent"` // those of fixedDirs that did not exist
}

// TakeSnapshot records the settings that a lab changes in the file at path. It keeps an existing file, which is from
// a crashed lab: the current settings may be that lab's.
func TakeSnapshot(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	s := snapshot{Sysctls: map[string]string{}}
	for _, name := range kubeletSysctls {
		data, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the setting %s: %w", name, err)
		}
		s.Sysctls[name] = strings.TrimSpace(string(data))
	}
	for _, dir := range fixedDirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			s.Absent = append(s.Absent, dir)
		}
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// RestoreSnapshot restores the settings that TakeSnapshot recorded. Without a snapshot it does nothing.
func RestoreSnapshot(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the snapshot of the machine: %w", err)
	}
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("reading the snapshot of the machine from %s: %w", path, err)
	}
	var failed error
	for _, name := range kubeletSysctls {
		if value, ok := s.Sysctls[name]; ok {
			failed = errors.Join(failed, os.WriteFile(filepath.Join("/proc/sys", name), []byte(value+"\n"), 0o644))
		}
	}
	for _, dir := range fixedDirs { // not range s.Absent: only these directories may be deleted
		if slices.Contains(s.Absent, dir) {
			failed = errors.Join(failed, os.RemoveAll(dir))
		}
	}
	return failed
}
