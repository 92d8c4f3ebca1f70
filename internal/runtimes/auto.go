// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// auto is a container whose runtime is not declared and whose command does not show it. It only gets settings that no
// process can refuse.
//
// JAVA_TOOL_OPTIONS cannot stop a process either, but a value in the pod would replace the image's, an agent for
// example, so it needs a declaration.
var auto = row(&Runtime{
	Name: "Auto", Title: "unknown", Order: 1,
	Knobs:  append([]Knob{goMemLimit}, glibc(0, "", "")...),
	Levers: glibcLevers("call it after a burst"),
	Advice: "declare what it runs (runtime.type in the profile, or annotation memfit.dev/runtime) to get the settings " +
		"of that runtime",
})
