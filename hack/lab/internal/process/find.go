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

// Running is a process of the machine, as far as the lab needs to know it.
type Running struct {
	PID  int
	Args []string
}

// Find returns the processes whose command line satisfies match. Processes that end meanwhile are left out.
func Find(match func(args []string) bool) []Running {
	var found []Running
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed, which is all that Glob can complain about
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(data) == 0 {
			continue // gone, or a kernel thread
		}
		args := strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")
		if match(args) {
			found = append(found, Running{PID: pid, Args: args})
		}
	}
	return found
}

// Inside returns the processes that are in the network namespace which is mounted on path. A path that is not a
// namespace any more, as after a reboot, has none; and a process inside is not shown the others,
// because its own parents are among them.
func Inside(path string) []Running {
	namespace, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if own, err := os.Stat("/proc/self/ns/net"); err != nil || os.SameFile(own, namespace) {
		return nil
	}
	var found []Running
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if its, err := os.Stat(filepath.Join(dir, "ns/net")); err == nil && os.SameFile(its, namespace) {
			found = append(found, Running{PID: pid, Args: []string{"pid-" + strconv.Itoa(pid)}})
		}
	}
	return found
}

// Working returns the processes whose working directory is dir or below it.
func Working(dir string) []Running {
	var found []Running
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range dirs {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if cwd, err := os.Readlink(filepath.Join(proc, "cwd")); err == nil && strings.HasPrefix(cwd+"/", dir+"/") {
			found = append(found, Running{PID: pid, Args: []string{"pid-" + strconv.Itoa(pid)}})
		}
	}
	return found
}

// EndAll ends what was found, as far as it still runs.
func EndAll(found []Running) error {
	var records []Record
	for _, p := range found {
		if r, ok := p.Record(); ok {
			records = append(records, r)
		}
	}
	return End(records)
}

// Record turns a found process into one that can be stopped safely; ok is false when it is gone already.
func (p Running) Record() (r Record, ok bool) {
	ticks, _, err := stat(p.PID)
	if err != nil {
		return Record{}, false
	}
	boot, err := bootID()
	if err != nil {
		return Record{}, false
	}
	return Record{Spec: Spec{Name: filepath.Base(p.Args[0])}, PID: p.PID, Start: ticks, Boot: boot}, true
}

// ByPID makes a stoppable record of a process known by its pid alone; ok is false when it is gone already.
func ByPID(pid int) (r Record, ok bool) {
	return Running{PID: pid, Args: []string{"pid-" + strconv.Itoa(pid)}}.Record()
}
