// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package procmem parses the files of a process in /proc for the agent, in bounded memory. It truncates names, paths
// and values, which the process controls, and returns only the variables that the caller names. It reads an [fs.FS], so
// that tests use recorded files; package live implements it for a real /proc, and reads memory.
package procmem

import (
	"fmt"
	"io"
	"io/fs"
)

// Read reads the identity of a process. dir is its directory in /proc.
func Read(dir fs.FS, pid int) (Process, error) {
	p := Process{PID: pid}
	start, err := StartTime(dir)
	if err != nil {
		return p, err
	}
	p.StartTime = start
	if p.Exe, err = fs.ReadLink(dir, "exe"); err != nil {
		return p, fmt.Errorf("reading the path of the program: %w", err)
	}
	if len(p.Exe) > maxPath {
		p.Exe = ""
	}
	return p, nil
}

// Mappings reads the mappings of a process with their amounts.
func Mappings(dir fs.FS) ([]Mapping, error) { return parsed(dir, "smaps", ReadSmaps) }

// Environ reads the named environment variables of a process.
func Environ(dir fs.FS, names []string) (map[string]string, error) {
	return parsed(dir, "environ", func(r io.Reader) (map[string]string, error) { return ReadEnviron(r, names) })
}

// StatusOf reads the status of a process.
func StatusOf(dir fs.FS) (Status, error) { return parsed(dir, "status", ReadStatus) }

// StartTime reads when a process started; see [Process].
func StartTime(dir fs.FS) (uint64, error) { return parsed(dir, "stat", ReadStartTime) }

func parsed[T any](dir fs.FS, file string, parse func(io.Reader) (T, error)) (value T, err error) {
	f, err := dir.Open(file)
	if err != nil {
		return value, fmt.Errorf("reading a process: %w", err)
	}
	defer func() { _ = f.Close() }()
	value, err = parse(f)
	if err != nil {
		return value, fmt.Errorf("reading a process: %w", err)
	}
	return value, nil
}

// Process is one process, identified by PID and start time, because PIDs are reused.
type Process struct {
	PID int
	// StartTime is in clock ticks since the boot of the machine.
	StartTime uint64
	// Exe is the path of the program, as seen inside its container. The process controls it.
	Exe string
	// RobustLists has the address of each known thread's list of robust mutexes, except the main thread's. The list begins
	// in the thread descriptor of the C library, at the top of the thread's stack.
	RobustLists []uint64
}
