// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"sort"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// Region is a range of addresses with one purpose.
type Region struct {
	Start, End uint64
	Kind       Kind
	// RSS is filled by [Attribute]; readers leave it empty.
	RSS memory.Bytes
	// Owner is the name of the reader that claimed the region; "" if a rule classified it.
	Owner string
}

// Reader finds the memory of one allocator or runtime.
type Reader interface {
	// Name is a constant such as "glibc".
	Name() string
	// Detect reports whether to call Claim. It inspects mappings and files, not the memory of the process.
	Detect(*Snapshot) bool
	// Claim returns the regions of the allocator or runtime, and their contents. Coverage below 1 marks a partial result.
	Claim(context.Context, *Snapshot) ([]Region, amounts.Usage, error)
}

// Source reads a process. Package procmem/live implements it for running processes.
type Source interface {
	procmem.Memory
	Process() procmem.Process
	Mappings() ([]procmem.Mapping, error)
	Environ(names []string) (map[string]string, error)
	// OpenFile opens a path as the process sees it. The file is untrusted input.
	OpenFile(path string) (procmem.File, error)
	Times() (procmem.Times, error)
	// Same returns an error if the process has ended.
	Same() error
}

// Take returns a Snapshot with the current mappings and the named variables. Others may be secrets and are skipped.
func Take(from Source, variables []string) (*Snapshot, error) {
	mappings, err := from.Mappings()
	if err != nil {
		return nil, err
	}
	env, err := from.Environ(variables)
	if err != nil {
		return nil, err
	}
	return &Snapshot{
		Process: from.Process(), Mappings: mappings, Memory: from, OpenFile: from.OpenFile, Env: env,
		Times: from.Times, Same: from.Same,
	}, nil
}

// Snapshot has the mappings of a process at one moment, and access to its current memory.
type Snapshot struct {
	Process procmem.Process
	// Mappings are in ascending order and do not overlap.
	Mappings []procmem.Mapping
	Memory   procmem.Memory
	// OpenFile, Times and Same come from the [Source].
	OpenFile func(path string) (procmem.File, error)
	Times    func() (procmem.Times, error)
	Same     func() error
	// Env has the environment variables that readers may read, as set when the program started.
	Env map[string]string
	// Locate makes readers fill [Result.Free], which takes more memory than amounts alone.
	Locate bool

	free []procmem.Run // reported by the current reader

	modules map[string]*Module
	files   map[string]procmem.File // open files by path; nil if opening failed
}

// MaxFree bounds the free ranges that one reader reports. They take at most 4 MiB.
const MaxFree = 1 << 18

// Free records a free range, if [Snapshot.Locate] is set. Readers report whole pages, resident or not.
func (s *Snapshot) Free(start, end uint64) {
	if s.Locate && start < end && len(s.free) < MaxFree {
		s.free = append(s.free, procmem.Run{Start: start, Length: end - start})
	}
}

// MappingOf returns the mapping that contains an address, or nil.
func (s *Snapshot) MappingOf(addr uint64) *procmem.Mapping {
	i := sort.Search(len(s.Mappings), func(i int) bool { return s.Mappings[i].End > addr })
	if i < len(s.Mappings) && s.Mappings[i].Contains(addr) {
		return &s.Mappings[i]
	}
	return nil
}
