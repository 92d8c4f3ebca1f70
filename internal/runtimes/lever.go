// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// Lever is one thing that may give memory of a running process back: a call, a collection, a setting for its next
// start. What it would give is computed from what internal/attribution read of the process, never from what helped
// somewhere else.
type Lever struct {
	// Action is what is done, as users know it: "malloc_trim", "MALLOC_ARENA_MAX=2". The gains of a container's processes
	// are added up by it.
	Action string
	// Knob is the name of this runtime's knob that does it; empty: memfit has none.
	Knob string
	// How is how to do it, as an instruction.
	How string
	// Unreachable: programs of this runtime cannot do it. What it would give is then a measure of what is free, and no
	// advice.
	Unreachable bool
	// Reader is whose amounts Gain depends on.
	Reader string
	// Gain computes what it gives back from those amounts; ok is false where it means nothing to the process.
	Gain func(Process, amounts.Usage) (g Gain, ok bool)
}

// Predict returns what the lever gives back in a process; ok is false where it means nothing to the process, or where
// what it depends on could not be read.
func (l *Lever) Predict(p Process) (g Gain, ok bool) {
	u, ok := p.usage(l.Reader)
	if !ok {
		return noLever()
	}
	return l.Gain(p, u)
}

// usage is what a reader found; ok is false where it found nothing, or understood too little of its headers.
func (p *Process) usage(reader string) (u amounts.Usage, ok bool) {
	i := slices.IndexFunc(p.Usages, func(u amounts.Usage) bool { return u.Reader == reader })
	if i < 0 || !p.Usages[i].Understood() {
		return amounts.Usage{}, false
	}
	return p.Usages[i], true
}

// Gain is what a lever would give back, of what is resident now.
type Gain struct {
	// Least and Most are the bounds; equal where the gain is exact.
	Least, Most memory.Bytes
	// Limit is that of the container with which the runtime would collect no more often than by itself, where it has too
	// little; 0: it has enough, or that is not known.
	Limit memory.Bytes
	// Cost is what its present limit costs.
	Cost Cost
	// Why is how they were computed, with the numbers of this process.
	Why string
}

// Process describes a running process, for [Lever.Predict].
type Process struct {
	// Usages are what readers found in it.
	Usages []amounts.Usage
	// Env are the variables for settings of memory that it was started with.
	Env map[string]string
	// Limit is the effective memory limit; 0: none.
	Limit memory.Bytes
	// Version is the runtime's own, where it is known.
	Version Version
}

// exactly is a gain that is known.
func exactly(b memory.Bytes, format string, args ...any) (Gain, bool) {
	return between(b, b, format, args...)
}

// between is a gain within bounds.
func between(least, most memory.Bytes, format string, args ...any) (Gain, bool) {
	return Gain{Least: min(least, most), Most: most, Why: fmt.Sprintf(format, args...)}, true
}

// effective is the gain of a setting that the process was started with.
func effective(text string) (Gain, bool) {
	return exactly(0, "%s is effective already: it does not give back what is free now", text)
}

func noLever() (Gain, bool) { return Gain{}, false }

// howArenas and howThreshold are the same for every runtime.
const (
	howArenas = "tuning.arenaMax: 2 in the profile, for new pods; threads that allocate all the time then " +
		"wait for each other"
	howThreshold = "tuning.trimThreshold: 128Ki in the profile, for new pods; blocks above 128 KiB are then " +
		"mapped one by " +
		"one, which costs page faults"
)

// mallocTrim is malloc_trim(0), which a runtime reaches in its own way.
func mallocTrim(how string) Lever {
	return Lever{Action: "malloc_trim", How: how, Reader: amounts.Glibc, Gain: trimGain}
}

// trimGain is exact where the whole heap was read: docs/design/attribution.md has its error against real calls.
func trimGain(_ Process, a amounts.Usage) (Gain, bool) {
	why := fmt.Sprintf("resident pages inside free chunks, and the end of the main arena, counted chunk by chunk; "+
		"%s more are free on pages that also hold something in use", a.FreePartial)
	unread := a.Unread()
	if unread > 0 {
		why += fmt.Sprintf("; %s more of the heap could not be read, and may be free too", unread)
	}
	return between(a.Returnable, a.Returnable.Plus(unread), "%s", why)
}

// glibcLevers are those of every process with glibc's malloc; trim is how this runtime calls malloc_trim.
func glibcLevers(trim string) []Lever {
	return append([]Lever{mallocTrim(trim)}, arenaLevers()...)
}

func arenaLevers() []Lever {
	return []Lever{
		{Action: arenaMaxName + "=2", Knob: arenaMaxName, How: howArenas, Reader: amounts.Glibc, Gain: arenaGain},
		{
			Action: trimThresholdName + "=131072", Knob: trimThresholdName, How: howThreshold,
			Reader: amounts.Glibc, Gain: thresholdGain,
		},
	}
}

// arenaGain is an upper bound. With two arenas, everything in use lies in these two: at most the unused memory of all
// arenas can go, and no more than lies outside of two.
func arenaGain(p Process, a amounts.Usage) (Gain, bool) {
	if n, err := strconv.Atoi(p.Env[arenaMaxName]); err == nil && n > 0 && n <= 2 {
		return effective(arenaMaxName + "=" + strconv.Itoa(n))
	}
	if strings.Contains(p.Env["GLIBC_TUNABLES"], "glibc.malloc.arena_max") {
		return effective("glibc.malloc.arena_max of GLIBC_TUNABLES")
	}
	arenas := a.Details[amounts.Arenas]
	if arenas <= 2 {
		return exactly(0, "the process has %d of its own accord", arenas)
	}
	retained, beyond := a.Bytes(amounts.Retained), a.Bytes(amounts.BeyondTwo)
	return between(0, min(retained, beyond), "%d arenas retain %s that is not in use, and %s lie outside of "+
		"the two largest",
		arenas, retained, beyond)
}

// thresholdGain: the threshold cuts the top of every arena, and maps blocks above it one by one, which go when they are
// freed. Small blocks stay.
func thresholdGain(p Process, a amounts.Usage) (Gain, bool) {
	if text := p.Env[trimThresholdName]; text != "" {
		return effective(trimThresholdName)
	}
	least := a.Bytes(amounts.TopBeyond)
	return between(least, max(least, a.FreeResident), "%s at the tops of arenas, beyond the 128 KiB that it "+
		"leaves at each; "+
		"the other free pages go only where blocks above 128 KiB were", least)
}

// freshProcess is an upper bound: a new process has the working set of the old one, and none of what is free between.
func freshProcess(p Process, a amounts.Usage) (Gain, bool) {
	free := a.FreeResident.Plus(a.FreePartial)
	malloc, _ := p.usage(amounts.Glibc)
	native := malloc.Bytes(amounts.Retained)
	return between(0, free.Plus(native), "%s are free between objects, and %s in malloc's arenas; what is in "+
		"use comes again",
		free, native)
}
