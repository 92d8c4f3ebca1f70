// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/memfit/memfit/internal/memory"
)

// Bounds of the kept data of one process. Linux allows 65,530 mappings unless vm.max_map_count is raised.
const (
	MaxMappings = 1 << 17
	maxPath     = 1 << 10 // bytes of one path; a longer one is dropped
	maxPaths    = 4 << 20 // bytes of all paths of a process; further paths are dropped
	lineBuffer  = 64 << 10
)

// Errors of parsing the files of a process.
var (
	ErrTooMany = errors.New("the process has too many mappings")
	ErrSyntax  = errors.New("unexpected format")
)

// ReadSmaps parses /proc/PID/smaps. Mappings are in ascending order. Each distinct path is allocated once.
func ReadSmaps(r io.Reader) ([]Mapping, error) {
	p := smapsParser{paths: map[string]string{}}
	lines := bufio.NewReaderSize(r, lineBuffer)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if err := p.line(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
				return nil, err
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a line that is too long
			_, err = lines.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			return p.mappings, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading mappings: %w", err)
		}
	}
}

type smapsParser struct {
	mappings  []Mapping
	paths     map[string]string
	pathBytes int
}

func (p *smapsParser) line(line []byte) error {
	if len(line) == 0 || line[0] < 'A' || line[0] > 'Z' {
		return p.header(line)
	}
	if len(p.mappings) == 0 {
		return fmt.Errorf("mappings: %w", ErrSyntax)
	}
	key, value, ok := bytes.Cut(line, []byte(":"))
	if !ok {
		return fmt.Errorf("mappings: %w", ErrSyntax)
	}
	m := &p.mappings[len(p.mappings)-1]
	switch string(key) {
	case "Rss":
		m.RSS = kilobytes(value)
	case "Shared_Hugetlb", "Private_Hugetlb":
		m.HugeTLB = m.HugeTLB.Plus(kilobytes(value))
	}
	return nil
}

// kilobytes parses "    12 kB"; 0 if it is invalid.
func kilobytes(b []byte) memory.Bytes {
	text, _, _ := bytes.Cut(bytes.TrimLeft(b, " \t"), []byte(" "))
	n, ok := number(text, 10)
	if !ok || n > uint64(memory.Max/memory.KiB) {
		return 0
	}
	return memory.Bytes(n) * memory.KiB
}

// header parses "55d0e8a00000-55d0e8a21000 rw-p 00000000 fe:01 1234     /usr/bin/x".
func (p *smapsParser) header(line []byte) error {
	if len(p.mappings) >= MaxMappings {
		return fmt.Errorf("%w: more than %d", ErrTooMany, MaxMappings)
	}
	m, path, ok := parseHeader(line)
	if n := len(p.mappings); !ok || m.End <= m.Start || n > 0 && m.End <= p.mappings[n-1].End {
		return fmt.Errorf("mapping %d: %w", len(p.mappings)+1, ErrSyntax)
	}
	p.supersede(m.Start)
	m.Path = p.path(path)
	p.mappings = append(p.mappings, m)
	return nil
}

// supersede drops mappings that end after start. The kernel writes a few mappings at a time. If the last of them has
// grown since, as [heap] does, or was merged with its neighbor, the kernel writes the whole mapping again.
func (p *smapsParser) supersede(start uint64) {
	n := len(p.mappings)
	for n > 0 && p.mappings[n-1].End > start {
		n--
	}
	p.mappings = p.mappings[:n]
}

func parseHeader(line []byte) (m Mapping, path []byte, ok bool) {
	var columns [5][]byte // addresses, permissions, offset, device, inode
	for i := range columns {
		columns[i], line, _ = bytes.Cut(line, []byte(" "))
	}
	ok = len(columns[1]) == len(permissions)
	parse := func(text []byte, base int) uint64 {
		n, valid := number(text, base)
		ok = ok && valid
		return n
	}
	start, end, _ := bytes.Cut(columns[0], []byte("-"))
	m.Start, m.End = parse(start, 16), parse(end, 16)
	m.Offset, m.Inode = parse(columns[2], 16), parse(columns[4], 10)
	for i, p := range permissions {
		if ok && columns[1][i] == p.letter {
			m.Perms |= p.perm
		}
	}
	return m, bytes.TrimLeft(line, " "), ok
}

// permissions are the letters of the second column.
var permissions = [...]struct {
	letter byte
	perm   Perms
}{{'r', Readable}, {'w', Writable}, {'x', Executable}, {'s', Shared}}

// number parses text, which must be a number as a whole. ParseUint does not keep the string, so it is not allocated.
func number(text []byte, base int) (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(text), base, 64)
	return n, err == nil
}

// path returns b as a string, shared by all mappings of the file; "" beyond the bounds.
func (p *smapsParser) path(b []byte) string {
	if len(b) == 0 || len(b) > maxPath {
		return ""
	}
	if known, ok := p.paths[string(b)]; ok {
		return known
	}
	if p.pathBytes+len(b) > maxPaths {
		return ""
	}
	p.pathBytes += len(b)
	kept := string(b)
	p.paths[kept] = kept
	return kept
}

// Perms are the permissions of a mapping.
type Perms uint8

// The permissions.
const (
	Readable Perms = 1 << iota
	Writable
	Executable
	Shared
)

// Mapping is one mapping in /proc/PID/smaps.
type Mapping struct {
	Start, End uint64
	Perms      Perms
	Offset     uint64
	Inode      uint64
	// Path is the last column: a path as seen inside the container, "[heap]", "[anon: NAME]" or "". The process chose it.
	Path string
	// RSS is the resident memory, without HugeTLB.
	RSS     memory.Bytes
	HugeTLB memory.Bytes // huge pages of hugetlbfs
}

// Size returns the size of the address range in bytes.
func (m *Mapping) Size() uint64 { return m.End - m.Start }

// Contains reports whether the mapping contains an address.
func (m *Mapping) Contains(addr uint64) bool { return m.Start <= addr && addr < m.End }

// Has reports whether the mapping has all of these permissions.
func (m *Mapping) Has(p Perms) bool { return m.Perms&p == p }

// Anonymous reports whether the mapping is private memory without a file.
func (m *Mapping) Anonymous() bool { return m.Inode == 0 && !m.Has(Shared) && !m.Kernel() }

// Kernel reports whether the kernel created the mapping for its own purposes.
func (m *Mapping) Kernel() bool {
	switch m.Path {
	case "[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]":
		return true
	}
	return false
}
