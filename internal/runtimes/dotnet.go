// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// .NET parses numbers in its environment as hexadecimal: DOTNET_GCHeapHardLimitPercent=75 means 117 and is silently
// ignored. By default it uses 75 % of the limit, so memfit sets nothing unless the profile requests it. The row is
// based on sources and documentation, not on measurements.
var _ = row(&Runtime{
	Name: "DotNet", Title: ".NET", Order: 7,
	Images: []Image{
		{Name: "dotnet/aspnet", Tagged: true}, {Name: "dotnet/runtime", Tagged: true}, {Name: "dotnet/sdk", Tagged: true},
	},
	Commands: []string{"dotnet"},
	Marks: []Mark{ // from documentation
		{File: "libcoreclr.so", Versions: []VersionAt{
			{Path: regexp.MustCompile(`Microsoft\.NETCore\.App/(\d+\.\d+\.\d+)`)},
		}},
		{Program: true, Symbol: "DotNetRuntimeInfo"}, // single-file program
	},
	LimitDetections: []LimitDetection{{}, {Since: V(3), V1: true}, {Since: V(5), V1: true, V2: true}},
	Heap:            dotnetPercentName, HeapFixed: fixedHardLimits, Checks: dotnetChecks,
	Knobs: append([]Knob{
		{
			Name: dotnetPercentName, Env: dotnetPercentName, Tier: TierB, Follows: AtStart, SkipIf: hardLimits,
			Form: `^0x[0-9A-F]{1,2}$`, Derive: dotnetPercent, HeapCap: hexPercent, MinPercentOfLive: dotnetMinOfLive,
		},
		{
			Name: dotnetLimitName, Env: dotnetLimitName, Tier: TierB, SkipIf: hardLimits,
			Form: `^0x[0-9A-F]+$`, Derive: dotnetLimit, HeapCap: hexBytes, MinPercentOfLive: dotnetMinOfLive,
		},
		{
			Name: dotnetConserveName, Env: dotnetConserveName, Tier: TierB,
			SkipIf: []Sign{{Text: "COMPlus_GCConserveMemory", In: AsVariable}},
			Form:   `^0x[0-9]$`, Derive: dotnetConserve,
		},
	}, glibc(0, "", suggestArenas)...),
	Levers: glibcLevers("call it after a burst"),
	Growth: func(f Facts, set bool) Growth {
		percent := dotnetPercentOwn
		if set {
			percent = f.Tuning.HeapPercent
		}
		return Growth{HeapPercent: percent}
	},
	FullHeap: FullHeap{
		Faults: []int32{Abort}, // any unhandled exception aborts
		Words:  []string{"OutOfMemoryException"},
		Raise:  "raise DOTNET_GCHeapHardLimitPercent (heapPercent in the profile)",
	},
	Advisories: []Advisory{
		{Before: V(3), Text: ".NET Core before 3.0 does not size its heap by the memory limit: upgrade",
			Source: "dotnet/runtime"},
		{Since: V(3), Before: V(5),
			Text:   ".NET Core 3 does not see the memory limit on cgroup v2: upgrade to .NET 5 or later",
			Source: "dotnet/runtime#30337"},
		{Since: V(9), Before: V(10, 0, 11),
			Text: ".NET 9.0 to 10.0.10 misread the limit where the container sees its cgroup as the root (host cgroup " +
				"namespace): upgrade to 10.0.11", Source: "dotnet/runtime#130092"},
		{Since: V(9), Text: ".NET 9 and later adapt the Server GC's heap to the load (DATAS), which lowers the working set " +
			"by itself", Source: "datas.md"},
	},
})

const (
	dotnetPercentName  = "DOTNET_GCHeapHardLimitPercent"
	dotnetLimitName    = "DOTNET_GCHeapHardLimit"
	dotnetConserveName = "DOTNET_GCConserveMemory"

	dotnetPercentOwn int32 = 75 // its own default since .NET Core 3.0

	dotnetMinOfLive = 120 // see [Knob.MinPercentOfLive]; as for V8, not measured
)

// hardLimits are signs of the user's own heap limits. Limits per heap (SOH, LOH, POH) combined with memfit's may
// prevent a start.
var hardLimits = []Sign{
	{Text: "DOTNET_GCHeapHardLimit*", In: AsVariable},
	{Text: "COMPlus_GCHeapHardLimit*", In: AsVariable},
	{Text: "DOTNET_GCHeapAffinitizeMask", In: AsVariable},
}

// fixedHardLimits are signs of the user's heap limits in bytes.
var fixedHardLimits = []Sign{
	{Text: "DOTNET_GCHeapHardLimit", In: AsVariable}, {Text: "COMPlus_GCHeapHardLimit", In: AsVariable},
	{Text: "DOTNET_GCHeapHardLimitSOH", In: AsVariable}, {Text: "COMPlus_GCHeapHardLimitSOH", In: AsVariable},
}

const dotnetPrefix = ".NET before 5 does not read DOTNET_ variables: upgrade, or set the COMPlus_ variable in the " +
	"pod template"

func dotnetPercent(f Facts) Verdict {
	p := f.Tuning.HeapPercent
	switch {
	case p == 0 && f.Tuning.HeapLimit == 0 && !f.Version.Below(V(5)):
		return suggestShare(f, ".NET", dotnetPercentOwn, dotnetPercentOwn)
	case p == 0:
		return notRequested()
	case f.Version.Below(V(5)):
		return skip(dotnetPrefix)
	case p == 100:
		return skip("100 % is not a hard limit to .NET, which drops it: set less than 100")
	case badShare(f) != "":
		return skip(badShare(f))
	}
	return set(fmt.Sprintf("0x%X", f.share(p)/10), shareWhy(f, p)+", in hexadecimal as .NET reads it")
}

func dotnetLimit(f Facts) Verdict {
	switch {
	case f.Tuning.HeapLimit == 0:
		return notRequested()
	case f.Version.Below(V(5)):
		return skip(dotnetPrefix)
	case badHeapLimit(f.Tuning.HeapLimit) != "":
		return skip(badHeapLimit(f.Tuning.HeapLimit))
	case f.Limit > 0 && f.Tuning.HeapLimit >= f.Limit:
		return skipf("heapLimit %s is not below the limit of %s: lower it, or raise the limit",
			f.Tuning.HeapLimit, f.LimitText)
	}
	return fixed(set(fmt.Sprintf("0x%X", int64(f.Tuning.HeapLimit)),
		fmt.Sprintf("heapLimit %s of the profile, in hexadecimal as .NET reads it", f.Tuning.HeapLimit)))
}

func dotnetConserve(f Facts) Verdict {
	switch n := f.Tuning.ConserveMemory; {
	case n == nil:
		return notRequested()
	case f.Version.Below(V(6)):
		return skip(".NET before 6 does not read it from the environment")
	case *n < 0 || *n > 9:
		return skipf("conserveMemory %d is outside 0 to 9", *n)
	default:
		return set(fmt.Sprintf("0x%X", *n), "dotnet.conserveMemory of the profile")
	}
}

// hexBytes parses a heap limit of .NET in bytes.
func hexBytes(text string, _ memory.Bytes) memory.Bytes { return memory.Bytes(hex(text)) }

// hexPercent parses a heap limit of .NET in percent of limit.
func hexPercent(text string, limit memory.Bytes) memory.Bytes {
	percent := hex(text)
	if percent > 100 {
		return 0
	}
	return limit.Percent(int32(percent)) //nolint:gosec // at most 100
}

func hex(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
