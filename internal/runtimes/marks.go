// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"path"
	"regexp"
)

// Mark is a trace of a runtime in a program or library that a process has mapped. All fields that are set must match.
type Mark struct {
	Program  bool        // it matches only the program itself, not a library
	File     string      // a pattern of the base name, as [path.Match] reads it
	Symbol   string      // an exported symbol of the file
	Section  string      // a section of the file
	Versions []VersionAt // places of the version, the most certain first
	Variant  string      // the build with this mark, as in runtime.variant; empty: any
}

// VersionAt is a possible place of a version; one of the fields is set.
type VersionAt struct {
	Symbol string // an exported variable with the version as text
	Hex    string // an exported variable with the version in CPython's format: 0x030b07f0 is 3.11.7
	// Text matches it in the file's constants, as the first group.
	Text *regexp.Regexp
	// Path matches it in the path of the file, as the first group. A text must agree with it.
	Path      *regexp.Regexp
	BuildInfo bool // the Go linker's version
}

// Fits reports whether a file of this path may match the mark. It does not check Symbol and Section.
func (m Mark) Fits(file string, program bool) bool {
	if m.Program && !program {
		return false
	}
	ok, err := path.Match(m.File, path.Base(file))
	return m.File == "" || ok && err == nil
}

// Sight is whether a runtime detects its container's memory limit.
type Sight struct {
	Since  Version // the first version with this, up to the next entry
	V1, V2 bool    // it sizes its heap by the limit under cgroup v1 and v2
}

// SeesLimit reports whether a version sizes its heap by the container's limit, under cgroup v1 and v2. known is false
// for runtimes without their own heap, and for a too vague version.
func (r *Runtime) SeesLimit(v Version) (s Sight, known bool) {
	for _, one := range r.Sights {
		switch {
		case !one.Since.Known() || v.AtLeast(one.Since):
			s, known = one, true
		case !v.Below(one.Since): // "11" may be 11.0.3 as well as 11.0.20
			return Sight{}, false
		}
	}
	return s, known && (v.Known() || len(r.Sights) == 1)
}

// Unlisted is a program that manages its own memory, is not native code, and has no row in the table.
type Unlisted struct {
	Title string
	Marks []Mark
}

// Unmarked returns the row for programs without a mark.
func Unmarked() *Runtime { return native }

// OtherPrograms are distinguished from native code, although they have no settings.
func OtherPrograms() []Unlisted { return unlisted }
