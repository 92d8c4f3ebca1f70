// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/detect"
	"github.com/memfit/memfit/internal/levers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/internal/procmem/live"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
)

// program is a process that runs a program: what runs in it stays the same until it executes another one.
type program struct {
	pid   int
	start uint64
	exe   string
}

// knownMost programs are remembered: a large program is looked through for marks, and each replica's is the same again.
const knownMost = 1024

// runs is what runs in a process.
type runs struct {
	*v1alpha1.InspectedRuntime

	settings []string // of memory, that it was started with
}

// heapTurn is the size at which its settings have its heap collected; 0: not known. limit is that of the container.
func (r *runs) heapTurn(limit memory.Bytes) memory.Bytes {
	return runtimes.Lookup(r.Type).HeapTurn(r.settings, limit)
}

// runtimeOf returns what runs in a process, or nil where its files show nothing or could not be read. It remembers what
// it found in files that could all be read: the next inspection may read others.
func (e *inspector) runtimeOf(
	ctx context.Context, namespace string, target *live.Target, s *attribution.Snapshot,
) *runs {
	which := program{s.Process.PID, s.Process.StartTime, s.Process.Exe}
	if known := e.known[which]; known != nil {
		return known
	}
	f, err := e.detected(ctx, namespace, target, s)
	if ctx.Err() != nil {
		return nil
	}
	if f != nil && err == nil {
		if len(e.known) >= knownMost {
			clear(e.known)
		}
		e.known[which] = f
	}
	return f
}

// detected reads the files of a process, until ctx ends. Those that a process of the same namespace runs with were read
// before: a replica, or the last container. An error means that something could not be read.
func (e *inspector) detected(
	ctx context.Context, namespace string, target *live.Target, s *attribution.Snapshot,
) (*runs, error) {
	argv, failed := e.argv(target.Dir())
	facts, err := e.files.Gather(namespace, detect.Process{
		Program: s.Process.Exe, Mappings: s.Mappings, Env: s.Env, Argv: argv,
	}, func(path string) (procmem.File, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		file, err := target.OpenFile(path)
		if err != nil {
			return nil, err
		}
		return timed{file, ctx}, nil
	})
	result := detect.Detect(facts)
	f := &runs{InspectedRuntime: found(result, e.cgroups)}
	if f.InspectedRuntime == nil {
		return nil, errors.Join(failed, err)
	}
	names := slices.Sorted(maps.Keys(s.Env))
	f.Variables = names[:min(len(names), variablesMost)]
	for _, flag := range result.Flags {
		f.settings = append(f.settings, flag.Text)
	}
	return f, errors.Join(failed, err)
}

// timed is a file that is read until a context ends.
type timed struct {
	procmem.File

	ctx context.Context //nolint:containedctx // detect reads files and knows no context
}

// ReadAt implements [procmem.File].
func (t timed) ReadAt(p []byte, at int64) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	return t.File.ReadAt(p, at)
}

// argvMost is how much of a command line is read. Memory settings come before the program's own arguments.
const argvMost = 64 << 10

// argv are the words of a command line that concern memory. The others may be passwords: what was read is overwritten.
func (e *inspector) argv(dir *live.Dir) ([]string, error) {
	f, err := dir.Open("cmdline")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if e.cmdline == nil {
		e.cmdline = make([]byte, argvMost)
	}
	defer clear(e.cmdline)
	n, err := io.ReadFull(f, e.cmdline)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return detect.Words(e.cmdline[:n]), nil
}

// Bounds of the API.
const (
	evidenceMost = 8
	flagsMost    = 16
	sentenceMost = 256
	wordMost     = 64
	// variablesMost is all that memfit knows of, and some more.
	variablesMost = 32
)

// found is what was detected, as the API has it.
func found(r detect.Result, v cgroup.Version) *v1alpha1.InspectedRuntime {
	if r.Runtime == "" {
		return nil
	}
	out := &v1alpha1.InspectedRuntime{
		Type: r.Runtime, Version: quote.Cut(r.Version, wordMost),
		HeapSet:   r.HeapSet,
		Libc:      quote.Cut(strings.TrimSpace(r.Libc+" "+r.LibcVersion), wordMost),
		Allocator: quote.Cut(r.Allocator, wordMost),
	}
	if out.Allocator == "" {
		out.Allocator = r.Libc
	}
	if r.SeesLimit != nil {
		sees := v == cgroup.V1 && r.SeesLimit.V1 || v == cgroup.V2 && r.SeesLimit.V2
		out.ContainerAware = map[bool]string{true: "Yes", false: "No"}[sees]
	}
	for _, flag := range r.Flags[:min(len(r.Flags), flagsMost)] {
		out.Flags = append(out.Flags, quote.Cut(flag.Text+" ("+flag.From+")", sentenceMost))
	}
	for _, evidence := range r.Evidence[:min(len(r.Evidence), evidenceMost)] {
		out.Evidence = append(out.Evidence, quote.Cut(evidence, sentenceMost))
	}
	return out
}

// withHeap is what runs in a process with the largest heap that it allows itself.
func withHeap(f *v1alpha1.InspectedRuntime, usages []amounts.Usage) *v1alpha1.InspectedRuntime {
	if f == nil {
		return nil
	}
	most := levers.MaxHeap(f.Type, usages)
	if most == 0 {
		return f
	}
	f = f.DeepCopy() // what was detected is kept for the process's life
	f.MaxHeap = new(most.Quantity())
	for i := range usages {
		if computed, known := usages[i].Details[amounts.HeapByMemory]; known { // the JVM's word, whatever its options are
			f.HeapSet = computed == 0
		}
	}
	return f
}
