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

// ErrNoModule is returned where the process has no such file mapped, or it is not an ELF file that can be read.
var ErrNoModule = errors.New("no such module")

// Module is a program or library that the process has mapped.
type Module struct {
	Path string
	// Bias is what is added to an address of the file to get one of the process.
	Bias uint64
	// Mappings are its mappings, in ascending order.
	Mappings []procmem.Mapping
	// ELF are its headers and symbols. Readers of symbols close nothing: the file is open as long as the snapshot.
	ELF *elffile.File

	file procmem.File
}

// Symbol is the address in the process of a symbol that the module exports (.dynsym).
func (m *Module) Symbol(name string) (uint64, error) {
	s, err := m.ELF.Symbol(name)
	if err != nil {
		return 0, err
	}
	return m.Bias + s.Value, nil
}

// HasFile reports whether the process has a file mapped whose base name starts with this: "libjvm.so", "libruby".
func (s *Snapshot) HasFile(prefix string) bool {
	for i := range s.Mappings {
		m := &s.Mappings[i]
		if m.Inode != 0 && strings.HasPrefix(path.Base(m.Path), prefix) {
			return true
		}
	}
	return false
}

// Module opens the first mapped file whose base name starts with a prefix.
func (s *Snapshot) Module(prefix string) (*Module, error) {
	for i := range s.Mappings {
		m := &s.Mappings[i]
		if m.Inode != 0 && strings.HasPrefix(path.Base(m.Path), prefix) {
			return s.open(m.Path)
		}
	}
	return nil, ErrNoModule
}

// Exe opens the program itself.
func (s *Snapshot) Exe() (*Module, error) { return s.open(s.Process.Exe) }

// Close closes the files of modules that were opened.
func (s *Snapshot) Close() {
	for _, m := range s.modules {
		if m != nil {
			_ = m.file.Close()
		}
	}
	s.modules = nil
}

// maxModules is how many files are inspected for one snapshot: the program, its C library and its runtime are three.
const maxModules = 16

func (s *Snapshot) open(name string) (*Module, error) {
	if m, known := s.modules[name]; known {
		if m == nil {
			return nil, ErrNoModule
		}
		return m, nil
	}
	if s.OpenFile == nil || len(s.modules) >= maxModules {
		return nil, ErrNoModule
	}
	if s.modules == nil {
		s.modules = map[string]*Module{}
	}
	s.modules[name] = nil // what cannot be opened once is not tried again
	m := &Module{Path: name}
	for i := range s.Mappings {
		if one := s.Mappings[i]; one.Path == name && one.Inode != 0 {
			m.Mappings = append(m.Mappings, one)
		}
	}
	if len(m.Mappings) == 0 {
		return nil, ErrNoModule
	}
	if err := m.read(s.OpenFile); err != nil {
		return nil, errors.Join(ErrNoModule, err)
	}
	s.modules[name] = m
	return m, nil
}

func (m *Module) read(open func(string) (procmem.File, error)) error {
	file, err := open(m.Path)
	if err != nil {
		return err
	}
	m.ELF, err = elffile.Open(io.NewSectionReader(file, 0, file.Size()))
	if err == nil {
		m.Bias, err = m.bias()
	}
	if err != nil {
		_ = file.Close()
		return err
	}
	m.file = file
	return nil
}

// bias compares where the file's first loaded segment should be with where it is.
func (m *Module) bias() (uint64, error) {
	for _, load := range m.ELF.Loads() {
		for _, one := range m.Mappings {
			if one.Offset == load.Offset&^(procmem.PageSize-1) {
				return one.Start - load.Addr&^(procmem.PageSize-1), nil
			}
		}
	}
	return 0, errors.New("no segment of the file is mapped")
}
