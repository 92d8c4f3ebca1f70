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
	// Detect reports cheaply, from names and mappings, whether Claim is worth its reads.
	Detect(*Snapshot) bool
	// Claim returns the regions that are its own and what is in them. An error means that nothing is known; what is only
	// partly understood is Usage.Coverage below 1.
	Claim(context.Context, *Snapshot) ([]Region, amounts.Usage, error)
}

// Source is a process that can be read; procmem/live has the running ones.
type Source interface {
	procmem.Memory
	Process() procmem.Process
	Mappings() ([]procmem.Mapping, error)
	// Environ returns the variables of these names.
	Environ(names []string) (map[string]string, error)
	// OpenFile opens a path as the process sees it. Whoever runs the process wrote the file.
	OpenFile(path string) (procmem.File, error)
	// Times returns its processor time.
	Times() (procmem.Times, error)
	// Same returns an error where the number of the process belongs to another one by now.
	Same() error
}

// Take reads mappings and the environment variables of these names. Every other one may be a secret, and is skipped
// where the environment is read.
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
	// OpenFile opens a path as the process sees it.
	OpenFile func(path string) (procmem.File, error)
	// Times returns the processor time of the process.
	Times func() (procmem.Times, error)
	// Env are variables that the process was started with, as far as readers may read them.
	Env map[string]string
	// Same returns an error where the process has ended since, so that what was read may be another's.
	Same func() error
	// Locate asks readers where their free memory lies, for [Result.Free]: it takes more memory than amounts alone.
	Locate bool

	free []procmem.Run // of the reader that is asked

	modules map[string]*Module
	files   map[string]procmem.File // that are open; nil: it cannot be opened
}

// MaxFree is how many ranges of free memory of a process are kept: 4 MiB of them.
const MaxFree = 1 << 18

// Free records a range that holds nothing, if [Snapshot.Locate] is set. Readers report whole pages, resident or not.
func (s *Snapshot) Free(start, end uint64) {
	if s.Locate && start < end && len(s.free) < MaxFree {
		s.free = append(s.free, procmem.Run{Start: start, Length: end - start})
	}
}

// MappingOf returns the mapping that an address lies in, or nil.
func (s *Snapshot) MappingOf(addr uint64) *procmem.Mapping {
	i := sort.Search(len(s.Mappings), func(i int) bool { return s.Mappings[i].End > addr })
	if i < len(s.Mappings) && s.Mappings[i].Contains(addr) {
		return &s.Mappings[i]
	}
	return nil
}
