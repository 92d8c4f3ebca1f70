// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// native is a program without a managed heap: C, C++, Rust, nginx.
var _ = row(&Runtime{
	Name: "Native", Title: "native code",
	Knobs:  glibc(0, "", tryArenas),
	Growth: func(Facts, bool) Growth { return capped("native code", 0, 0) },
})
