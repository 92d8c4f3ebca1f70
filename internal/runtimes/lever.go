// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"strconv"
	"strings"

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
	// Reader is whose amounts Gain depends on, as internal/attribution names readers.
	Reader string
	// Gain computes what it gives back from those amounts; ok is false where it means nothing to the process.
	Gain func(Process, Amounts) (g Gain, ok bool)
}

// Predict returns what the lever gives back in a process; ok is false where it means nothing to the process, or where
// what it depends on could not be read.
func (l *Lever) Predict(p Process) (g Gain, ok bool) {
	a, ok := p.Amounts[l.Reader]
	if !ok {
		return noLever()
	}
	return l.Gain(p, a)
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
	// Amounts are what readers found, by the names of internal/attribution. A reader that understood too little of its
	// headers is not among them.
	Amounts map[string]Amounts
	// Env are the variables for settings of memory that it was started with.
	Env map[string]string
	// Limit is the effective memory limit; 0: none.
	Limit memory.Bytes
	// Version is the runtime's own, where it is known.
	Version Version
}

// Amounts are what one reader found in a process. All but Details are resident bytes.
type Amounts struct {
	// InUse is what the program has, garbage that was not collected included.
	InUse memory.Bytes
	// FreeResident is free in whole pages, and Returnable the part of it that the allocator's own way gives back.
	FreeResident, Returnable memory.Bytes
	// FreePartial is free on pages that also hold something in use.
	FreePartial memory.Bytes
	// Unread is how much of its heap the reader made no sense of, where that is more than a prediction may err by: it may
	// all be free.
	Unread memory.Bytes
	// Details are further numbers, by the names that the reader's package documents.
	Details map[string]int64
}

// bytes is a detail that is an amount.
func (a Amounts) bytes(name string) memory.Bytes { return memory.Bytes(max(a.Details[name], 0)) }

// resident is all that the reader knows of in RAM.
func (a Amounts) resident() memory.Bytes { return a.InUse.Plus(a.FreeResident).Plus(a.FreePartial) }

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

// Names of internal/attribution's readers.
const (
	readerGlibc   = "glibc"
	readerHotSpot = "hotspot"
	readerV8      = "v8"
	readerGo      = "go"
	readerCPython = "cpython"
	readerRuby    = "ruby"
)

// Details that levers depend on; a test of internal/levers compares them with those that readers report.
const (
	detailArenas    = "arenas"    // glibc: count
	detailRetained  = "retained"  // glibc: resident in arenas and not in use
	detailBeyondTwo = "beyondTwo" // glibc: resident in all arenas but the two that hold the most
	detailTopBeyond = "topBeyond" // glibc: resident at the tops of arenas, beyond what a threshold of 128 KiB leaves there

	detailOldInUse      = "oldInUse"      // V8
	detailYoungResident = "youngResident" // V8
	detailPool          = "poolResident"  // V8

	detailGoReady   = "mappedReady" // Go: what its memory limit is compared with
	detailGoObjects = "objects"     // Go
	detailGoInUse   = "heapInUse"   // Go
	detailGoIdle    = "heapIdle"    // Go
	detailGoLive    = "live"        // Go: what the last collection found alive; absent: not known

	detailGoAllocated   = "allocated"     // Go: since the program started; absent: not known, as the next three
	detailGoCollector   = "collectorTime" // Go: nanoseconds
	detailGoBusy        = "busyTime"      // Go: nanoseconds
	detailGoCollections = "collections"   // Go: count

	detailMaxFree = "MaxHeapFreeRatio"       // HotSpot: percent
	detailMinHeap = "MinHeapSize"            // HotSpot
	detailTrimmed = "TrimNativeHeapInterval" // HotSpot: milliseconds

	detailCollector = "collectorTime" // HotSpot: nanoseconds; absent: not known, as the next
	detailBusy      = "busyTime"      // HotSpot: nanoseconds

	detailYoung      = "youngCollections" // HotSpot with Serial: since the start; absent: not known, as the next five
	detailFull       = "fullCollections"  // count
	detailYoungTime  = "youngTime"        // ticks
	detailFullTime   = "fullTime"         // ticks
	detailEden       = "eden"
	detailOld        = "old"
	detailLive       = "live" // what the last full collection left; absent: a young one came later
	detailMaxHeap    = "MaxHeapSize"
	detailByMemory   = "MaxHeapSizeByMemory" // 1: a share of the memory that the JVM sees
	detailMaxPercent = "MaxRAMPercentage"    // hundredths
	detailMinPercent = "MinRAMPercentage"    // hundredths
)

// LeverDetails are the details that levers depend on, by reader.
var LeverDetails = map[string][]string{
	readerGlibc: {detailArenas, detailRetained, detailBeyondTwo, detailTopBeyond},
	readerV8:    {detailOldInUse, detailYoungResident, detailPool},
	readerGo: {
		detailGoReady, detailGoObjects, detailGoInUse, detailGoIdle, detailGoLive, detailGoAllocated, detailGoCollector,
		detailGoBusy, detailGoCollections,
	},
	readerHotSpot: {
		detailMaxFree, detailMinHeap, detailTrimmed, detailCollector, detailBusy, detailYoung, detailFull, detailYoungTime,
		detailFullTime, detailEden, detailOld, detailLive, detailMaxHeap, detailByMemory, detailMaxPercent, detailMinPercent,
		"UseG1GC", "UseSerialGC", "UseParallelGC", "UseShenandoahGC",
	},
}

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
	return Lever{Action: "malloc_trim", How: how, Reader: readerGlibc, Gain: trimGain}
}

// trimGain is exact where the whole heap was read: docs/design/attribution.md has its error against real calls.
func trimGain(_ Process, a Amounts) (Gain, bool) {
	why := fmt.Sprintf("resident pages inside free chunks, and the end of the main arena, counted chunk by chunk; "+
		"%s more are free on pages that also hold something in use", a.FreePartial)
	if a.Unread > 0 {
		why += fmt.Sprintf("; %s more of the heap could not be read, and may be free too", a.Unread)
	}
	return between(a.Returnable, a.Returnable.Plus(a.Unread), "%s", why)
}

// glibcLevers are those of every process with glibc's malloc; trim is how this runtime calls malloc_trim.
func glibcLevers(trim string) []Lever {
	return append([]Lever{mallocTrim(trim)}, arenaLevers()...)
}

func arenaLevers() []Lever {
	return []Lever{
		{Action: arenaMaxName + "=2", Knob: arenaMaxName, How: howArenas, Reader: readerGlibc, Gain: arenaGain},
		{
			Action: trimThresholdName + "=131072", Knob: trimThresholdName, How: howThreshold,
			Reader: readerGlibc, Gain: thresholdGain,
		},
	}
}

// arenaGain is an upper bound. With two arenas, everything in use lies in these two: at most the unused memory of all
// arenas can go, and no more than lies outside of two.
func arenaGain(p Process, a Amounts) (Gain, bool) {
	if n, err := strconv.Atoi(p.Env[arenaMaxName]); err == nil && n > 0 && n <= 2 {
		return effective(arenaMaxName + "=" + strconv.Itoa(n))
	}
	if strings.Contains(p.Env["GLIBC_TUNABLES"], "glibc.malloc.arena_max") {
		return effective("glibc.malloc.arena_max of GLIBC_TUNABLES")
	}
	arenas := a.Details[detailArenas]
	if arenas <= 2 {
		return exactly(0, "the process has %d of its own accord", arenas)
	}
	retained, beyond := a.bytes(detailRetained), a.bytes(detailBeyondTwo)
	return between(0, min(retained, beyond), "%d arenas retain %s that is not in use, and %s lie outside of "+
		"the two largest",
		arenas, retained, beyond)
}

// thresholdGain: the threshold cuts the top of every arena, and maps blocks above it one by one, which go when they are
// freed. Small blocks stay.
func thresholdGain(p Process, a Amounts) (Gain, bool) {
	if text := p.Env[trimThresholdName]; text != "" {
		return effective(trimThresholdName)
	}
	least := a.bytes(detailTopBeyond)
	return between(least, max(least, a.FreeResident), "%s at the tops of arenas, beyond the 128 KiB that it "+
		"leaves at each; "+
		"the other free pages go only where blocks above 128 KiB were", least)
}

// freshProcess is an upper bound: a new process has the working set of the old one, and none of what is free between.
func freshProcess(p Process, a Amounts) (Gain, bool) {
	free := a.FreeResident.Plus(a.FreePartial)
	native := p.Amounts[readerGlibc].bytes(detailRetained)
	return between(0, free.Plus(native), "%s are free between objects, and %s in malloc's arenas; what is in "+
		"use comes again",
		free, native)
}
