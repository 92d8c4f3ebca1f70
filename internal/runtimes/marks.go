// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"path"
	"regexp"
)

// Mark identifies a runtime by a file (program or library) that a process has mapped. All fields that are set must
// match.
type Mark struct {
	Program  bool        // the file is the program itself, not a library
	File     string      // a pattern of the base name for [path.Match]
	Symbol   string      // an exported symbol of the file
	Section  string      // a section of the file
	Versions []VersionAt // places of the version, the most certain first
	Variant  string      // the build with this mark, as in runtime.variant; empty: any
}

// VersionAt is a place of the version in a file. Exactly one field is set.
type VersionAt struct {
	Symbol    string         // an exported variable with the version as text
	Hex       string         // an exported variable with the version in CPython's format: 0x030b07f0 is 3.11.7
	Text      *regexp.Regexp // matches the file's constants; the first group is the version
	Path      *regexp.Regexp // matches the file's path; the first group is the version, and Text must agree with it
	BuildInfo bool           // the Go linker's version
}

// Fits reports whether a file of this path may match the mark. It does not check Symbol and Section.
func (m Mark) Fits(file string, program bool) bool {
	if m.Program && !program {
		return false
	}
	ok, err := path.Match(m.File, path.Base(file))
	return m.File == "" || ok && err == nil
}

// LimitDetection records whether a range of versions detects the container's memory limit.
type LimitDetection struct {
	Since  Version // the first version; the range ends before the next entry's
	V1, V2 bool    // it sizes its heap by the limit under cgroup v1 and v2
}

// DetectsLimit reports whether a version sizes its heap by the container's limit, under cgroup v1 and v2. known is
// false for a runtime without its own heap, and for a version that is unknown or not exact enough.
func (r *Runtime) DetectsLimit(v Version) (s LimitDetection, known bool) {
	for _, one := range r.LimitDetections {
		switch {
		case !one.Since.Known() || v.AtLeast(one.Since):
			s, known = one, true
		case !v.Below(one.Since): // "11" may be 11.0.3 as well as 11.0.20
			return LimitDetection{}, false
		}
	}
	return s, known && (v.Known() || len(r.LimitDetections) == 1)
}

// Unlisted is a program with its own heap that is not in the table.
type Unlisted struct {
	Title string
	Marks []Mark
}

// NativeCode returns the row for programs without a mark: native code.
func NativeCode() *Runtime { return native }

// OtherPrograms returns the programs to distinguish from native code, although memfit has no settings for them.
func OtherPrograms() []Unlisted { return unlisted }
