// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Status has the relevant fields of /proc/PID/status.
type Status struct {
	// Name is at most 15 bytes, in which the kernel escapes line breaks. The process controls the name.
	Name string
	// NSPIDs are the PIDs of the process, from the PID namespace of this /proc to the innermost one. A container may
	// create further namespaces, so the last PID need not be the container's.
	NSPIDs  []int
	Threads int
	// Killed reports that SIGKILL was sent: the process runs no more code, even if the kernel takes long to end it.
	Killed bool
	RSS    memory.Bytes
}

// maxStatus bounds the bytes read of a file; the longest known status has 1.6 KiB.
const maxStatus = 64 << 10

// ReadStatus reads /proc/PID/status.
func ReadStatus(r io.Reader) (Status, error) {
	var s Status
	lines := bufio.NewScanner(io.LimitReader(r, maxStatus))
	for lines.Scan() {
		key, value, ok := bytes.Cut(lines.Bytes(), []byte(":"))
		if ok {
			s.field(string(key), bytes.TrimSpace(value))
		}
	}
	if err := lines.Err(); err != nil {
		return Status{}, fmt.Errorf("reading status: %w", err)
	}
	if s.Threads == 0 {
		return Status{}, fmt.Errorf("status: %w", ErrSyntax)
	}
	return s, nil
}

// maxNesting bounds the PIDs of a process: Linux nests PID namespaces 32 deep below the first.
const maxNesting = 33

// maxNameLength is four times the kernel's length of a name, because the kernel escapes some bytes.
const maxNameLength = 64

// sigkill is the bit of SIGKILL in a set of signals, which has signal 1 in the lowest bit.
const sigkill = 1 << 8

func (s *Status) field(key string, value []byte) {
	switch key {
	case "Name":
		s.Name = string(value[:min(len(value), maxNameLength)])
	case "NSpid":
		s.NSPIDs = s.NSPIDs[:0]
		for number := range bytes.FieldsSeq(value) {
			if len(s.NSPIDs) < maxNesting {
				s.NSPIDs = append(s.NSPIDs, count(number))
			}
		}
	case "Threads":
		s.Threads = count(value)
	case "ShdPnd":
		n, _ := number(value, 16)
		s.Killed = n&sigkill != 0
	case "VmRSS":
		s.RSS = kilobytes(value)
	}
}

// count parses a number of processes or threads, at most 2^22 in Linux.
func count(b []byte) int {
	n, ok := number(b, 10)
	if !ok || n > 1<<22 {
		return 0
	}
	return int(n)
}

// ReadStartTime reads field 22 of /proc/PID/stat: clock ticks from the boot of the machine to the start of the process.
func ReadStartTime(r io.Reader) (uint64, error) {
	_, n, err := readStat(r, 22)
	if err == nil && n[0] == 0 {
		err = fmt.Errorf("stat: %w", ErrSyntax)
	}
	return n[0], err
}

// readStat reads the name and two consecutive fields of /proc/PID/stat. The name may contain any character, so fields
// are counted from the last parenthesis.
func readStat(r io.Reader, field int) (name []byte, n [2]uint64, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxStatus))
	if err != nil {
		return nil, n, fmt.Errorf("reading stat: %w", err)
	}
	end := bytes.LastIndexByte(b, ')')
	_, name, _ = bytes.Cut(b[:max(end, 0)], []byte("("))
	at := 3 // the field after the name
	for text := range bytes.FieldsSeq(b[end+1:]) {
		if i := at - field; i >= 0 {
			var ok bool
			if n[i], ok = number(text, 10); !ok {
				break
			}
			if i == len(n)-1 {
				return name, n, nil
			}
		}
		at++
	}
	return nil, [2]uint64{}, fmt.Errorf("stat: %w", ErrSyntax)
}

// Bounds of the environment: Linux allows at most 128 KiB for one variable, and 6 MiB for all.
const (
	maxVariable = 128 << 10
	maxEnviron  = 8 << 20
	maxValue    = 4 << 10 // kept bytes of a value
)

// ReadEnviron returns the named variables of /proc/PID/environ. It clears its buffer, because others may be passwords.
func ReadEnviron(r io.Reader, names []string) (map[string]string, error) {
	kept := map[string]string{}
	buf := make([]byte, maxVariable)
	defer clear(buf)
	variables := bufio.NewScanner(io.LimitReader(r, maxEnviron))
	variables.Buffer(buf, maxVariable)
	variables.Split(byZero)
	for variables.Scan() {
		name, value, ok := bytes.Cut(variables.Bytes(), []byte("="))
		i := slices.IndexFunc(names, func(n string) bool { return n == string(name) })
		if !ok || i < 0 || len(value) > maxValue {
			continue
		}
		if _, twice := kept[names[i]]; !twice { // the first counts, as for getenv
			kept[names[i]] = string(value)
		}
	}
	if err := variables.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	return kept, nil
}

// byZero splits at zero bytes.
func byZero(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// Times is the processor time of a process since it started.
type Times struct {
	// Process is the sum of all threads, including ended ones.
	Process time.Duration
	Threads []ThreadTime
}

// ThreadTime is the processor time of one thread.
type ThreadTime struct {
	// Name is at most 15 bytes. The process controls the name.
	Name string
	Time time.Duration
}

// MaxThreads bounds the threads read of one process. Each takes 10 to 20 us.
const MaxThreads = 4096

const (
	tick      = 10 * time.Millisecond // USER_HZ is 100 on every machine that memfit runs on
	maxTicks  = 1 << 36               // 21 years
	maxName   = 15                    // of a thread, by the kernel
	fieldUser = 14                    // of /proc/PID/stat: user time; system time is the next
)

var errThreads = fmt.Errorf("the process has more than %d threads", MaxThreads)

// TimesOf reads the processor times of a process and its threads. It omits threads that end during the read.
func TimesOf(dir fs.FS) (t Times, err error) {
	tasks, err := dir.Open("task")
	if err != nil {
		return Times{}, fmt.Errorf("reading threads: %w", err)
	}
	defer func() { _ = tasks.Close() }()
	list, ok := tasks.(fs.ReadDirFile)
	if !ok {
		return Times{}, fmt.Errorf("reading threads: %w", fs.ErrInvalid)
	}
	entries, err := list.ReadDir(MaxThreads + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return Times{}, fmt.Errorf("reading threads: %w", err)
	}
	if len(entries) > MaxThreads {
		return Times{}, errThreads
	}
	for _, e := range entries {
		if one, err := parsed(dir, "task/"+e.Name()+"/stat", readTime); err == nil {
			t.Threads = append(t.Threads, one)
		}
	}
	all, err := parsed(dir, "stat", readTime)
	t.Process = all.Time
	return t, err
}

// readTime reads the name and the processor time of a process or thread from its file stat.
func readTime(r io.Reader) (ThreadTime, error) {
	name, ticks, err := readStat(r, fieldUser)
	if err != nil {
		return ThreadTime{}, err
	}
	if len(name) > maxName || ticks[0] > maxTicks || ticks[1] > maxTicks {
		return ThreadTime{}, fmt.Errorf("stat: %w", ErrSyntax)
	}
	return ThreadTime{Name: string(name), Time: time.Duration(ticks[0]+ticks[1]) * tick}, nil //nolint:gosec // bounded
}
