// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/memfit/memfit/internal/memory"
)

// Bounds of the kept data of one process. Linux allows 65,530 mappings unless vm.max_map_count is raised, as for
// Elasticsearch (262,144 there, few of which it uses).
const (
	MaxMappings = 1 << 17
	maxPath     = 1 << 10 // bytes of one path; a longer one is dropped
	maxPaths    = 4 << 20 // bytes of all paths of a process; those beyond are dropped
	lineBuffer  = 64 << 10
)

// ErrTooMany is returned for a process with too many mappings.
var ErrTooMany = errors.New("the process has more mappings than are read")

// ErrSyntax is returned for a file in an unexpected format.
var ErrSyntax = errors.New("not as the kernel writes it")

// ReadSmaps reads /proc/PID/smaps, or /proc/PID/maps, which has the same lines without the amounts. Mappings are in
// ascending order. Apart from the result it allocates one buffer and each distinct path once.
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

// kilobytes reads "    12 kB".
func kilobytes(b []byte) memory.Bytes {
	n, _, ok := number(bytes.TrimLeft(b, " \t"), 10)
	if !ok || n > uint64(memory.Max/memory.KiB) {
		return 0
	}
	return memory.Bytes(n) * memory.KiB
}

// header reads "55d0e8a00000-55d0e8a21000 rw-p 00000000 fe:01 1234     /usr/bin/x".
func (p *smapsParser) header(line []byte) error {
	if len(p.mappings) >= MaxMappings {
		return fmt.Errorf("%w: %d", ErrTooMany, MaxMappings)
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

// supersede drops mappings that extend beyond an address. The kernel writes a few mappings at a time and continues with
// the one at the end of the last: if that has grown meanwhile, as [heap] does, or was merged with its neighbor, it
// repeats as a whole.
func (p *smapsParser) supersede(start uint64) {
	n := len(p.mappings)
	for n > 0 && p.mappings[n-1].End > start {
		n--
	}
	p.mappings = p.mappings[:n]
}

func parseHeader(line []byte) (m Mapping, path []byte, ok bool) {
	f := fields{rest: line}
	m.Start = f.hex('-')
	m.End = f.hex(' ')
	m.Perms = f.perms()
	m.Offset = f.hex(' ')
	f.hex(':') // the device
	f.hex(' ')
	inode, rest, found := number(f.rest, 10)
	m.Inode = inode
	return m, bytes.TrimLeft(rest, " "), found && !f.failed
}

// fields parses a line from its beginning.
type fields struct {
	rest   []byte
	failed bool
}

// hex parses a hexadecimal number and the character after it.
func (f *fields) hex(behind byte) uint64 {
	n, rest, ok := number(f.rest, 16)
	if !ok || len(rest) == 0 || rest[0] != behind {
		f.failed, f.rest = true, nil
		return 0
	}
	f.rest = rest[1:]
	return n
}

func (f *fields) perms() (p Perms) {
	if len(f.rest) < 5 || f.rest[4] != ' ' {
		f.failed, f.rest = true, nil
		return 0
	}
	for i, flag := range [...]struct {
		letter byte
		perm   Perms
	}{{'r', Readable}, {'w', Writable}, {'x', Executable}, {'s', Shared}} {
		if f.rest[i] == flag.letter {
			p |= flag.perm
		}
	}
	f.rest = f.rest[5:]
	return p
}

// number parses digits of base 10 or 16 and returns the rest; it fails above 64 bits.
func number(b []byte, base uint64) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b); i++ {
		d := digit(b[i])
		if d >= base {
			break
		}
		if n > (1<<64-1-d)/base {
			return 0, nil, false
		}
		n = n*base + d
	}
	return n, b[i:], i > 0
}

// digit returns the digit's value, or a value larger than any base.
func digit(c byte) uint64 {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0')
	case c >= 'a' && c <= 'f':
		return uint64(c-'a') + 10
	}
	return 1 << 8
}

// path keeps each path once.
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

// Permissions, as the second column of /proc/PID/maps shows them.
const (
	Readable Perms = 1 << iota
	Writable
	Executable
	Shared
)

// Mapping is one line of /proc/PID/maps with its amounts of /proc/PID/smaps.
type Mapping struct {
	Start, End uint64
	Perms      Perms
	Offset     uint64
	Inode      uint64
	// Path is the last column: a path as seen inside the container, "[heap]", "[anon: NAME]" or "". The process chose it.
	Path string
	// RSS is its resident memory, HugeTLB its reserved huge pages, which no RSS counts.
	RSS, HugeTLB memory.Bytes
}

// Size returns the size of its address range.
func (m *Mapping) Size() uint64 { return m.End - m.Start }

// Contains reports whether it contains an address.
func (m *Mapping) Contains(addr uint64) bool { return m.Start <= addr && addr < m.End }

// Has reports whether it has all of these permissions.
func (m *Mapping) Has(p Perms) bool { return m.Perms&p == p }

// Anonymous reports whether it is private memory without a file.
func (m *Mapping) Anonymous() bool { return m.Inode == 0 && !m.Has(Shared) && !m.Kernel() }

// Kernel reports whether the kernel created it for its own purposes.
func (m *Mapping) Kernel() bool {
	switch m.Path {
	case "[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]":
		return true
	}
	return false
}
