// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "regexp"

// native is the row for programs without a managed heap: C, C++, Rust, nginx.
var native = row(&Runtime{
	Name: "Native", Title: "native code",
	Knobs:  glibc(0, "", suggestArenas),
	Levers: glibcLevers("call it after a burst"),
})

// unlisted has common programs with their own heap, for which memfit has no settings.
var unlisted = []Unlisted{
	{"Bun", []Mark{{Program: true, File: "bun", Versions: []VersionAt{
		{Text: regexp.MustCompile(`Bun/(\d+\.\d+\.\d+)`)},
	}}}},
	{"Erlang", []Mark{{Program: true, File: "beam.smp"}}},
	{"Perl", []Mark{{Program: true, File: "perl*"}}},
}
