// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// kubeletSysctls are the settings of the whole machine that a kubelet changes when it starts. They are written down before
// and put back after, so that the lab leaves the machine as it was.
var kubeletSysctls = []string{
	"vm/overcommit_memory",
	"vm/panic_on_oom",
	"kernel/panic",
	"kernel/panic_on_oops",
	"kernel/keys/root_maxkeys",
	"kernel/keys/root_maxbytes",
}

// SaveSysctls writes the present settings to path, unless a predecessor's are there: those are the machine's own, and what
// is set now may be a crashed lab's.
func SaveSysctls(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	values := map[string]string{}
	for _, name := range kubeletSysctls {
		data, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the setting %s: %w", name, err)
		}
		values[name] = strings.TrimSpace(string(data))
	}
	data, err := json.MarshalIndent(values, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// RestoreSysctls puts back what SaveSysctls wrote down. Nothing written down means nothing to do.
func RestoreSysctls(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the machine's settings: %w", err)
	}
	var values map[string]string
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("reading the machine's settings from %s: %w", path, err)
	}
	var failed error
	for _, name := range kubeletSysctls {
		if value, ok := values[name]; ok {
			failed = errors.Join(failed, os.WriteFile(filepath.Join("/proc/sys", name), []byte(value+"\n"), 0o644))
		}
	}
	return failed
}
