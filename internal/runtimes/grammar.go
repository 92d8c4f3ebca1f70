// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// Grammar is how a runtime splits the value of a variable that carries several settings, and what makes it unsafe to
// add a word in front. Words are always added in front: later words win, so the user's do.
type Grammar struct {
	// Split splits value into words as the runtime does. hazard is why nothing may be added to value, in words that end
	// the sentence "NAME skipped: its value ..."; empty when it is safe.
	Split func(value string) (words []string, hazard string)
	// MaxLength and MaxWords are what the strictest version reads; Strict names those versions. 0: no limit.
	MaxLength, MaxWords int
	Strict              func(Version) bool
	// StrictWhy names the limit: "JDK 8 reads only 1024 bytes and 64 options of it".
	StrictWhy string
}
