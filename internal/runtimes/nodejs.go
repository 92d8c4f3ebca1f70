// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// Node.js. Measured with 12 to 25: docs/runtimes.md. V8's own default is 259 MiB for every limit up to 512Mi, so that a small pod
// is killed before V8 feels any pressure.
var nodejs = &Runtime{
	Name: "NodeJS", Title: "Node.js",
	Commands: []string{"node", "nodejs"},
	Fold:     foldV8,
	Reads:    []string{semiSpaceFlag},
	Heap:     oldSpaceFlag, HeapFixed: []Sign{{Text: "max-old-space-size="}, {Text: "max-heap-size="}}, // with -percentage they are shares
	Knobs: append([]Knob{
		{
			Name: oldSpaceFlag, Env: "NODE_OPTIONS", List: nodeOptions, Tier: TierB, Follows: Literal,
			Yields: append([]Sign{{Text: "max-old-space-size"}, {Text: "max-heap-size"}}, clusters...),
			Derive: nodeOldSpace, Caps: flagMiB(oldSpaceFlag), Room: v8Room,
		},
		{
			Name: semiSpaceFlag, Env: "NODE_OPTIONS", List: nodeOptions, Tier: TierB,
			Yields: []Sign{{Text: "max-semi-space-size"}},
			Derive: nodeSemiSpace,
		},
	}, glibc(0, "", "MALLOC_ARENA_MAX is not set unasked: arenaMax: 2 took one service from 350 to 280 MiB (article 1), but a zlib burst from 200 to 340 MB. Try it on one replica first")...),
	Growth: func(f Facts, set bool) Growth {
		percent := percentOr(f.Ask, nodePercent)
		if !set {
			percent = 50 // above 512Mi V8 takes half the limit, up to 2 or 4 GiB
		}
		return capped("Node.js", percent, nodeBare+3*semiSpace(f))
	},
	Advisories: []Advisory{
		{Before: V(0, 6, 8), Text: "Node.js before 0.6.8 keeps a slab per UDP packet, so memory grows with traffic: upgrade", Source: "node-v0.x-archive#2522"},
		{Since: V(12), Before: V(20, 3), Text: "Node.js before 20.3 does not see the memory limit on cgroup v2 and sizes its heap by the node (2 to 4 GiB): keep the injected cap, or upgrade", Source: "nodejs/node#47259"},
		{Since: V(24), Text: "Node.js 24 and later use semi-spaces four times as large (16 MiB at 1Gi, 64 MiB from 3Gi), three of them on top of the old space: nodejs.semiSpace: 16Mi brings that back for limits up to 2Gi", Source: "measured"},
	},
}

const (
	oldSpaceFlag  = "--max-old-space-size"
	semiSpaceFlag = "--max-semi-space-size"

	nodePercent = 75 // the advice of Node's own documentation: 1536 MiB on a 2 GiB machine
	// nodeBare is what a bare process takes besides its heap: 41 to 45 MiB measured, about 5 of it heap, and some room.
	nodeBare = 60 * memory.MiB
	// nodeLimitMin and nodeOldMin: below them a cap only turns a rare OOM kill into a certain heap abort (exit 134).
	nodeLimitMin = 192 * memory.MiB
	nodeOldMin   = 96 * memory.MiB
)

// clusters are programs that start several V8s, each of which would get the whole heap.
var clusters = []Sign{
	{Text: "pm2", In: InCommand, Why: "which starts several processes, and each would get the whole heap: set the flag in its configuration"},
	{Text: "pm2-runtime", In: InCommand, Why: "which starts several processes, and each would get the whole heap: set the flag in its configuration"},
	{Text: "pm2-docker", In: InCommand, Why: "which starts several processes, and each would get the whole heap: set the flag in its configuration"},
}

// foldV8 writes flags the one way: V8 takes "_" for "-" anywhere in a flag's name.
func foldV8(text string) string { return strings.ReplaceAll(text, "_", "-") }

func nodeOldSpace(f Facts) Verdict {
	if f.Version.Below(V(8)) {
		return left("Node.js before 8 may refuse the flag in NODE_OPTIONS and then does not start")
	}
	v := v8{name: "Node.js", semiSpace: semiSpace(f)}.oldSpace(f)
	if v.Value != "" {
		v.Value = oldSpaceFlag + "=" + v.Value
	}
	return v
}

func nodeSemiSpace(f Facts) Verdict {
	mib := f.Ask.SemiSpace.MiB()
	switch {
	case f.Ask.SemiSpace == 0:
		return notAsked()
	case mib < 1 || mib > 128:
		return left(fmt.Sprintf("semiSpace %s is outside 1Mi to 128Mi", f.Ask.SemiSpace))
	case !f.Version.AtLeast(V(18, 13)) || f.Version.AtLeast(V(19)) && f.Version.Below(V(20)):
		return left("Node.js before 18.13 does not start with it: declare runtime.version (18.13, or 20 and later) to get it")
	}
	return set(fmt.Sprintf("%s=%d", semiSpaceFlag, mib), "nodejs.semiSpace of the profile")
}

// v8 is a runtime with V8 in it, Node.js or Deno.
type v8 struct {
	name string
	// semiSpace is the size of one of the three semi-spaces that V8 adds on top of its old space.
	semiSpace memory.Bytes
}

// oldSpace is V8's old generation in whole MiB: the share of the limit asked for (75 %) less three semi-spaces.
func (e v8) oldSpace(f Facts) Verdict {
	if f.Ask.HeapLimit > 0 {
		return fixed(e.asked(f, f.Ask.HeapLimit, "heapLimit of the profile"))
	}
	if f.Limit == 0 {
		return noLimit("it")
	}
	if f.Limit < nodeLimitMin {
		return left(fmt.Sprintf("%s is below %s, where a heap cap does more harm than good; %s alone takes about %s: raise the limit",
			f.LimitText, nodeLimitMin, e.name, nodeBare))
	}
	percent := percentOr(f.Ask, nodePercent)
	if bad := badPercent(percent); bad != "" {
		return left(bad)
	}
	old := f.Limit.Percent(percent).Minus(3 * e.semiSpace)
	why := fmt.Sprintf("%d %% of %s less three semi-spaces of %s", percent, f.LimitText, e.semiSpace)
	if percent > nodePercent { // more than usual has to prove that it fits
		return e.asked(f, old, why)
	}
	return e.checked(f, old, why)
}

// asked checks that what the profile asks for fits below the limit together with what V8 does not count.
func (e v8) asked(f Facts, old memory.Bytes, why string) Verdict {
	if bad := badHeapLimit(f.Ask.HeapLimit); bad != "" {
		return left(bad)
	}
	young := 3 * e.semiSpace
	if need := old.Plus(young).Plus(nodeBare); f.Limit > 0 && need > f.Limit {
		return left(fmt.Sprintf("%s (%s) with %s of semi-spaces and about %s that %s takes besides is more than the limit of %s: lower it, or raise the limit",
			old, why, young, nodeBare, e.name, f.LimitText))
	}
	return e.checked(f, old, why)
}

func (v8) checked(f Facts, old memory.Bytes, why string) Verdict {
	if old < nodeOldMin && f.Ask.HeapLimit == 0 {
		return left(fmt.Sprintf("%s (%s) is below %s, where a heap cap does more harm than good: raise the limit or heapPercent", old, why, nodeOldMin))
	}
	return set(fmt.Sprint(old.MiB()), why)
}

// semiSpace is Node.js' semi-space: the user's or the profile's own, else V8's default for the limit it
// sees. Up to 512Mi it is 1 MiB. Above, V8 takes half the limit as old generation and 1/128 of that, rounded up to a power of two,
// at most 16 MiB; Node.js 24 and later take 1/32, at most 64 MiB. An unknown version is taken for a new one, which leaves more room.
func semiSpace(f Facts) memory.Bytes {
	if given := f.Given[semiSpaceFlag]; given > 0 && given <= 1024 {
		return memory.Bytes(given) * memory.MiB
	}
	if v := nodeSemiSpace(f); v.Value != "" {
		return f.Ask.SemiSpace.FloorTo(memory.MiB)
	}
	share, most := memory.Bytes(32), 64*memory.MiB
	if f.Version.Below(V(24)) {
		share, most = 128, 16*memory.MiB
	}
	seen := max(f.Cgroup, f.Limit)
	if seen <= 512*memory.MiB {
		return memory.MiB
	}
	return min(powerOfTwo((seen / 2 / share).CeilTo(memory.MiB)), most)
}

// powerOfTwo rounds b, at least 1, up to a power of two.
func powerOfTwo(b memory.Bytes) memory.Bytes {
	return 1 << bits.Len64(uint64(b-1))
}

func percentOr(a Ask, byDefault int32) int32 {
	if a.HeapPercent != 0 {
		return a.HeapPercent
	}
	return byDefault
}
