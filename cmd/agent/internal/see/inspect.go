// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memfit/memfit/cmd/agent/internal/scan"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/detect"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/internal/procmem/live"
)

// inspector inspects containers. It is not safe for concurrent use.
type inspector struct {
	proc    live.Proc
	cgroups cgroup.Version
	readers []attribution.Reader
	now     func() time.Time
	files   detect.Cache                // facts about programs and libraries, by Kubernetes namespace
	cmdline []byte                      // buffer for one command line
	known   map[program]*processRuntime // runtimes of processes that were inspected before
}

func newInspector(proc string, v cgroup.Version, readers []attribution.Reader, now func() time.Time) *inspector {
	return &inspector{proc: live.Proc(proc), cgroups: v, readers: readers, now: now, known: map[program]*processRuntime{}}
}

// maxProcesses limits the processes of a container that are inspected. For all others, only the resident memory is
// reported.
const maxProcesses = 32

// inspectContainer returns the summed memory of a container's processes. Memory that could not be read is unexplained.
func (e *inspector) inspectContainer(ctx context.Context, j scan.Inspection) scan.Finding {
	ctx, cancel := context.WithTimeout(ctx, maxInspection)
	defer cancel()
	sum := newSum(j)
	var failed error
	for i, pid := range e.largestFirst(j) {
		err := errManyProcesses
		if i < maxProcesses {
			err = e.process(ctx, j, pid, sum)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = errSlow
		}
		if err == nil || errors.Is(err, procmem.ErrGone) {
			continue
		}
		if resident := e.resident(j.Container, pid); resident > 0 {
			sum.unread(resident)
			if failed == nil { // the others usually fail like the first
				failed = err
			}
		}
	}
	if sum.processes == sum.missed {
		return scan.Finding{Err: errors.Join(errNoProcess, failed)}
	}
	finding := scan.Finding{
		Memory: sum.parts(e.now()), Runtime: sum.runtime, CollectAt: sum.collectAt, Unread: sum.why(failed),
	}
	if j.WithMap {
		finding.Map = drawn(sum.pages, sum.missing, e.now())
	}
	return finding
}

var (
	errNoProcess     = errors.New("none of its processes could be read")
	errSlow          = fmt.Errorf("the inspection was stopped after %s; the node may be busy", maxInspection)
	errManyProcesses = fmt.Errorf("only the %d largest processes are inspected", maxProcesses)
)

// largestFirst returns the processes of a container by resident memory, the largest first.
func (e *inspector) largestFirst(j scan.Inspection) []int {
	resident := make(map[int]memory.Bytes, len(j.PIDs))
	for _, pid := range j.PIDs {
		resident[pid] = e.resident(j.Container, pid)
	}
	pids := slices.Clone(j.PIDs)
	slices.SortStableFunc(pids, func(a, b int) int { return cmp.Compare(resident[b], resident[a]) })
	return pids
}

// open opens the directory of a process of a container. The error matches [procmem.ErrGone] if it has ended.
func (e *inspector) open(container string, pid int) (*live.Dir, error) {
	dir, err := e.proc.Process(pid)
	if err != nil {
		return nil, err
	}
	if !scan.Holds(container, pid, dir) {
		_ = dir.Close()
		return nil, procmem.ErrGone
	}
	return dir, nil
}

// resident reads the resident memory of a process; 0: unreadable, usually because it has ended.
func (e *inspector) resident(container string, pid int) memory.Bytes {
	dir, err := e.open(container, pid)
	if err != nil {
		return 0
	}
	defer func() { _ = dir.Close() }()
	status, err := procmem.StatusOf(dir)
	if err != nil {
		return 0
	}
	return status.RSS
}

// process adds one process to the sum. The first call is for the largest process, and sets the container's runtime; the
// container's process 1 is often a shell.
func (e *inspector) process(ctx context.Context, j scan.Inspection, pid int, sum *sum) error {
	if err := ctx.Err(); err != nil { // opening and listing mappings also take time
		return err
	}
	dir, err := e.open(j.Container, pid)
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	target, err := dir.Target(pid)
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	defer target.Close()
	s, err := attribution.Take(target, detect.Variables())
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	defer s.Close()
	s.Locate = j.WithMap
	result, err := attribution.Attribute(ctx, s, e.readers)
	if err != nil {
		return fmt.Errorf("attributing: %w", err)
	}
	sum.add(&result, s)
	if j.WithMap {
		sum.pages = append(sum.pages, pages(&result, s, int32(sum.processes))...) //nolint:gosec // thousands at most
	}
	if sum.processes == 1 {
		sum.exe = s.Process.Exe
		if found := e.runtimeOf(ctx, j.Namespace, target, s); found != nil {
			sum.runtime = withHeap(found.InspectedRuntime, result.Usages)
			sum.collectAt = found.collectAt(j.Limit)
		}
	}
	return nil
}
