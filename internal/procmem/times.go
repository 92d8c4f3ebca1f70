// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Times is the processor time of a process since it started.
type Times struct {
	// Process is that of all its threads, including ended ones.
	Process time.Duration
	Threads []ThreadTime
}

// ThreadTime is the processor time of one thread.
type ThreadTime struct {
	// Name is at most 15 bytes. The process controls it.
	Name string
	Time time.Duration
}

// MaxThreads bounds the threads read of a process, at 10 to 20 us each.
const MaxThreads = 4096

const (
	tick      = 10 * time.Millisecond // USER_HZ is 100 on every machine that memfit runs on
	maxTicks  = 1 << 36               // 21 years
	maxName   = 15                    // of a thread, by the kernel
	fieldUser = 14                    // of /proc/PID/stat; the time in the kernel is the next
)

var errThreads = fmt.Errorf("the process has more than %d threads", MaxThreads)

// TimesOf reads the processor times of a process and its threads. It omits threads that end meanwhile.
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

// readTime reads the name and the processor time of a process or thread from its stat.
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
