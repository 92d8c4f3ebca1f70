// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Find returns the processes whose command line satisfies match.
func Find(match func(args []string) bool) []Record {
	return find(func(dir string) bool {
		data, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(data) == 0 {
			return false // gone, or a kernel thread
		}
		return match(strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00"))
	})
}

// Inside returns the processes that are in the network namespace which is mounted on path. A path that is not a
// namespace any more, as after a reboot, has none; and a process inside is not shown the others,
// because its own parents are among them.
func Inside(path string) []Record {
	namespace, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if own, err := os.Stat("/proc/self/ns/net"); err != nil || os.SameFile(own, namespace) {
		return nil
	}
	return find(func(dir string) bool {
		its, err := os.Stat(filepath.Join(dir, "ns/net"))
		return err == nil && os.SameFile(its, namespace)
	})
}

// Working returns the processes whose working directory is dir or below it.
func Working(dir string) []Record {
	return find(func(proc string) bool {
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		return err == nil && strings.HasPrefix(cwd+"/", dir+"/")
	})
}

// find returns the processes whose folder in /proc satisfies match, but for this one and those that end meanwhile.
func find(match func(dir string) bool) (found []Record) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed, which is all that Glob can complain about
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || !match(dir) {
			continue
		}
		if r, ok := ByPID(pid); ok {
			found = append(found, r)
		}
	}
	return found
}

// ByPID makes a stoppable record of a process known by its pid alone; ok is false when it is gone already.
func ByPID(pid int) (r Record, ok bool) {
	ticks, _, err := stat(pid)
	if err != nil {
		return Record{}, false
	}
	boot, err := bootID()
	if err != nil {
		return Record{}, false
	}
	name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")) // for messages
	return Record{Spec: Spec{Name: strings.TrimSpace(string(name))}, PID: pid, Start: ticks, Boot: boot}, true
}
