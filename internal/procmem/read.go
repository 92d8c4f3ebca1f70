// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

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

// Environ reads the variables of these names.
func Environ(dir fs.FS, names []string) (map[string]string, error) {
	return parsed(dir, "environ", func(r io.Reader) (map[string]string, error) { return ReadEnviron(r, names) })
}

// StatusOf reads the status of a process.
func StatusOf(dir fs.FS) (Status, error) { return parsed(dir, "status", ReadStatus) }

// StartTime reads when a process started.
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
