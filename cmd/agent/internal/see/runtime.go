// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package see

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/detect"
	"github.com/memfit/memfit/internal/levers"
	"github.com/memfit/memfit/internal/procmem/live"
)

// program is a process that runs a program: what runs in it stays the same until it executes another one.
type program struct {
	pid   int
	start uint64
	exe   string
}

// knownMost programs are remembered: a large program is looked through for marks, and each replica's is the same again.
const knownMost = 1024

// runtimeOf says what runs in a process, or nil where its files show nothing.
func (e *Explainer) runtimeOf(namespace string, target *live.Target, s *attribution.Snapshot) *v1alpha1.RuntimeFound {
	which := program{s.Process.PID, s.Process.StartTime, s.Process.Exe}
	if known, ok := e.known[which]; ok {
		return known
	}
	if len(e.known) >= knownMost {
		clear(e.known)
	}
	r := e.detected(namespace, target, s)
	e.known[which] = r
	return r
}

// detected looks into the files of a process. Those that a process of the same namespace runs with were looked into
// before: a replica, or the container before this one.
func (e *Explainer) detected(namespace string, target *live.Target, s *attribution.Snapshot) *v1alpha1.RuntimeFound {
	env, err := target.Environ(detect.Variables())
	if err != nil {
		return nil
	}
	process := detect.Process{
		Program: s.Process.Exe, Mappings: s.Mappings, Env: env, Argv: e.argv(s.Process.PID),
	}
	f := found(detect.Detect(e.files.Gather(namespace, process, target.OpenFile)), e.cgroups)
	if f != nil {
		names := slices.Sorted(maps.Keys(env))
		f.Variables = names[:min(len(names), variablesMost)]
	}
	return f
}

// argvMost is how much of a command line is read. Settings of memory stand in front of the program's own arguments.
const argvMost = 64 << 10

// argv are the words of a command line that speak of memory. The others may be passwords: what was read is overwritten.
func (e *Explainer) argv(pid int) []string {
	f, err := os.Open(filepath.Join(e.proc, strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	if e.cmdline == nil {
		e.cmdline = make([]byte, argvMost)
	}
	defer clear(e.cmdline)
	n, err := io.ReadFull(f, e.cmdline)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return detect.Words(e.cmdline[:n])
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
func found(r detect.Result, v cgroup.Version) *v1alpha1.RuntimeFound {
	if r.Runtime == "" {
		return nil
	}
	out := &v1alpha1.RuntimeFound{
		Type: r.Runtime, Version: cut(r.Version, wordMost),
		HeapSet: r.HeapSet,
		Libc:    cut(strings.TrimSpace(r.Libc+" "+r.LibcVersion), wordMost), Allocator: cut(r.Allocator, wordMost),
	}
	if out.Allocator == "" {
		out.Allocator = r.Libc
	}
	if r.SeesLimit != nil {
		sees := v == cgroup.V1 && r.SeesLimit.V1 || v == cgroup.V2 && r.SeesLimit.V2
		out.ContainerAware = map[bool]string{true: "Yes", false: "No"}[sees]
	}
	for _, flag := range r.Flags[:min(len(r.Flags), flagsMost)] {
		out.Flags = append(out.Flags, cut(flag.Text+" ("+flag.From+")", sentenceMost))
	}
	for _, evidence := range r.Evidence[:min(len(r.Evidence), evidenceMost)] {
		out.Evidence = append(out.Evidence, cut(evidence, sentenceMost))
	}
	return out
}

func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// withHeap is what runs in a process with the largest heap that it allows itself.
func withHeap(f *v1alpha1.RuntimeFound, usages []attribution.Usage) *v1alpha1.RuntimeFound {
	if f == nil {
		return nil
	}
	if most := levers.MaxHeap(f.Type, usages); most > 0 {
		f = f.DeepCopy() // what was detected is kept for the process's life
		f.MaxHeap = new(most.Quantity())
	}
	return f
}
