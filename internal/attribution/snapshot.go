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
	// Owner is the name of the reader that claimed it, or "" for a rule.
	Owner string
}

// Reader knows the memory of one allocator or runtime.
type Reader interface {
	// Name is a constant such as "glibc".
	Name() string
	// Detect reports cheaply, by names and mappings, whether to call Claim.
	Detect(*Snapshot) bool
	// Claim returns its regions and their contents. Of a partial result, Usage.Coverage is below 1.
	Claim(context.Context, *Snapshot) ([]Region, amounts.Usage, error)
}

// Source is a readable process; procmem/live has running ones.
type Source interface {
	procmem.Memory
	Process() procmem.Process
	Mappings() ([]procmem.Mapping, error)
	Environ(names []string) (map[string]string, error)
	// OpenFile opens a path as the process sees it. The file is untrusted input.
	OpenFile(path string) (procmem.File, error)
	Times() (procmem.Times, error)
	// Same returns an error if the PID belongs to another process by now.
	Same() error
}

// Take reads mappings and the environment variables of these names. Others may be secrets and are skipped.
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

// Snapshot is a process at one moment, with access to its present memory.
type Snapshot struct {
	Process procmem.Process
	// Mappings are in ascending order and do not overlap.
	Mappings []procmem.Mapping
	Memory   procmem.Memory
	// OpenFile, Times and Same come from the [Source].
	OpenFile func(path string) (procmem.File, error)
	Times    func() (procmem.Times, error)
	Same     func() error
	// Env are the environment variables that readers may read, as of the start.
	Env map[string]string
	// Locate makes readers fill [Result.Free], which takes more memory than amounts alone.
	Locate bool

	free []procmem.Run // of the current reader

	modules map[string]*Module
	files   map[string]procmem.File // open files; nil: cannot be opened
}

// MaxFree bounds the free ranges of a process: 4 MiB of them.
const MaxFree = 1 << 18

// Free records a free range, if [Snapshot.Locate] is set. Readers report whole pages, resident or not.
func (s *Snapshot) Free(start, end uint64) {
	if s.Locate && start < end && len(s.free) < MaxFree {
		s.free = append(s.free, procmem.Run{Start: start, Length: end - start})
	}
}

// MappingOf returns the mapping of an address, or nil.
func (s *Snapshot) MappingOf(addr uint64) *procmem.Mapping {
	i := sort.Search(len(s.Mappings), func(i int) bool { return s.Mappings[i].End > addr })
	if i < len(s.Mappings) && s.Mappings[i].Contains(addr) {
		return &s.Mappings[i]
	}
	return nil
}
