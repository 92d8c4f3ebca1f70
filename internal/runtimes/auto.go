// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// auto is the row for an unknown runtime. It has only settings that no process can refuse.
//
// It omits JAVA_TOOL_OPTIONS, which would replace the variable of the image, for example one that loads an agent.
var auto = row(&Runtime{
	Name: "Auto", Title: "unknown", Order: 1,
	Knobs:  append([]Knob{goMemLimit}, glibc(0, "", "")...),
	Levers: glibcLevers("call it after a burst"),
	Advice: "declare the runtime (runtime.type in the profile, or annotation memfit.dev/runtime) to get its settings",
})
