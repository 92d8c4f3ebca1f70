// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "regexp"

// native is a program without a managed heap: C, C++, Rust, nginx.
var native = row(&Runtime{
	Name: "Native", Title: "native code",
	Knobs: glibc(0, "", tryArenas),
	Never: map[string]string{
		"LD_PRELOAD":            "changes every program in the container, shells and probes too",
		"GLIBC_TUNABLES":        "one slip disables the whole string, the user's part included",
		"MALLOC_MMAP_MAX_":      "0 disables mmap, and any value freezes the dynamic threshold",
		"ERL_AFLAGS":            "a bad parameter stops the BEAM at start",
		"ERL_FLAGS":             "a bad parameter stops the BEAM at start",
		"ERL_ZFLAGS":            "a bad parameter stops the BEAM at start",
		"BUN_JSC_gcMaxHeapSize": "an unknown or invalid BUN_JSC_ setting stops Bun at start",
	},
	Levers: glibcLevers("call it after a burst"),
})

// unlisted are seen in clusters, have a heap of their own, and nothing that memfit could set.
var unlisted = []Unlisted{
	{"Bun", []Mark{{Program: true, File: "bun", Versions: []VersionAt{
		{Text: regexp.MustCompile(`Bun/(\d+\.\d+\.\d+)`)},
	}}}},
	{"Erlang", []Mark{{Program: true, File: "beam.smp"}}},
	{"Perl", []Mark{{Program: true, File: "perl*"}}},
}
