// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"strconv"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// Go. GOMEMLIMIT is set in bytes without a unit: Kubernetes' "512Mi" stops a Go program at start.
var _ = row(&Runtime{
	Name: "Go", Title: "Go", Order: 4,
	Images: []Image{
		{Name: "golang", Tagged: true}, {Name: "caddy"}, {Name: "traefik"}, {Name: "etcd"}, {Name: "prometheus"},
	},
	Heap: "GOMEMLIMIT", HeapByProgram: "AUTOMEMLIMIT", Reads: []string{"GOGC"}, Checks: goChecks,
	// stripped programs have this section; only packers (upx) hide it
	Marks:           []Mark{{Program: true, Section: ".go.buildinfo", Versions: []VersionAt{{BuildInfo: true}}}},
	LimitDetections: []LimitDetection{{}}, // no version detects the limit
	Knobs: append([]Knob{
		goMemLimit,
		{
			Name: "AUTOMEMLIMIT", Env: "AUTOMEMLIMIT", Tier: TierB,
			SkipIf: append([]Sign{
				{Text: "GOMEMLIMIT", In: AsVariable, Why: "which disables the automemlimit library"},
			}, ownsLimit...),
			Form:   `^(0\.[0-9]+|1)$`,
			Derive: autoMemLimit,
		},
		{Name: "GOGC", Env: "GOGC", Tier: TierB, Needs: "GOMEMLIMIT", Form: `^off$`, Derive: gcOnlyAtLimit},
	}, cgoOnly(glibc(0, "", ""))...),
	Growth: func(f Facts, set bool) Growth {
		if !set && !f.Tuning.AutoMemLimit {
			return Growth{}
		}
		return Growth{HeapPercent: percentOr(f.Tuning, goPercent(f)), Soft: !collectsOnlyAtLimit(f)}
	},
	HeapReader: amounts.Go,
	Levers: append([]Lever{
		{Action: "debug.FreeOSMemory", Reader: amounts.Go, Gain: goFree,
			How: "call it after a burst; by itself the runtime gives free memory back within minutes, or near GOMEMLIMIT"},
		{Action: "GOMEMLIMIT", Knob: "GOMEMLIMIT", Reader: amounts.Go, Gain: goLimitGain,
			How: "memfit sets it where it governs the pod (heapPercent or heapLimit in the profile), for new pods"},
	}, glibcLevers("call it through cgo after a burst")...),
	Advisories: []Advisory{
		{Before: V(1, 19), Text: "Go before 1.19 does not know GOMEMLIMIT: build with a newer Go",
			Source: "Go 1.19 release notes"},
		{Since: V(1, 12), Before: V(1, 16),
			Text:   "Go 1.12 to 1.15 give memory back lazily (MADV_FREE), so RSS looks higher than it is",
			Source: "runtime/extern.go"},
		{Since: V(1, 25), Text: "Go 1.25 and later set GOMAXPROCS from the CPU limit, which changes how much the collector " +
			"may run", Source: "doc/godebug.md"},
	},
})

// collectsOnlyAtLimit reports whether GOGC is off, by the user or otherwise by the profile. With GOGC on, GOMEMLIMIT
// matters only if the heap between two collections, about twice the live heap, would exceed it.
func collectsOnlyAtLimit(f Facts) bool {
	if own, set := f.Own["GOGC"]; set {
		return own == "off"
	}
	return f.Tuning.OnlyAtLimit
}

// ownsLimit are signs of flags by which the owner decides about the program's memory limit. The first covers the flags
// for the automemlimit library: --auto-gomemlimit.ratio, --no-auto-gomemlimit, --enable-feature=auto-gomemlimit
// (Prometheus), --auto-gomemlimit-ratio (kube-state-metrics), --enable-auto-gomemlimit (Thanos). GOMEMLIMIT would
// disable the library, which adapts to a resize; and an owner who disabled it wants no memory limit.
var ownsLimit = []Sign{
	{Text: "auto-gomemlimit",
		Why: "so its owner decided how the program limits its memory: set GOMEMLIMIT in the pod to overrule that"},
	{Text: "--max-go-memory", Why: "which wins over GOMEMLIMIT (CockroachDB)"},
}

// goMemLimit is also set for an unknown runtime, because other programs ignore it.
var goMemLimit = Knob{
	Name: "GOMEMLIMIT", Env: "GOMEMLIMIT", Tier: TierA, Follows: Literal,
	SkipIf: append([]Sign{
		{Text: "AUTOMEMLIMIT", In: AsVariable,
			Why: "so the program follows its limit itself, and GOMEMLIMIT would disable that"},
	}, ownsLimit...),
	Form:    `^[1-9][0-9]*$`,
	SoftCap: goMemory,
	Derive: func(f Facts) Verdict {
		if f.Tuning.AutoMemLimit {
			return notRequested()
		}
		return memLimit(f)
	},
}

// cgoOnly returns glibc's knobs with a skip for programs that do not use cgo, because Go has its own allocator.
func cgoOnly(knobs []Knob) []Knob {
	for i := range knobs {
		derive := knobs[i].Derive
		knobs[i].Derive = func(f Facts) Verdict {
			if !f.Tuning.Cgo {
				f.NoGlibc = "Go has its own allocator: set go.cgo: Used if the program links C code"
			}
			return derive(f)
		}
	}
	return knobs
}

// goFree returns the gain of debug.FreeOSMemory: at least the spans without objects, and the garbage of its collection.
func goFree(_ Process, a amounts.Usage) (Gain, bool) {
	return gainBetween(a.Returnable, a.Resident(), "%s of spans hold no objects; how much of %s of objects is garbage "+
		"is unknown before a collection", a.Returnable, a.Bytes(amounts.Objects))
}

// goLimitEffect returns no gain, because GOMEMLIMIT is already set, and the cost of collections. If the limit leaves
// less than half of the live heap for allocations between two collections, these are at least twice as frequent as with
// GOGC=100: the gain then has a limit and says to raise it.
func goLimitEffect(p Process, a amounts.Usage, text string) (Gain, bool) {
	limit := goMemory(text)
	live := a.Bytes(amounts.Live)
	if limit == 0 || live == 0 {
		return alreadySet("GOMEMLIMIT")
	}
	// As the runtime computes its heap goal (memoryLimitHeapGoal in runtime/mgcpacer.go).
	beside := a.Bytes(amounts.MappedReady).Minus(a.Bytes(amounts.HeapIdle)).Minus(a.Bytes(amounts.Objects))
	headroom := max(limit.Percent(3), memory.MiB)
	left := limit.Minus(beside).Minus(headroom).Minus(live)
	paced := goPaced(p.Env["GOGC"], live)
	cost := goCost(p, a, limit, paced)
	if paced <= left { // GOGC triggers collections before the limit does
		cost.Saved = 0
	}
	if left >= min(live/2, paced) {
		g, ok := alreadySet("GOMEMLIMIT")
		if g.Cost = cost; cost.Saved >= worthSaving {
			g.Why += "; " + cost.String()
		}
		return g, ok
	}
	// the GOMEMLIMIT that leaves as much as the live heap for allocations, and the headroom of 3 %
	runtime := beside.Plus(live).Plus(live)
	eased := max(memory.Bytes(float64(runtime)/0.97), runtime.Plus(memory.MiB))
	at, share, took := memory.Bytes(0), "", ""
	if p.Limit > 0 {
		at = memory.Bytes(float64(eased) * (float64(p.Limit) / float64(limit))).CeilTo(memory.MiB)
		share = fmt.Sprintf("; at its share, a limit of %s", at)
	}
	if cost.Collector > 0 {
		took = cost.String() + "; "
	}
	g, ok := exactGain(0, "the last collection found %s alive, which leaves %s of GOMEMLIMIT=%s: %sa higher one helps "+
		"(%s leaves as much as is alive%s)", live, left, limit, took, eased, share)
	g.Limit, g.Cost = at, cost
	return g, ok
}

const (
	minCollections = 16 // with fewer, the start of a program dominates

	// goFilled is the percentage of additional memory that is used before a collection: the limit has a headroom of 3 %,
	// and a collection begins at 70 to 95 % of the way to its goal (runtime/mgcpacer.go).
	goFilled = 80
)

// goCost returns the collection cost of GOMEMLIMIT. paced is the allocation between two collections by GOGC alone.
func goCost(p Process, a amounts.Usage, limit, paced memory.Bytes) Cost {
	share, known := collectorShare(a)
	collections := a.Details[amounts.Collections]
	if !known || collections < minCollections {
		return Cost{}
	}
	more := MoreLimit
	if p.Limit > limit {
		more = memory.Bytes(float64(more) * (float64(limit) / float64(p.Limit)))
	}
	between := a.Bytes(amounts.Allocated) / memory.Bytes(collections)
	return Cost{Collector: share, Saved: share * collectionsSaved(between, more.Percent(goFilled), paced)}
}

// goPaced returns the allocation between two collections by GOGC alone, a percentage of the live heap.
func goPaced(text string, live memory.Bytes) memory.Bytes {
	percent, err := strconv.ParseInt(text, 10, 32)
	switch {
	case text == "off" || err == nil && percent < 0:
		return memory.Max
	case err != nil:
		percent = 100 // also the runtime's default
	}
	return live.Percent(int32(percent))
}

// goMemory returns a value of GOMEMLIMIT in bytes; 0: unlimited or invalid.
func goMemory(text string) memory.Bytes {
	limit, _, _ := goBytes(text)
	return limit
}

// goLimitGain returns the gain of memfit's GOMEMLIMIT: the runtime's excess above the limit, as far as it is free or
// garbage.
func goLimitGain(p Process, a amounts.Usage) (Gain, bool) {
	if text := p.Env["GOMEMLIMIT"]; text != "" {
		return goLimitEffect(p, a, text)
	}
	limit := goMemory(memLimit(Facts{Version: p.Version, Limit: p.Limit, LimitText: p.Limit.String()}).Value)
	held := a.Bytes(amounts.MappedReady)
	switch {
	case limit == 0:
		return noGain()
	case held <= limit:
		return exactGain(0, "the runtime holds %s, and its limit would be %s: it bounds bursts, and gives nothing back now",
			held, limit)
	}
	return gainBetween(min(a.Returnable, held-limit), held-limit, "the runtime holds %s, and its limit would be %s; %s "+
		"of it hold no objects", held, limit, a.Returnable)
}

// goLimitMin is the least container limit for GOMEMLIMIT. 10 % of a smaller one are less than the binary and its
// stacks.
const goLimitMin = 64 * memory.MiB

// goPercent returns GOMEMLIMIT's default share of the limit. It leaves 10 % for memory outside of the Go runtime (the
// binary, mmap), as the automemlimit library does, within the 5 to 10 % of Go's own guide; with cgo 20 %.
func goPercent(f Facts) int32 {
	if f.Tuning.Cgo {
		return 80
	}
	return 90
}

func tooSmallForGo(f Facts) Verdict {
	return skipf("%s is below %s, where the part of the limit that Go cannot see is too large for a soft limit to help: "+
		"raise the limit", f.LimitText, goLimitMin)
}

func memLimit(f Facts) Verdict {
	switch {
	case f.Version.Below(V(1, 19)):
		return skip("Go before 1.19 does not read it")
	case f.Tuning.HeapLimit > 0:
		return requestedMemLimit(f)
	case f.Limit == 0:
		return noLimit("GOMEMLIMIT")
	case f.Limit < goLimitMin:
		return tooSmallForGo(f)
	}
	percent := percentOr(f.Tuning, goPercent(f))
	if bad := badPercent(percent); bad != "" {
		return skip(bad)
	}
	v := set(strconv.FormatInt(int64(f.Limit.Percent(percent)), 10), fmt.Sprintf("%d %% of %s", percent, f.LimitText))
	if percent == 100 {
		v.Warning = fmt.Sprintf("GOMEMLIMIT equals the limit of %s: nothing is left for memory that Go cannot see, so a "+
			"live heap near it is killed", f.LimitText)
	}
	return v
}

func requestedMemLimit(f Facts) Verdict {
	if f.Limit > 0 && f.Tuning.HeapLimit > f.Limit {
		return skipf("heapLimit %s is above the limit of %s: lower it, or raise the limit", f.Tuning.HeapLimit, f.LimitText)
	}
	if bad := badHeapLimit(f.Tuning.HeapLimit); bad != "" {
		return skip(bad)
	}
	return fixed(set(strconv.FormatInt(int64(f.Tuning.HeapLimit), 10), "heapLimit of the profile"))
}

// autoMemLimit returns AUTOMEMLIMIT, the fraction of the current limit that the program's automemlimit library sets.
func autoMemLimit(f Facts) Verdict {
	percent := percentOr(f.Tuning, goPercent(f))
	switch {
	case !f.Tuning.AutoMemLimit:
		return notRequested()
	case f.Tuning.HeapLimit > 0:
		return skipf("it is a share of the limit and excludes heapLimit %s: use heapPercent, or go.memoryLimitBy: GOMEMLIMIT",
			f.Tuning.HeapLimit)
	case badPercent(percent) != "":
		return skip(badPercent(percent))
	case f.Limit > 0 && f.Limit < goLimitMin:
		return tooSmallForGo(f)
	case f.share(percent) == 0:
		return skipf("%s is less than a thousandth of the limit: raise the limit", f.LimitText)
	}
	why := fmt.Sprintf("%d %% of the limit, which the program's automemlimit library reads", percent)
	if f.Cgroup > f.Limit {
		why = shareWhy(f, percent)
	}
	return set(strconv.FormatFloat(float64(f.share(percent))/1000, 'f', -1, 64), why)
}

// gcOnlyAtLimit needs GOMEMLIMIT: without it the collector would never run.
func gcOnlyAtLimit(f Facts) Verdict {
	if !f.Tuning.OnlyAtLimit {
		return notRequested()
	}
	v := set("off", "go.gc: OnlyAtLimit of the profile")
	v.Warning = "GOGC=off: the collector runs only near GOMEMLIMIT; a live heap above it becomes a severe slowdown " +
		"instead of an OOM kill"
	return v
}
