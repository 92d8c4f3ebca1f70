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

// kubeletSysctls are the settings of the whole machine that a kubelet changes when it starts.
var kubeletSysctls = []string{
	"vm/overcommit_memory",
	"vm/panic_on_oom",
	"kernel/panic",
	"kernel/panic_on_oops",
	"kernel/keys/root_maxkeys",
	"kernel/keys/root_maxbytes",
}

// fixedPlaces are directories outside our own that a node makes whatever its configuration says: the kubelet's socket
// for device plugins and its links to container logs, and the CNI library's results.
var fixedPlaces = []string{"/var/lib/kubelet", "/var/log/containers", "/var/lib/cni"}

// snapshot is what the machine was like before a lab.
type snapshot struct {
	Sysctls map[string]string `json:"sysctls"`
	Absent  []string          `json:"absent"` // those of fixedPlaces that were not there
}

// TakeSnapshot writes down what a lab is going to change, unless a predecessor's snapshot is there: that one shows the
// machine, and what is found now may be a crashed lab's.
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
	for _, dir := range fixedPlaces {
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

// RestoreSnapshot puts the machine back to what TakeSnapshot saw. Without a snapshot there is nothing to do.
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
	for _, dir := range fixedPlaces { // not whatever the file says: it is data, this is a list of what may be deleted
		if slices.Contains(s.Absent, dir) {
			failed = errors.Join(failed, os.RemoveAll(dir))
		}
	}
	return failed
}
