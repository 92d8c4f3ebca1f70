// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"regexp"

	"github.com/memfit/memfit/internal/runtimes"
)

// library is a C library or an allocator, with the marks of its files.
type library struct {
	name  string
	libc  bool
	marks []runtimes.Mark
}

// libraries has the known C libraries and allocators. An allocator linked into a program is detected by the names that
// it exports, but not if they have a prefix, as in Rust programs.
var libraries = []library{
	{name: "glibc", libc: true, marks: []runtimes.Mark{
		{File: "libc.so.6", Versions: glibcVersions}, {File: "libc-2.*.so", Versions: glibcVersions},
	}},
	{name: "musl", libc: true, marks: []runtimes.Mark{
		{File: "ld-musl-*", Versions: muslVersions}, {File: "libc.musl-*", Versions: muslVersions},
		{File: "libc.so", Versions: muslVersions},
	}},
	{name: "jemalloc", marks: []runtimes.Mark{{File: "libjemalloc.so*"}, {Program: true, Symbol: "mallctl"}}},
	{name: "tcmalloc", marks: []runtimes.Mark{
		{File: "libtcmalloc*.so*"}, {Program: true, Symbol: "MallocExtension_ReleaseFreeMemory"},
	}},
	{name: "mimalloc", marks: []runtimes.Mark{{File: "libmimalloc*.so*"}, {Program: true, Symbol: "mi_malloc"}}},
}

var (
	glibcVersions = []runtimes.VersionAt{{Text: regexp.MustCompile(`release version (2\.\d+)`)}}
	muslVersions  = []runtimes.VersionAt{{Text: regexp.MustCompile(`\x00(1\.\d\.\d{1,2})\x00`)}}
)
