// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// auto is a container whose runtime is unknown. It only gets settings that no process can refuse.
//
// JAVA_TOOL_OPTIONS needs a declaration: it cannot stop a process, but would replace the image's, an agent for example.
var auto = row(&Runtime{
	Name: "Auto", Title: "unknown", Order: 1,
	Knobs:  append([]Knob{goMemLimit}, glibc(0, "", "")...),
	Levers: glibcLevers("call it after a burst"),
	Advice: "declare what it runs (runtime.type in the profile, or annotation memfit.dev/runtime) to get the settings " +
		"of that runtime",
})
