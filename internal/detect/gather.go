// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/internal/procmem/elffile"
	"github.com/memfit/memfit/internal/procmem/perfdata"
	"github.com/memfit/memfit/internal/runtimes"
)

// Bounds of what is inspected for one process.
const (
	maxFiles   = 16       // a JVM has two files with marks, and its C library
	maxScanned = 96 << 20 // bytes of one file's constants; Node.js 26 has 62 MiB, its version in the first MiB
	maxTexts   = 8        // kept matches of one pattern
	maxText    = 64       // bytes of a symbol's text
)

// Process is what [Cache.Gather] needs to know of a process.
type Process struct {
	Program  string
	Mappings []procmem.Mapping
	Argv     []string
	Env      map[string]string
}

// Open opens a mapped file by its path, as the process sees it.
type Open func(path string) (procmem.File, error)

// Gather searches the files of a process for the traces of all marks, or takes the results from the cache of this
// scope. An error means that a file was unreadable; it matches no mark. A file other than 64-bit ELF is not an error.
func (c *Cache) Gather(scope string, p Process, open Open) (Facts, error) {
	f := Facts{Program: p.Program, Argv: p.Argv, Env: p.Env}
	var failed error
	f.VMArgs, failed = vmArgs(p, open)
	for _, file := range candidates(p) {
		found, err := c.identifyAt(scope, file, open)
		if err != nil && file.Program {
			f.Unreadable = unreadable(err)
		}
		if err != nil && !errors.Is(err, elffile.ErrFormat) {
			failed = cmp.Or(failed, err)
		}
		f.Files = append(f.Files, found)
	}
	return f, failed
}

func (c *Cache) identifyAt(scope string, which File, open Open) (File, error) {
	file, err := open(which.Path)
	if err != nil {
		return which, err
	}
	defer func() { _ = file.Close() }()
	return c.identify(scope, which, file)
}

// vmArgs returns the arguments in a JVM's file of counters. The file may also have secrets, so the buffer is cleared.
func vmArgs(p Process, open Open) (string, error) {
	m := perfdata.Mapping(p.Mappings)
	if m == nil {
		return "", nil
	}
	file, err := open(m.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	b := make([]byte, min(file.Size(), perfdata.Max))
	defer clear(b)
	n, err := file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return parsePerfData(b[:n])
}

// unreadable returns the reason without the text of the error, which may have a path that the process chose.
func unreadable(err error) string {
	if errors.Is(err, elffile.ErrFormat) {
		return "it is not a 64-bit ELF file"
	}
	return "its file cannot be opened"
}

// candidates returns the program and the mapped files whose names may match a mark, without duplicates.
func candidates(p Process) []File {
	files := []File{{Path: p.Program, Program: true}}
	if p.Program == "" {
		files = nil
	}
	seen := map[string]bool{p.Program: true}
	for i := range p.Mappings {
		m := &p.Mappings[i]
		if m.Inode == 0 || seen[m.Path] || len(files) >= maxFiles {
			continue
		}
		seen[m.Path] = true
		if len(marksFor(m.Path, false)) > 0 {
			files = append(files, File{Path: m.Path})
		}
	}
	return files
}

// marksFor returns the marks that a file of this name may match. Marks without a file name are for programs only.
func marksFor(name string, program bool) []runtimes.Mark {
	var fitting []runtimes.Mark
	add := func(marks []runtimes.Mark) {
		for _, m := range marks {
			if m.Fits(name, program) && (m.File != "" || program) {
				fitting = append(fitting, m)
			}
		}
	}
	for _, row := range runtimes.All() {
		add(row.Marks)
	}
	for _, u := range runtimes.OtherPrograms() {
		add(u.Marks)
	}
	for _, l := range libraries {
		add(l.marks)
	}
	return fitting
}

// identify searches a file for the traces of its marks.
func identify(found File, opened procmem.File) (File, error) {
	size := opened.Size()
	file := &recording{ReaderAt: opened}
	elf, err := elffile.Open(io.NewSectionReader(file, 0, size))
	if err != nil {
		return found, cmp.Or(file.failed, err)
	}
	l := searcher{file: file, size: size, elf: elf, found: &found}
	marks := marksFor(found.Path, found.Program)
	for _, m := range marks {
		l.signs(m)
	}
	for _, m := range marks {
		if found.matches(m) {
			l.versions(m)
		}
	}
	return found, file.failed
}

// recording reads a file and keeps the first error, to distinguish missing from unreadable data.
type recording struct {
	io.ReaderAt

	failed error
}

// ReadAt implements [io.ReaderAt].
func (r *recording) ReadAt(p []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = cmp.Or(r.failed, err)
	}
	return n, err
}

// searcher inspects one file.
type searcher struct {
	file  io.ReaderAt
	size  int64
	elf   *elffile.File
	found *File
}

// signs stores whether the file has the symbol and the section of a mark.
func (l *searcher) signs(m runtimes.Mark) {
	if m.Symbol != "" {
		if _, err := l.elf.Symbol(m.Symbol); err == nil {
			l.symbol(m.Symbol, "")
		}
	}
	if m.Section != "" && !slices.Contains(l.found.Sections, m.Section) {
		if _, err := l.elf.Section(m.Section); err == nil {
			l.found.Sections = append(l.found.Sections, m.Section)
		}
	}
}

func (l *searcher) symbol(name, text string) {
	if l.found.Symbols == nil {
		l.found.Symbols = map[string]string{}
	}
	l.found.Symbols[name] = cmp.Or(l.found.Symbols[name], text)
}

// versions reads the places where a mark may have a version, in order, until one has it.
func (l *searcher) versions(m runtimes.Mark) {
	for _, at := range m.Versions {
		switch {
		case at.Symbol != "":
			if b, err := l.bytesOf(at.Symbol); err == nil {
				text, _, _ := strings.Cut(string(b), "\x00")
				l.symbol(at.Symbol, text)
			}
		case at.Hex != "": // one byte each: kind of release, patch, minor, major
			if b, err := l.bytesOf(at.Hex); err == nil && len(b) >= 4 {
				l.symbol(at.Hex, fmt.Sprintf("%d.%d.%d", b[3], b[2], b[1]))
			}
		case at.Text != nil:
			l.search(at.Text)
		case at.BuildInfo:
			l.found.Build = readBuild(l.file, l.size, l.elf)
		}
		if l.found.versionAt(at, m.Versions) != "" {
			return
		}
	}
}

// bytesOf reads the first bytes of an exported variable.
func (l *searcher) bytesOf(symbol string) ([]byte, error) {
	s, err := l.elf.Symbol(symbol)
	if err != nil {
		return nil, err
	}
	for _, load := range l.elf.Loads() {
		if s.Value >= load.Addr && s.Value-load.Addr < load.FileSize {
			rest := load.FileSize - (s.Value - load.Addr)
			b := make([]byte, min(s.Size, rest, maxText))
			_, err := l.file.ReadAt(b, int64(load.Offset+s.Value-load.Addr)) //nolint:gosec // a wrong offset is an error
			return b, err
		}
	}
	return nil, elffile.ErrNotFound
}

const (
	piece   = 1 << 20 // bytes of a file that are searched together
	overlap = 256     // bytes that belong to two pieces, so that no match is cut
)

// search stores the matches of a pattern in the constants of the file.
func (l *searcher) search(pattern *regexp.Regexp) {
	from, to := l.constants()
	if _, done := l.found.Texts[pattern.String()]; done {
		return
	}
	var texts []string
	buf := make([]byte, min(piece+overlap, max(to-from, 0)))
	for at := from; at < to && len(texts) < maxTexts; at += piece {
		b := buf[:min(int64(len(buf)), to-at)]
		n, err := l.file.ReadAt(b, at)
		for _, found := range pattern.FindAllSubmatch(b[:n], maxTexts) {
			if text := string(found[1]); !slices.Contains(texts, text) && len(texts) < maxTexts {
				texts = append(texts, text)
			}
		}
		if err != nil {
			break
		}
	}
	if l.found.Texts == nil {
		l.found.Texts = map[string][]string{}
	}
	l.found.Texts[pattern.String()] = texts
}

// constants returns the range of the section .rodata, or without it, of all read-only segments.
func (l *searcher) constants() (from, to int64) {
	if s, err := l.elf.Section(".rodata"); err == nil {
		return l.bounded(s.Offset, s.Size)
	}
	for _, load := range l.elf.Loads() {
		if load.Flags&elffile.Writable == 0 {
			start, end := l.bounded(load.Offset, load.FileSize)
			if to == 0 {
				from = start
			}
			to = max(to, end)
		}
	}
	return from, min(to, from+maxScanned)
}

func (l *searcher) bounded(offset, size uint64) (from, to int64) {
	whole := uint64(max(l.size, 0))
	offset = min(offset, whole)
	size = min(size, whole-offset, maxScanned)
	return int64(offset), int64(offset + size) //nolint:gosec // both are at most the file's size
}
