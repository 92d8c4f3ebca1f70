// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// Node.js, measured with 12 to 25: docs/evidence/runtimes.md. V8's default heap is 259 MiB for every limit up to 512Mi,
// so a small pod can be OOM-killed before V8 collects.
var _ = row(&Runtime{
	Name: "NodeJS", Title: "Node.js", Order: 2,
	Images:   []Image{{Name: "node", Tagged: true}},
	Commands: []string{"node", "nodejs"},
	Marks: []Mark{ // checked with the npm packages of 18 to 26, and Debian's package
		{Program: true, Symbol: nodeStart, Versions: nodeVersions},
		{File: "libnode.so*", Versions: nodeVersions},
	},
	LimitDetections: []LimitDetection{{}, {Since: V(12), V1: true}, {Since: V(20, 3), V1: true, V2: true}},
	Fold:            foldV8,
	Reads:           []string{semiSpaceFlag},
	Sources:         []string{"NODE_OPTIONS", ""}, Checks: v8Checks("NODE_OPTIONS"),
	// the "=" excludes the variants that end with -percentage
	Heap: oldSpaceFlag, HeapFixed: []Sign{{Text: "max-old-space-size="}, {Text: "max-heap-size="}},
	Knobs: append([]Knob{
		{
			Name: oldSpaceFlag, Env: "NODE_OPTIONS", List: nodeOptions, Tier: TierB, Follows: Literal,
			SkipIf: append([]Sign{{Text: "max-old-space-size"}, {Text: "max-heap-size"}}, processManagers...),
			Form:   `^--max-old-space-size=[1-9][0-9]+$`,
			Derive: nodeOldSpace, HeapCap: v8OldSpace, MinPercentOfLive: v8MinOfLive,
		},
		{
			Name: semiSpaceFlag, Env: "NODE_OPTIONS", List: nodeOptions, Tier: TierB,
			SkipIf: []Sign{{Text: "max-semi-space-size"}},
			Form:   `^--max-semi-space-size=[1-9][0-9]{0,2}$`,
			Derive: nodeSemiSpace,
		},
	}, glibc(0, "", "MALLOC_ARENA_MAX is not set by default, because its effect varies: arenaMax 2 reduced one "+
		"service from 350 to 280 MiB, but raised a burst of zlib from 200 to 340 MB. Try it on one replica first")...),
	Growth: func(f Facts, set bool) Growth {
		percent := percentOr(f.Tuning, nodePercent)
		if !set {
			percent = 50 // above 512Mi V8's default is half of the limit, up to 2 or 4 GiB
		}
		return Growth{HeapPercent: percent, Overhead: nodeBare + 3*semiSpace(f)}
	},
	FullHeap: FullHeap{
		Exits: v8Exits, Faults: []int32{fault}, Words: v8LastWords,
		Raise: "raise --max-old-space-size (heapPercent in the profile)",
	},
	HeapReader: amounts.V8,
	Levers: append([]Lever{
		{Action: "a full collection", Reader: amounts.V8, Gain: v8Collection,
			How: "HeapProfiler.collectGarbage of the inspector (module node:inspector), not global.gc(), which keeps freed " +
				"pages"},
		{Action: oldSpaceFlag, Knob: oldSpaceFlag, Reader: amounts.V8, Gain: nodeCapGain,
			How: "memfit sets it where it governs the pod (heapPercent or heapLimit in the profile), for new pods"},
		{Action: semiSpaceFlag + "=16", Knob: semiSpaceFlag, Reader: amounts.V8, Gain: nodeYoungGain,
			How: "nodejs.semiSpace: 16Mi in the profile, for new pods; V8 then copies more short-lived objects"},
		{Action: "malloc_trim", Unreachable: true, Reader: amounts.Glibc, Gain: trimGain, // only a native addon could call it
			How: "Node.js cannot call it: the amount only shows how much memory is free"},
	}, arenaLevers()...),
	Advisories: []Advisory{
		{Before: V(0, 6, 8), Text: "Node.js before 0.6.8 keeps a slab per UDP packet, so memory grows with traffic: upgrade",
			Source: "node-v0.x-archive#2522"},
		{Since: V(12), Before: V(20, 3),
			Text: "Node.js before 20.3 does not see the memory limit on cgroup v2 and sizes its heap by the machine's " +
				"memory, up to 2 to 4 GiB: keep the injected cap, or upgrade", Source: "nodejs/node#47259"},
		{Since: V(24), Text: "Node.js 24 and later use semi-spaces four times as large (16 MiB at 1Gi, 64 MiB from 3Gi), " +
			"three of them on top of the old space: nodejs.semiSpace restores the earlier size (4Mi at 1Gi, 16Mi from 3Gi)",
			Source: "measured"},
	},
})

// nodeStart is the symbol of int node::Start(int, char**).
const nodeStart = "_ZN4node5StartEiPPc"

// nodeVersions finds the version in constants of the program: in process.release.sourceUrl, or as a string of its own.
var nodeVersions = []VersionAt{
	{Text: regexp.MustCompile(`node-v(\d+\.\d+\.\d+)\.tar\.gz`)},
	{Text: regexp.MustCompile(`\x00v(\d+\.\d+\.\d+)\x00`)},
}

const (
	oldSpaceFlag  = "--max-old-space-size"
	semiSpaceFlag = "--max-semi-space-size"

	nodePercent = 75 // recommended by Node's documentation: 1536 MiB on a 2 GiB machine
	// nodeBare is the memory of an idle process besides its heap: 41 to 45 MiB measured, plus a margin.
	nodeBare = 60 * memory.MiB
	// nodeLimitMin and nodeOldMin are the least limit and cap. A smaller cap trades a rare OOM kill for a certain heap
	// abort (exit 134).
	nodeLimitMin = 192 * memory.MiB
	nodeOldMin   = 96 * memory.MiB
)

// processManagers are signs of programs that start several V8 processes, each of which would get the whole heap.
var processManagers = []Sign{processManager("pm2"), processManager("pm2-runtime"), processManager("pm2-docker")}

func processManager(program string) Sign {
	return Sign{Text: program, In: InCommand, UnlessDivided: true,
		Why: "which starts several processes, and each would get the whole heap: set their number with tuning.processes, " +
			"or set the flag in its configuration"}
}

// overridesWorkers is the skip reason for flags that override resourceLimits of worker threads. A worker with a limit
// of 64 MB had a heap of 112 MiB without the flag, and 429 MiB with --max-old-space-size=381 (measured, 20).
const overridesWorkers = "the profile declares that worker threads have their own limits (nodejs.workerThreads: " +
	"OwnLimits), which the flag would override (nodejs/node#43991)"

func nodeOldSpace(f Facts) Verdict {
	switch {
	case f.Version.Below(V(8)):
		return skip("Node.js before 8 may refuse the flag in NODE_OPTIONS and then does not start")
	case f.Tuning.WorkersLimited:
		return skip(overridesWorkers)
	}
	return v8{name: "Node.js", semiSpace: semiSpace(f)}.oldSpace(f)
}

func nodeSemiSpace(f Facts) Verdict {
	mib := f.Tuning.SemiSpace.MiB()
	switch {
	case f.Tuning.SemiSpace == 0:
		return notRequested()
	case f.Tuning.WorkersLimited:
		return skip(overridesWorkers)
	case mib < 1 || mib > 128:
		return skipf("semiSpace %s is outside 1Mi to 128Mi", f.Tuning.SemiSpace)
	case !nodeKnowsSemiSpace(f.Version):
		return skip("only Node.js 18.13 and later, except 19, starts with it: declare runtime.version to get it")
	}
	return set(fmt.Sprintf("%s=%d", semiSpaceFlag, mib), "nodejs.semiSpace of the profile")
}

func nodeKnowsSemiSpace(v Version) bool {
	return v.AtLeast(V(18, 13)) && (v.Below(V(19)) || v.AtLeast(V(20)))
}

// semiSpace returns the size of a semi-space of Node.js: the user's or the profile's, otherwise V8's default. The
// default is 1 MiB for limits up to 512Mi. Above that, it is 1/128 of half the limit, rounded up to a power of two, at
// most 16 MiB; in Node.js 24 and later, and for an unknown version, 1/32, at most 64 MiB.
func semiSpace(f Facts) memory.Bytes {
	if own, err := strconv.Atoi(f.Own[semiSpaceFlag]); err == nil && own > 0 && own <= 1024 {
		return memory.Bytes(own) * memory.MiB
	}
	if v := nodeSemiSpace(f); v.Value != "" {
		return f.Tuning.SemiSpace.FloorTo(memory.MiB)
	}
	share, most := memory.Bytes(32), 64*memory.MiB
	if f.Version.Below(V(24)) {
		share, most = 128, 16*memory.MiB
	}
	seen := max(f.Cgroup, f.Limit)
	if seen <= 512*memory.MiB {
		return memory.MiB
	}
	return min(1<<bits.Len64(uint64((seen/2/share).CeilTo(memory.MiB)-1)), most) //nolint:gosec // at least 1 MiB
}

// nodeCapGain returns the gain of memfit's heap cap. It is at least the excess of the old generation above the cap.
// Below the cap, how much V8 collects is unpredictable.
func nodeCapGain(p Process, a amounts.Usage) (Gain, bool) {
	const lower = "; with a lower one (heapLimit in the profile) V8 collects earlier"
	old := a.Bytes(amounts.OldInUse)
	if options := foldV8(p.Env["NODE_OPTIONS"]); strings.Contains(options, oldSpaceFlag) {
		if heap := v8OldSpace(options, p.Limit); old < heap {
			return exactGain(0, "the old generation holds %s, garbage included, and the cap in effect is %s"+lower, old, heap)
		}
		return alreadySet(oldSpaceFlag)
	}
	v := nodeOldSpace(Facts{Version: p.Version, Limit: p.Limit, Cgroup: p.Limit, LimitText: p.Limit.String()})
	heap := v8OldSpace(v.Value, p.Limit)
	switch {
	case heap == 0:
		return noGain()
	case old <= heap:
		return exactGain(0, "the old generation holds %s, garbage included, and the cap for this limit is %s: it bounds "+
			"bursts, and gives nothing back now"+lower, old, heap)
	}
	return gainBetween(old.Minus(heap), old, "the old generation holds %s, garbage included, and the cap for this limit "+
		"is %s", old, heap)
}

// nodeYoungGain returns the gain of semi-spaces of 16 MiB: the young generation is then at most three of them.
func nodeYoungGain(p Process, a amounts.Usage) (Gain, bool) {
	if !nodeKnowsSemiSpace(p.Version) {
		return noGain()
	}
	if strings.Contains(foldV8(p.Env["NODE_OPTIONS"]), semiSpaceFlag) {
		return alreadySet(semiSpaceFlag)
	}
	const kept = 3 * 16 * memory.MiB
	young := a.Bytes(amounts.YoungResident)
	if young <= kept {
		return exactGain(0, "the young generation takes only %s; with the setting it may take up to %s", young, kept)
	}
	return exactGain(young-kept, "the young generation takes %s, and with the setting at most %s", young, kept)
}

// nodeOptions parses NODE_OPTIONS: only spaces separate words; '"' quotes, and inside quotes "\" escapes.
var nodeOptions = &Grammar{Split: splitNode}

func splitNode(value string) (words []string, hazard string) {
	words, closed := splitWords(value, " ", `"`, true)
	switch {
	case strings.ContainsRune(value, '\n'):
		hazard = "contains a newline, which Node.js does not treat as a separator, so it does not start: write it on one " +
			"line (YAML: use >- instead of |)"
	case strings.ContainsRune(value, '\t'):
		hazard = "contains a tab, which Node.js does not treat as a separator, so it does not start: use spaces"
	case strings.ContainsRune(value, '\r'):
		hazard = "contains a carriage return, which Node.js does not treat as a separator: save the manifest with Unix " +
			"line endings"
	case !closed:
		hazard = "has an unclosed \" or a \\ at its end, so Node.js does not start: close the quote, or remove the \\"
	}
	return words, hazard
}
