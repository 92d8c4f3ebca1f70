// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/ruby"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// part is the name for users of some kinds of regions.
type part struct {
	name  string
	group v1alpha1.PartGroup
	// frees: the free memory that the kind's reader reports is in this kind, and not in its other kinds.
	frees bool
}

// The groups are those of the API. Archived classes and code of files can be read again from disk; compiled code and
// the tables of a collector cannot.
var parts = map[attribution.Kind]part{
	attribution.Kernel:      {"kernel", v1alpha1.PartFiles, false},
	attribution.Named:       {"named memory", v1alpha1.PartNative, false},
	attribution.MainStack:   {"thread stacks", v1alpha1.PartNative, false},
	attribution.ThreadStack: {"thread stacks", v1alpha1.PartNative, false},
	attribution.Shmem:       {"shared memory", v1alpha1.PartShared, false},
	attribution.HugeTLB:     {"huge pages", v1alpha1.PartShared, false},
	attribution.Text:        {"program and libraries", v1alpha1.PartFiles, false},
	attribution.ReadOnly:    {"program and libraries", v1alpha1.PartFiles, false},
	attribution.Data:        {"variables", v1alpha1.PartNative, false},
	attribution.BSS:         {"variables", v1alpha1.PartNative, false},
	attribution.JIT:         {"compiled code", v1alpha1.PartNative, false},
	attribution.BrkHeap:     {"heap of an unknown allocator", v1alpha1.PartNative, false},
	attribution.Arena:       {v1alpha1.PartArenas, v1alpha1.PartNative, true},
	attribution.GlibcBrk:    {v1alpha1.PartArenas, v1alpha1.PartNative, true}, // the main arena is one of them
	attribution.GlibcMmap:   {"glibc large blocks", v1alpha1.PartNative, false},
	attribution.JVMHeap:     {"Java heap", v1alpha1.PartHeap, true},
	attribution.JVMCode:     {"JVM code cache", v1alpha1.PartNative, false},
	attribution.JVMCDS:      {"JVM class archive", v1alpha1.PartFiles, false},
	attribution.JVMClass:    {"JVM class space", v1alpha1.PartNative, false},
	attribution.JVMOther:    {"JVM metaspace and tables", v1alpha1.PartNative, false},
	attribution.V8Page:      {"V8 heap", v1alpha1.PartHeap, true},
	attribution.V8Code:      {"V8 code", v1alpha1.PartNative, false},
	attribution.GoHeap:      {"Go heap", v1alpha1.PartHeap, true},
	attribution.GoMeta:      {"Go runtime", v1alpha1.PartNative, false},
	attribution.PyArena:     {"Python objects", v1alpha1.PartHeap, true},
	attribution.RubyPage:    {"Ruby heap", v1alpha1.PartHeap, true},
	ruby.Transient:          {"Ruby transient heap", v1alpha1.PartHeap, false},
}

// partOf returns the part of a kind; an unknown kind keeps its own name.
func partOf(k attribution.Kind) part {
	if p, ok := parts[k]; ok {
		return p
	}
	return part{name: string(k), group: v1alpha1.PartNative}
}

// partSum is a part of a container's memory.
type partSum struct {
	group          v1alpha1.PartGroup
	resident, free memory.Bytes
}

func (p *partSum) add(resident, free memory.Bytes) {
	p.resident, p.free = p.resident.Plus(resident), p.free.Plus(free)
}

func (p *partSum) api(name string) v1alpha1.MemoryPart {
	return v1alpha1.MemoryPart{
		Name: name, Group: p.group, Resident: p.resident.Quantity(), Free: format.Exact(min(p.free, p.resident)),
	}
}

// part returns the part of a kind.
func (s *sum) part(k attribution.Kind) *partSum {
	p := partOf(k)
	if s.byName[p.name] == nil {
		s.byName[p.name] = &partSum{group: p.group}
	}
	return s.byName[p.name]
}

// whereFree returns the kind that gets a reader's free memory, the largest that can have any, because a reader reports
// one sum over its regions.
func whereFree(r *attribution.Result, reader string) (kind attribution.Kind, found bool) {
	sizes := map[attribution.Kind]memory.Bytes{}
	for i := range r.Regions {
		one := &r.Regions[i]
		if one.Owner != reader || !partOf(one.Kind).frees {
			continue
		}
		sizes[one.Kind] = sizes[one.Kind].Plus(one.RSS)
		if !found || sizes[one.Kind] > sizes[kind] {
			kind, found = one.Kind, true
		}
	}
	return kind, found
}
