// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"errors"
	"io"
	"path"
	"strings"

	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/internal/procmem/elffile"
)

// ErrNoModule means that the process has no such file mapped, or that the file is not a readable ELF file.
var ErrNoModule = errors.New("no readable ELF file of this name is mapped")

// Module is a program or library that the process has mapped.
type Module struct {
	Bias uint64        // address in the process minus address in the file
	ELF  *elffile.File // its headers and symbols
}

// Symbol returns the address in the process of an exported symbol (.dynsym).
func (m *Module) Symbol(name string) (uint64, error) {
	s, err := m.ELF.Symbol(name)
	return m.Bias + s.Value, err
}

// mapped returns the path of the first mapped file whose base name starts with prefix, or "".
func (s *Snapshot) mapped(prefix string) string {
	for i := range s.Mappings {
		m := &s.Mappings[i]
		if m.Inode != 0 && strings.HasPrefix(path.Base(m.Path), prefix) {
			return m.Path
		}
	}
	return ""
}

// HasFile reports whether the process has a file mapped whose base name starts with prefix.
func (s *Snapshot) HasFile(prefix string) bool { return s.mapped(prefix) != "" }

// Module opens the first mapped file whose base name starts with a prefix.
func (s *Snapshot) Module(prefix string) (*Module, error) { return s.open(s.mapped(prefix)) }

// Exe opens the program itself.
func (s *Snapshot) Exe() (*Module, error) { return s.open(s.Process.Exe) }

// Close closes the files that the Snapshot opened.
func (s *Snapshot) Close() {
	for _, file := range s.files {
		if file != nil {
			_ = file.Close()
		}
	}
	s.modules, s.files = nil, nil
}

// maxFiles bounds the open files of one Snapshot, usually three: the program, its C library and its runtime.
const maxFiles = 16

// File opens a mapped file, which remains open until [Snapshot.Close]. A failed open is not retried.
func (s *Snapshot) File(name string) (procmem.File, error) {
	file, known := s.files[name]
	if !known && len(s.files) < maxFiles {
		if s.files == nil {
			s.files = map[string]procmem.File{}
		}
		opened, err := s.OpenFile(name)
		if err == nil {
			file = opened
		}
		s.files[name] = file
	}
	if file == nil {
		return nil, ErrNoModule
	}
	return file, nil
}

func (s *Snapshot) open(name string) (*Module, error) {
	if m, known := s.modules[name]; known {
		return m, nil
	}
	var mappings []procmem.Mapping
	for i := range s.Mappings {
		if m := &s.Mappings[i]; name != "" && m.Path == name && m.Inode != 0 {
			mappings = append(mappings, *m)
		}
	}
	if len(mappings) == 0 {
		return nil, ErrNoModule
	}
	file, err := s.File(name)
	if err != nil {
		return nil, err
	}
	elf, err := elffile.Open(io.NewSectionReader(file, 0, file.Size()))
	if err != nil {
		return nil, errors.Join(ErrNoModule, err)
	}
	bias, err := biasOf(elf, mappings)
	if err != nil {
		return nil, errors.Join(ErrNoModule, err)
	}
	if s.modules == nil {
		s.modules = map[string]*Module{}
	}
	s.modules[name] = &Module{bias, elf}
	return s.modules[name], nil
}

// biasOf returns the address of a segment in memory minus its address in the file.
func biasOf(elf *elffile.File, mappings []procmem.Mapping) (uint64, error) {
	for _, load := range elf.Loads() {
		for _, one := range mappings {
			if one.Offset == load.Offset&^(procmem.PageSize-1) {
				return one.Start - load.Addr&^(procmem.PageSize-1), nil
			}
		}
	}
	return 0, errors.New("no segment of the file is mapped")
}
