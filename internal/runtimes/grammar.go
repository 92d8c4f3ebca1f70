// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// Grammar is how a runtime splits the value of a variable with several settings, and when it is unsafe to prepend a
// word. Words are always prepended, so that the user's later words win.
type Grammar struct {
	// Split splits value into words like the runtime. hazard is why value must not be extended, as the end of the
	// sentence "NAME skipped: its value ..."; empty if safe.
	Split func(value string) (words []string, hazard string)
	// MaxLength and MaxWords are the bounds of the strictest versions; Strict names these. 0: no bound.
	MaxLength, MaxWords int
	Strict              func(Version) bool
	// StrictWhy names the limit: "JDK 8 reads only 1024 bytes and 64 options of it".
	StrictWhy string
}
