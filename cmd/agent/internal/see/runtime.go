// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"cmp"
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

// program identifies a process and its executable: its runtime is constant until the next exec.
type program struct {
	pid   int
	start uint64
	exe   string
}

// maxKnown bounds the cached runtimes. The cache exists because searching a large program is expensive.
const maxKnown = 1024

// processRuntime is the runtime of a process.
type processRuntime struct {
	*v1alpha1.InspectedRuntime

	settings []string // memory settings with which it started
}

// collectAt returns the heap size at which the settings trigger a collection; 0: unknown. limit is the container's.
func (r *processRuntime) collectAt(limit memory.Bytes) memory.Bytes {
	return runtimes.Lookup(r.Type).CollectAt(r.settings, limit)
}

// runtimeOf returns the runtime of a process; nil: unknown, or its files could not be read. It caches results only if
// all files were readable, because the next inspection may read more.
func (e *inspector) runtimeOf(
	ctx context.Context, namespace string, target *live.Target, s *attribution.Snapshot,
) *processRuntime {
	which := program{s.Process.PID, s.Process.StartTime, s.Process.Exe}
	if known := e.known[which]; known != nil {
		return known
	}
	f, err := e.detected(ctx, namespace, target, s)
	if ctx.Err() != nil {
		return nil
	}
	if f != nil && err == nil {
		if len(e.known) >= maxKnown {
			clear(e.known)
		}
		e.known[which] = f
	}
	return f
}

// detected detects the runtime of a process from its files, until ctx ends. Facts about files that another process of
// the same namespace uses come from the cache. An error means that a file could not be read.
func (e *inspector) detected(
	ctx context.Context, namespace string, target *live.Target, s *attribution.Snapshot,
) (*processRuntime, error) {
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
	f := &processRuntime{InspectedRuntime: found(result, e.cgroups)}
	if f.InspectedRuntime == nil {
		return nil, errors.Join(failed, err)
	}
	names := slices.Sorted(maps.Keys(s.Env))
	f.Variables = names[:min(len(names), maxVariables)]
	for _, flag := range result.Flags {
		f.settings = append(f.settings, flag.Text)
	}
	return f, errors.Join(failed, err)
}

// timed is a file whose reads fail once its context has ended.
type timed struct {
	procmem.File

	ctx context.Context //nolint:containedctx // detect reads files without a context
}

// ReadAt implements [procmem.File].
func (t timed) ReadAt(p []byte, at int64) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	return t.File.ReadAt(p, at)
}

// maxArgv bounds the part of a command line that is read. Memory settings come before the program's own arguments.
const maxArgv = 64 << 10

// argv returns the words of a command line that concern memory. Other words may be passwords, so the buffer is cleared.
func (e *inspector) argv(dir *live.Dir) ([]string, error) {
	f, err := dir.Open("cmdline")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if e.cmdline == nil {
		e.cmdline = make([]byte, maxArgv)
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
	maxEvidence = 8
	maxFlags    = 16
	maxSentence = 256
	maxWord     = 64
	// maxVariables exceeds the number of variables that memfit knows.
	maxVariables = 32
)

// found converts a detected runtime for the API; nil: unknown.
func found(r detect.Result, v cgroup.Version) *v1alpha1.InspectedRuntime {
	if r.Runtime == "" {
		return nil
	}
	out := &v1alpha1.InspectedRuntime{
		Type: r.Runtime, Version: quote.Cut(r.Version, maxWord), HeapSet: r.HeapSet,
		Libc:      quote.Cut(strings.TrimSpace(r.Libc+" "+r.LibcVersion), maxWord),
		Allocator: cmp.Or(quote.Cut(r.Allocator, maxWord), r.Libc),
	}
	if r.DetectsLimit != nil {
		sees := v == cgroup.V1 && r.DetectsLimit.V1 || v == cgroup.V2 && r.DetectsLimit.V2
		out.ContainerAware = map[bool]string{true: "Yes", false: "No"}[sees]
	}
	for _, flag := range r.Flags[:min(len(r.Flags), maxFlags)] {
		out.Flags = append(out.Flags, quote.Cut(flag.Text+" ("+flag.From+")", maxSentence))
	}
	for _, evidence := range r.Evidence[:min(len(r.Evidence), maxEvidence)] {
		out.Evidence = append(out.Evidence, quote.Cut(evidence, maxSentence))
	}
	return out
}

// withHeap adds the maximum heap of a process to its runtime.
func withHeap(f *v1alpha1.InspectedRuntime, usages []amounts.Usage) *v1alpha1.InspectedRuntime {
	if f == nil {
		return nil
	}
	most := levers.MaxHeap(f.Type, usages)
	if most == 0 {
		return f
	}
	f = f.DeepCopy() // the original is cached for the process's life
	f.MaxHeap = new(most.Quantity())
	for i := range usages {
		// the JVM's own value overrides its options
		if computed, known := usages[i].Details[amounts.HeapFollowsMemory]; known {
			f.HeapSet = computed == 0
		}
	}
	return f
}
