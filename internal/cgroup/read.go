// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Reading has the kernel's counters of a cgroup and all below it, and the limits of the cgroup.
type Reading struct {
	Usage  memory.Bytes // charged against Limit, page cache included
	Limit  memory.Bytes // Unlimited if absent
	High   memory.Bytes // memory.high, above which the kernel slows tasks down (v2); Unlimited if absent
	Anon   memory.Bytes
	File   memory.Bytes // reclaimable page cache: files without shared memory
	Swap   memory.Bytes
	Faults uint64 // major faults: pages that were read from disk
	Events
	// UnderOOM is true if tasks are waiting for memory with nothing left to reclaim (v1).
	UnderOOM bool
	// Waited is the total time in which all tasks waited for memory (PSI full); nil on v1 and without PSI.
	Waited *time.Duration
}

// Events has the kernel's counters of OOM events in a cgroup and all below it.
type Events struct {
	Kills uint64 // OOM-killed processes, also for lack of memory on the node; see [Reading.event]
	// LimitFailures counts the allocations that failed at a limit of these cgroups. The kernel then selects a victim in
	// them; one kill may follow any number of failures. Known is false on version 1, where LimitFailures is unknown.
	LimitFailures uint64
	Known         bool
}

// Demand returns the memory that the kernel cannot reclaim: usage without page cache, plus swap. cAdvisor's series give
// the same number ([memory.Sample.Demand]), on version 1 and 2. The sum of anon, shmem, kernel and sock in memory.stat
// is a little less, because the kernel charges memory in batches.
func (r *Reading) Demand() memory.Bytes { return r.Usage.Minus(r.File).Plus(r.Swap) }

// Gauge reads a cgroup several times a second. It keeps the files of usage and limit open if the file system is a
// [FileKeeper], because opening and closing is most of the cost.
type Gauge struct {
	tree         *Tree
	dir          string
	usage, limit io.ReadCloser // nil: the file is opened for each reading
}

// Gauge returns the Gauge of a cgroup. The caller must close it.
func (t *Tree) Gauge(dir string) Gauge {
	g := Gauge{tree: t, dir: dir}
	if keeper, ok := t.fsys.(FileKeeper); ok { // after an error, each reading opens the file
		g.usage, _ = keeper.Keep(path.Join(dir, t.usageFile()))
		g.limit, _ = keeper.Keep(path.Join(dir, t.limitFile()))
	}
	return g
}

// Usage reads only the usage, for containers far below their limit.
func (g *Gauge) Usage() (memory.Bytes, error) { return g.tree.kept(g.usage, g.dir, g.tree.usageFile()) }

// Limit reads only the effective limit.
func (g *Gauge) Limit() (memory.Bytes, error) { return g.tree.kept(g.limit, g.dir, g.tree.limitFile()) }

// kept reads a file of one number: open, or if it is nil, file in dir.
func (t *Tree) kept(open io.Reader, dir, file string) (memory.Bytes, error) {
	if open == nil {
		return t.size(dir, file)
	}
	return t.number(open)
}

// Close closes the files. Later readings open them again.
func (g *Gauge) Close() {
	for _, open := range []*io.ReadCloser{&g.usage, &g.limit} {
		if *open != nil {
			_ = (*open).Close()
			*open = nil
		}
	}
}

// Usage reads only the usage of a cgroup.
func (t *Tree) Usage(dir string) (memory.Bytes, error) { return t.size(dir, t.usageFile()) }

// Limit reads only the effective limit of a cgroup.
func (t *Tree) Limit(dir string) (memory.Bytes, error) { return t.size(dir, t.limitFile()) }

func (t *Tree) usageFile() string { return t.pick("memory.usage_in_bytes", "memory.current") }

func (t *Tree) limitFile() string { return t.pick("memory.limit_in_bytes", "memory.max") }

// pick returns the value for the tree's version.
func (t *Tree) pick(v1, v2 string) string {
	if t.version == V1 {
		return v1
	}
	return v2
}

// Read reads all counters. After the cgroup was removed, the error is fs.ErrNotExist, or ENODEV for an open file.
func (g *Gauge) Read() (r Reading, err error) {
	t, dir := g.tree, g.dir
	if r.Usage, err = g.Usage(); err != nil {
		return r, err
	}
	if r.Limit, err = g.Limit(); err != nil {
		return r, err
	}
	stat, err := t.read(path.Join(dir, "memory.stat"))
	if err != nil {
		return r, err
	}
	all := []byte(t.pick("total_", "")) // v1: including the cgroups below
	parseFlat(stat, func(name []byte, value uint64) {
		if name, ok := bytes.CutPrefix(name, all); ok {
			r.stat(string(name), value)
		}
	})
	if err := t.events(dir, &r); err != nil {
		return r, err
	}
	if t.version == V2 {
		err = t.readV2(dir, &r)
		return r, err
	}
	r.High = Unlimited
	return r, nil
}

// stat handles a line of memory.stat of either version.
func (r *Reading) stat(name string, value uint64) {
	switch name {
	case "rss", "anon":
		r.Anon = size(value)
	case "active_file", "inactive_file":
		r.File = r.File.Plus(size(value))
	case "swap": // version 1
		r.Swap = size(value)
	case "pgmajfault":
		r.Faults = value
	}
}

// Events reads only the events of a cgroup. They are not Known on version 1, or if the file is unreadable.
func (t *Tree) Events(dir string) Events {
	var r Reading
	if t.version == V1 || t.events(dir, &r) != nil {
		return Events{}
	}
	return r.Events
}

func (t *Tree) events(dir string, r *Reading) error {
	text, err := t.read(path.Join(dir, t.pick("memory.oom_control", "memory.events")))
	if err == nil {
		parseFlat(text, func(name []byte, value uint64) { r.event(string(name), value) })
	}
	return err
}

// event handles a line of memory.oom_control or memory.events. For a group kill (memory.oom.group) v2 counts the victim
// twice in oom_kill, so callers only check whether the number rises.
func (r *Reading) event(name string, value uint64) {
	switch name {
	case "oom_kill":
		r.Kills = value
	case "oom": // version 2
		r.LimitFailures, r.Known = value, true
	case "under_oom":
		r.UnderOOM = value != 0
	}
}

// readV2 reads the files that only v2 has.
func (t *Tree) readV2(dir string, r *Reading) (err error) {
	if r.High, err = t.size(dir, "memory.high"); err != nil {
		return err
	}
	if swapped, err := t.size(dir, "memory.swap.current"); err == nil { // absent without swap accounting
		r.Swap = swapped
	}
	if text, err := t.read(path.Join(dir, "memory.pressure")); err == nil { // absent or an error without PSI
		if waited, ok := parsePressure(text); ok {
			r.Waited = &waited
		}
	}
	return nil
}

const (
	// maxProcesses bounds the PIDs returned for one cgroup.
	maxProcesses = 4096
	// Bounds of nested cgroups. A container with systemd or a container runtime has tens; a process may create any number.
	maxNested   = 256
	nestedDepth = 16
)

// Processes returns the PIDs in a cgroup and below, in the agent's PID namespace. all is false if there may be more.
func (t *Tree) Processes(dir string) (pids []int, all bool, err error) {
	text, err := t.read(path.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, false, err
	}
	p := processes{tree: t, all: true, cgroups: maxNested}
	p.add(text)
	own := len(p.pids)
	p.below(dir, nestedDepth)
	if len(p.pids) > own { // version 1 lists a process with threads in two cgroups twice
		slices.Sort(p.pids)
		p.pids = slices.Compact(p.pids)
	}
	return p.pids, p.all, nil
}

// processes collects PIDs from several cgroups.
type processes struct {
	tree    *Tree
	pids    []int
	all     bool // pids are complete
	cgroups int  // left to read
}

func (p *processes) add(text []byte) {
	more, all := parsePIDs(text, maxProcesses-len(p.pids))
	p.pids, p.all = append(p.pids, more...), p.all && all && len(text) < maxFile
}

// below adds the processes of the cgroups below dir. It skips removed cgroups, and threaded ones (v2), whose processes
// are listed in the cgroup above.
func (p *processes) below(dir string, depth int) {
	if l, ok := p.tree.fsys.(LeafChecker); ok && l.Leaf(dir) {
		return // the usual case; saves listing some sixty files
	}
	names, err := p.tree.children(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		if p.cgroups == 0 || depth == 0 {
			p.all = false
			return
		}
		p.cgroups--
		child := path.Join(dir, name)
		if text, err := p.tree.read(path.Join(child, "cgroup.procs")); err == nil {
			p.add(text)
		}
		p.below(child, depth-1)
	}
}

func (t *Tree) size(dir, file string) (memory.Bytes, error) {
	f, err := t.fsys.Open(path.Join(dir, file))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return t.number(f)
}

var errNumber = errors.New("a cgroup file does not contain a number")

// number reads a file of one number with one system call.
func (t *Tree) number(f io.Reader) (memory.Bytes, error) {
	n, err := f.Read(t.buffer)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	size, ok := parseSize(t.buffer[:n])
	if !ok {
		return 0, errNumber
	}
	return size, nil
}
