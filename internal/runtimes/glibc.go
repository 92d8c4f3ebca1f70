// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"strconv"

	"github.com/memfit/memfit/internal/memory"
)

// Names of the glibc settings. A tunable with the same meaning in GLIBC_TUNABLES wins over the variable.
const (
	arenaMaxName      = "MALLOC_ARENA_MAX"
	trimThresholdName = "MALLOC_TRIM_THRESHOLD_" // the underscore at the end is part of the name
)

// Bounds of the API, checked again because the API server does not validate a profile from a file.
const (
	arenaMaxBound                  = 64
	trimThresholdMin               = 64 * memory.KiB
	trimThresholdMax               = memory.GiB
	heapPercentMin, heapPercentMax = 10, 100
	heapLimitMin                   = 16 * memory.MiB
)

// otherAllocators are signs that malloc is not glibc's, so that its settings have no effect.
var otherAllocators = []Sign{
	{Text: "libjemalloc", Why: "and jemalloc ignores glibc's settings"},
	{Text: "libtcmalloc", Why: "and tcmalloc ignores glibc's settings"},
	{Text: "libmimalloc", Why: "and mimalloc ignores glibc's settings"},
}

// glibc returns glibc's two malloc settings. No version of glibc refuses them, and other allocators ignore them.
// byDefault is the number of arenas set by default, with reason why; 0: none, and try is the suggestion.
func glibc(byDefault int32, why, try string) []Knob {
	return []Knob{
		mallocKnob(arenaMaxName, "glibc.malloc.arena_max", `^[1-9][0-9]?$`,
			func(f Facts) Verdict { return arenaMax(f, byDefault, why, try) }),
		mallocKnob(trimThresholdName, "glibc.malloc.trim_threshold", `^[1-9][0-9]+$`, trimThreshold),
	}
}

func mallocKnob(name, tunable, form string, derive func(Facts) Verdict) Knob {
	return Knob{
		Name: name, Env: name, Tier: TierA, Form: form, Derive: derive,
		SkipIf: append([]Sign{{Text: tunable, Why: "which wins over " + name}}, otherAllocators...),
	}
}

func arenaMax(f Facts, byDefault int32, why, try string) Verdict {
	asked := f.Tuning.ArenaMax
	switch {
	case asked == nil && f.NoGlibc != "":
		return notRequested()
	case asked == nil && byDefault > 0:
		return set(strconv.Itoa(int(byDefault)), why)
	case asked == nil && try != "":
		return suggest(try)
	case asked == nil || *asked == 0:
		return notRequested()
	case f.NoGlibc != "":
		return skip(f.NoGlibc)
	case *asked < 0 || *asked > arenaMaxBound:
		return skipf("arenaMax %d is outside 1 to %d", *asked, arenaMaxBound)
	}
	return set(strconv.Itoa(int(*asked)), "arenaMax of the profile")
}

// trimThreshold returns the threshold in bytes, without a unit: glibc before 2.40 parses "128k" as 128 bytes.
func trimThreshold(f Facts) Verdict {
	asked := f.Tuning.TrimThreshold
	switch {
	case asked == 0:
		return notRequested()
	case f.NoGlibc != "":
		return skip(f.NoGlibc)
	case asked < trimThresholdMin || asked > trimThresholdMax:
		return skipf("trimThreshold %s is outside %s to %s", asked, trimThresholdMin, trimThresholdMax)
	}
	return set(strconv.FormatInt(int64(asked), 10), "trimThreshold of the profile")
}

// suggestArenas is the suggestion for runtimes in which fewer arenas helped some programs and not others.
const suggestArenas = "MALLOC_ARENA_MAX is not set by default: with many live threads on a large node arenaMax: 2 " +
	"reduced a C program from 1076 to about 600 MB, but other programs retained more and allocated half as fast. Try it " +
	"on one replica first"

// badPercent returns the error of the requested heapPercent; empty if valid.
func badPercent(p int32) string {
	if p >= heapPercentMin && p <= heapPercentMax {
		return ""
	}
	return fmt.Sprintf("heapPercent %d is outside %d to %d", p, heapPercentMin, heapPercentMax)
}

// badHeapLimit returns the error of the requested heapLimit; empty if valid or unset.
func badHeapLimit(b memory.Bytes) string {
	if b == 0 || b >= heapLimitMin {
		return ""
	}
	return fmt.Sprintf("heapLimit %s is below %s", b, heapLimitMin)
}

// badShare returns why the requested share of the limit cannot be a heap cap; empty if it can. A heap below the minimum
// of heapLimit is too small: HotSpot does not start with less than 2 to 4 MiB ("Too small maximum heap", measured).
func badShare(f Facts) string {
	heap := f.Limit.Percent(f.Tuning.HeapPercent)
	switch bad := badPercent(f.Tuning.HeapPercent); {
	case bad != "":
		return bad
	case f.Limit == 0:
		return "the container has no memory limit, so it would be a share of the whole node: set resources.limits.memory"
	case heap < heapLimitMin || f.share(f.Tuning.HeapPercent) < 10:
		return fmt.Sprintf("%s (%d %% of %s) is too small a heap to start with: raise the limit or heapPercent", heap,
			f.Tuning.HeapPercent, f.LimitText)
	}
	return ""
}

// noLimit returns the verdict for a setting that needs a limit, in a container without one.
func noLimit(name string) Verdict {
	return skipf("the container has no memory limit to derive it from: set resources.limits.memory, and new pods get %s",
		name)
}

func percentOr(a Tuning, byDefault int32) int32 {
	if a.HeapPercent != 0 {
		return a.HeapPercent
	}
	return byDefault
}

// suggestShare returns the verdict of a heap knob that the profile does not set. By default the runtime's heap may grow
// to own percent of the container's limit. If this exceeds most percent of one process's limit, suggestShare suggests
// heapPercent.
func suggestShare(f Facts, name string, own, most int32) Verdict {
	if heap := f.Cgroup.Percent(own); f.Limit > 0 && heap > f.Limit.Percent(most) {
		return suggestf("each heap may grow to %s (%d %% of %s, the default of %s), above %d %% of the limit of one "+
			"process, %s: set heapPercent: %d in the profile", heap, own, f.Cgroup, name, most, f.LimitText, most)
	}
	return notRequested()
}
