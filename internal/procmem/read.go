// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"fmt"
	"io"
	"io/fs"
	"strconv"
)

// Read reads who a process is, below a file system that is /proc.
func Read(proc fs.FS, pid int) (Process, error) {
	p := Process{PID: pid}
	start, err := parsed(proc, pid, "stat", ReadStartTime)
	if err != nil {
		return p, err
	}
	p.StartTime = start
	status, err := parsed(proc, pid, "status", ReadStatus)
	if err != nil {
		return p, err
	}
	p.NSPID, p.Caught = status.NSPID, status.Caught
	if p.Exe, err = fs.ReadLink(proc, name(pid, "exe")); err != nil {
		return p, fmt.Errorf("process %d: %w", pid, err)
	}
	if len(p.Exe) > maxPath {
		p.Exe = ""
	}
	return p, nil
}

// Mappings reads the mappings of a process with their amounts.
func Mappings(proc fs.FS, pid int) ([]Mapping, error) {
	return parsed(proc, pid, "smaps", ReadSmaps)
}

// Environ reads the variables of these names.
func Environ(proc fs.FS, pid int, names []string) (map[string]string, error) {
	return parsed(proc, pid, "environ", func(r io.Reader) (map[string]string, error) { return ReadEnviron(r, names) })
}

// Auxiliary reads the auxiliary vector.
func Auxiliary(proc fs.FS, pid int) (Auxv, error) { return parsed(proc, pid, "auxv", ReadAuxv) }

// StatusOf reads the status of a process.
func StatusOf(proc fs.FS, pid int) (Status, error) { return parsed(proc, pid, "status", ReadStatus) }

// StartTime reads when the process of a number started.
func StartTime(proc fs.FS, pid int) (uint64, error) { return parsed(proc, pid, "stat", ReadStartTime) }

func name(pid int, file string) string { return strconv.Itoa(pid) + "/" + file }

func parsed[T any](proc fs.FS, pid int, file string, parse func(io.Reader) (T, error)) (value T, err error) {
	f, err := proc.Open(name(pid, file))
	if err != nil {
		return value, fmt.Errorf("process %d: %w", pid, err)
	}
	defer func() { _ = f.Close() }()
	value, err = parse(f)
	if err != nil {
		return value, fmt.Errorf("process %d: %w", pid, err)
	}
	return value, nil
}
