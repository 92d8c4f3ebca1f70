// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
)

// Facts has the traces of a runtime in a process.
type Facts struct {
	Program    string            // the path of the program, as seen inside the container
	Unreadable string            `json:",omitempty"` // why the program's file is unreadable; empty: readable
	Files      []File            // the program and the libraries that may match a mark
	Argv       []string          `json:",omitempty"` // the command line
	Env        map[string]string `json:",omitempty"` // the [Variables] that are set
	VMArgs     string            `json:",omitempty"` // the start arguments of a JVM
}

// File is a program or library that may match a mark, with the traces that were found in it.
type File struct {
	Path     string
	Program  bool                `json:",omitempty"`
	Symbols  map[string]string   `json:",omitempty"` // exported symbols; the value is a version, if the symbol has one
	Sections []string            `json:",omitempty"` // the names of its sections
	Texts    map[string][]string `json:",omitempty"` // matches in its constants by pattern, in file order
	// Build is the Go version of the program, without letters before it; empty for other programs.
	Build string `json:",omitempty"`
}

// Result is the runtime of a process.
type Result struct {
	Runtime string `json:",omitempty"` // as in runtime.type; empty: no match, or unreadable
	Title   string `json:",omitempty"` // its common name: "Node.js", "Bun", "native code"
	Version string `json:",omitempty"` // exact if a file has it; empty: unknown
	Variant string `json:",omitempty"` // the build, as runtime.variant spells it
	// Libc is "glibc" or "musl"; empty: no C library is mapped, as in static programs.
	Libc, LibcVersion string `json:",omitempty"`
	Allocator         string `json:",omitempty"` // a malloc other than the C library's: "jemalloc", "tcmalloc", "mimalloc"
	// DetectsLimit has the cgroup versions on which the runtime sizes its heap by the limit; nil: unknown, or no heap.
	DetectsLimit *LimitDetection `json:"SeesLimit,omitempty"`
	Flags        []Flag          `json:",omitempty"` // memory settings at the process's start
	HeapSet      bool            `json:",omitempty"` // an option sets the maximum heap, or the assumed limit, as a number
	// Evidence has clauses such as "libjvm.so exports gHotSpotVMStructs", the deciding one first.
	Evidence []string `json:",omitempty"`
}

// LimitDetection reports whether a runtime detects a limit on cgroup v1 and v2.
type LimitDetection struct{ V1, V2 bool }

// Flag is one setting with its source.
type Flag struct {
	Text string
	From string // the name of a variable, "command line" or "hsperfdata"
}

// Detect returns the runtime of a process.
func Detect(f Facts) Result {
	var r Result
	row := r.runtime(f)
	r.libc(f)
	if row != nil {
		r.flags(f, row)
		r.HeapSet = slices.ContainsFunc(r.Flags, func(flag Flag) bool { return fixesHeap(row, flag.Text) })
		if sight, known := row.DetectsLimit(runtimes.ParseVersion(r.Version)); known {
			r.DetectsLimit = &LimitDetection{V1: sight.V1, V2: sight.V2}
		}
	}
	return r
}

// runtime returns the row of [runtimes.All], or nil. It tries the most certain evidence first: the program's contents,
// then its name, then mapped libraries.
func (r *Result) runtime(f Facts) *runtimes.Runtime {
	for _, program := range []bool{true, false} {
		for _, row := range runtimes.All() {
			if r.matched(f, row.Marks, program) {
				return r.setRuntime(f, row)
			}
		}
		if program {
			if r.otherProgram(f) {
				return nil
			}
			if row := runtimes.ByCommand(f.Program); row != nil {
				r.Evidence = append(r.Evidence, "the program is "+quote.Name(path.Base(f.Program)))
				return r.setRuntime(f, row)
			}
		}
	}
	if f.Unreadable != "" || f.Program == "" {
		r.Evidence = append(r.Evidence, "the program cannot be read: "+f.Unreadable)
		return nil
	}
	r.Evidence = append(r.Evidence, quote.Name(path.Base(f.Program))+" matches no known runtime")
	return r.setRuntime(f, runtimes.NativeCode())
}

// otherProgram reports whether the program is one of [runtimes.OtherPrograms].
func (r *Result) otherProgram(f Facts) bool {
	for _, u := range runtimes.OtherPrograms() {
		if r.matched(f, u.Marks, true) {
			r.Title = u.Title
			r.version(f, u.Marks)
			return true
		}
	}
	return false
}

// setRuntime sets the fields that follow from a recognized row, and returns the row.
func (r *Result) setRuntime(f Facts, row *runtimes.Runtime) *runtimes.Runtime {
	r.Runtime, r.Title = row.Name, row.Title
	r.version(f, row.Marks)
	return row
}

// matched reports whether the program, or a library, matches one of the marks.
func (r *Result) matched(f Facts, marks []runtimes.Mark, program bool) bool {
	for _, m := range marks {
		for _, file := range f.Files {
			if file.Program == program && file.matches(m) {
				r.Evidence = append(r.Evidence, file.evidence(m))
				return true
			}
		}
	}
	return false
}

// matches reports whether a file has everything that a mark requires.
func (f *File) matches(m runtimes.Mark) bool {
	if !m.Fits(f.Path, f.Program) {
		return false
	}
	if _, exported := f.Symbols[m.Symbol]; m.Symbol != "" && !exported {
		return false
	}
	return m.Section == "" || slices.Contains(f.Sections, m.Section)
}

func (f *File) evidence(m runtimes.Mark) string {
	var how []string
	if m.Symbol != "" {
		how = append(how, "exports "+symbol(m.Symbol))
	}
	if m.Section != "" {
		how = append(how, "has a section "+m.Section)
	}
	if len(how) == 0 && f.Program {
		how = append(how, "is the program")
	}
	if len(how) == 0 {
		how = append(how, "is mapped")
	}
	if version := f.version(m); version != "" {
		how = append(how, "has version "+version)
	}
	return quote.Name(path.Base(f.Path)) + " " + strings.Join(how, " and ")
}

// symbol returns the readable form of a symbol: "_ZN4node5StartEiPPc" is node::Start. Others remain unchanged.
func symbol(name string) string {
	rest, ok := strings.CutPrefix(name, "_ZN") // the nested names of the Itanium C++ ABI
	var parts []string
	for ok {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n == 0 || n > len(rest)-digits {
			return name
		}
		parts, rest = append(parts, rest[digits:digits+n]), rest[digits+n:]
		if strings.HasPrefix(rest, "E") {
			return strings.Join(parts, "::")
		}
	}
	return name
}

// version sets the version and the variant from the first file that has them.
func (r *Result) version(f Facts, marks []runtimes.Mark) {
	for _, m := range marks {
		for _, file := range f.Files {
			if !file.matches(m) {
				continue
			}
			if r.Variant == "" {
				r.Variant = m.Variant
			}
			if version := file.version(m); r.Version == "" && version != "" {
				r.Version = version
				if trace := file.evidence(m); !slices.Contains(r.Evidence, trace) {
					r.Evidence = append(r.Evidence, trace)
				}
			}
		}
	}
}

// version returns the version from the first place of the mark that exists in the file.
func (f *File) version(m runtimes.Mark) string {
	for _, at := range m.Versions {
		if found := f.versionAt(at, m.Versions); found != "" {
			return found
		}
	}
	return ""
}

func (f *File) versionAt(at runtimes.VersionAt, all []runtimes.VersionAt) string {
	switch {
	case at.Symbol != "", at.Hex != "":
		return plain(f.Symbols[at.Symbol+at.Hex])
	case at.Text != nil:
		return plain(agreeing(f.Texts[at.Text.String()], f.pathVersion(all)))
	case at.Path != nil:
		return plain(f.pathVersion([]runtimes.VersionAt{at}))
	case at.BuildInfo:
		return plain(f.Build)
	}
	return ""
}

// pathVersion returns the version in the file's path.
func (f *File) pathVersion(all []runtimes.VersionAt) string {
	for _, at := range all {
		if at.Path != nil {
			if found := at.Path.FindStringSubmatch(f.Path); len(found) == 2 {
				return found[1]
			}
		}
	}
	return ""
}

// agreeing returns the first text that begins with the version in the path, or the first text if the path has none.
func agreeing(texts []string, stem string) string {
	for _, text := range texts {
		if stem == "" || strings.HasPrefix(text, stem+".") {
			return text
		}
	}
	return ""
}

// plain returns version if it has the form of a version, or "": the process may have written the file.
func plain(version string) string {
	const longest = 40
	odd := strings.Trim(version, "0123456789.+-_abcdefghijklmnopqrstuvwxyz") != ""
	if len(version) > longest || odd {
		return ""
	}
	return version
}

func (r *Result) libc(f Facts) {
	for _, l := range libraries {
		for _, file := range f.Files {
			if i := slices.IndexFunc(l.marks, file.matches); i >= 0 {
				if l.libc {
					r.Libc, r.LibcVersion = l.name, file.version(l.marks[i])
				} else {
					r.Allocator = l.name
				}
				r.Evidence = append(r.Evidence, file.evidence(l.marks[i]))
				break
			}
		}
	}
}
