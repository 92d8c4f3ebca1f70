// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"path"
	"regexp"
)

// Mark is a trace of a runtime in a program or library that a process has mapped. What is not empty must all hold.
type Mark struct {
	// Program: only the program itself can match it, not a library.
	Program bool
	// File is a pattern of the base name, as [path.Match] reads it.
	File string
	// Symbol is one that the file exports.
	Symbol string
	// Section is one that the file has.
	Section string
	// Versions are places where the version may be, the surest first.
	Versions []VersionAt
	// Variant is the build that matches the mark, as runtime.variant spells it; empty: any.
	Variant string
}

// VersionAt is a place that may hold a version; one of the fields is set.
type VersionAt struct {
	// Symbol is an exported variable that holds the version as text.
	Symbol string
	// Hex is an exported variable that holds the version as CPython does: 0x030b07f0 is 3.11.7.
	Hex string
	// Text finds it in the file's constants, as the first group.
	Text *regexp.Regexp
	// Path finds it in the path of the file, as the first group. Where a text was found as well, it has to agree.
	Path *regexp.Regexp
	// BuildInfo: it is what the Go linker wrote.
	BuildInfo bool
}

// Fits reports whether a file of this path may match the mark. It does not check Symbol and Section.
func (m Mark) Fits(file string, program bool) bool {
	if m.Program && !program {
		return false
	}
	ok, err := path.Match(m.File, path.Base(file))
	return m.File == "" || ok && err == nil
}

// Sight is whether a runtime sees the memory limit of its container.
type Sight struct {
	// Since is the first version that this is true of, up to the next entry.
	Since Version
	// V1 and V2 are under which version of cgroups it sizes its heap by the limit.
	V1, V2 bool
}

// SeesLimit reports whether a version sizes its heap by the container's limit, under cgroup v1 and v2. Known is false
// for runtimes without a heap of their own, and where the version is not known well enough.
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

// Unlisted is a program that manages its own memory and that the table has no row for: it is not native code, and
// memfit has no settings for it.
type Unlisted struct {
	Title string
	Marks []Mark
}

// Unmarked is the row of programs that match no mark.
func Unmarked() *Runtime { return native }

// OtherPrograms are distinguished from native code, although they have no settings.
func OtherPrograms() []Unlisted { return unlisted }
