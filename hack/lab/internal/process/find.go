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
			return false // it has ended or is a kernel thread
		}
		return match(strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00"))
	})
}

// Inside returns the processes in the network namespace that is mounted on path. It returns none if path is not a
// namespace, as after a reboot, and none if the caller itself is inside: its parents must not be killed.
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

// Working returns the processes whose working directory is dir or a directory below dir.
func Working(dir string) []Record {
	return find(func(proc string) bool {
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		return err == nil && strings.HasPrefix(cwd+"/", dir+"/")
	})
}

// find returns the processes whose folder in /proc satisfies match, except the calling process.
func find(match func(dir string) bool) (found []Record) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // Glob fails only for invalid patterns
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

// ByPID returns a record of any process, with which it can be stopped. ok is false if the process has ended.
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
