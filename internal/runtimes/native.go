// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "regexp"

// native is a program without a managed heap: C, C++, Rust, nginx.
var native = row(&Runtime{
	Name: "Native", Title: "native code",
	Knobs:  glibc(0, "", tryArenas),
	Levers: glibcLevers("call it after a burst"),
})

// unlisted are common programs with their own heap that memfit has no settings for.
var unlisted = []Unlisted{
	{"Bun", []Mark{{Program: true, File: "bun", Versions: []VersionAt{
		{Text: regexp.MustCompile(`Bun/(\d+\.\d+\.\d+)`)},
	}}}},
	{"Erlang", []Mark{{Program: true, File: "beam.smp"}}},
	{"Perl", []Mark{{Program: true, File: "perl*"}}},
}
