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

// groupOf returns the API's group of a kind. Class archives are Files, because the kernel can read them again from
// disk; compiled code and collector tables are Native, because it cannot.
func groupOf(k attribution.Kind) v1alpha1.PartGroup {
	switch k { //nolint:exhaustive // the others are native
	case attribution.Kernel, attribution.Files, attribution.JVMCDS:
		return v1alpha1.PartFiles
	case attribution.Shmem, attribution.HugeTLB:
		return v1alpha1.PartShared
	case attribution.JVMHeap, attribution.V8Page, attribution.GoHeap, attribution.PyArena, attribution.RubyPage,
		ruby.Transient:
		return v1alpha1.PartHeap
	}
	return v1alpha1.PartNative
}

// mayHaveFree reports whether the free memory that a reader reports may be in memory of this kind.
func mayHaveFree(k attribution.Kind) bool {
	return k == attribution.Arena || groupOf(k) == v1alpha1.PartHeap && k != ruby.Transient
}

// partSum is a part of a container's memory.
type partSum struct {
	group          v1alpha1.PartGroup
	resident, free memory.Bytes
}

func (p *partSum) add(resident, free memory.Bytes) {
	p.resident, p.free = p.resident.Plus(resident), p.free.Plus(free)
}

func (p *partSum) api(kind attribution.Kind) v1alpha1.MemoryPart {
	return v1alpha1.MemoryPart{
		Name: string(kind), Group: p.group, Resident: p.resident.Quantity(), Free: format.Exact(min(p.free, p.resident)),
	}
}

// part returns the part of a kind, and adds it if it is missing.
func (s *sum) part(k attribution.Kind) *partSum {
	if s.byKind[k] == nil {
		s.byKind[k] = &partSum{group: groupOf(k)}
	}
	return s.byKind[k]
}

// whereFree returns the kind to which a reader's free memory is assigned: the largest that may have free memory.
func whereFree(r *attribution.Result, reader string) (kind attribution.Kind, found bool) {
	sizes := map[attribution.Kind]memory.Bytes{}
	for i := range r.Regions {
		one := &r.Regions[i]
		if one.Owner != reader || !mayHaveFree(one.Kind) {
			continue
		}
		sizes[one.Kind] = sizes[one.Kind].Plus(one.RSS)
		if !found || sizes[one.Kind] > sizes[kind] {
			kind, found = one.Kind, true
		}
	}
	return kind, found
}
