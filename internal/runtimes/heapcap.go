// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// CapsHeap reports whether the runtime has a knob for a hard heap cap. Go has none: GOMEMLIMIT is soft.
func (r *Runtime) CapsHeap() bool {
	return slices.ContainsFunc(r.Knobs, func(k Knob) bool { return k.HeapCap != nil })
}

// BelowLiveHeap returns why a heap cap is too small for the live heap of running replicas; empty: it is large enough,
// or the live heap is unknown.
func (k *Knob) BelowLiveHeap(v Verdict, f Facts) string {
	if f.Live == 0 || k.HeapCap == nil {
		return ""
	}
	heap := k.HeapCap(v.Value, f.Cgroup)
	need := f.Live.Percent(k.MinPercentOfLive)
	if heap == 0 || heap >= need || f.ProvenHeapCap > 0 && heap >= f.ProvenHeapCap {
		return ""
	}
	each := ""
	if f.Processes > 1 {
		each = fmt.Sprintf(" in each of %d processes", f.Processes)
	}
	return fmt.Sprintf("pods without a heap cap were seen with a live heap of up to %s%s, which takes a cap of %s, and "+
		"%s (%s) is less, so the process might run out of heap: %s",
		f.Live, each, need.CeilTo(memory.MiB), heap, v.Why, k.remedy(v, f, need))
}

// remedy returns what the owner can do to get a large enough heap.
func (k *Knob) remedy(v Verdict, f Facts, need memory.Bytes) string {
	if limit := k.limitFor(f, need); limit > 0 && !v.Fixed {
		return fmt.Sprintf("raise the limit to %s", limit)
	}
	return "set that much in the profile, or raise the limit"
}

// limitFor returns the least limit of the container, in steps of 16Mi, whose derived heap cap is at least need; 0:
// none.
func (k *Knob) limitFor(f Facts, need memory.Bytes) memory.Bytes {
	const step, tries = 16 * memory.MiB, 64
	parts := f.parts()
	beside := f.Cgroup.Minus(f.Limit * parts) // volumes and the reserve
	f.Limit = max(f.Limit, need).CeilTo(step)
	for range tries {
		f.Cgroup = (f.Limit * parts).Plus(beside)
		v := k.Derive(f)
		if v.Value == "" || v.Fixed {
			return 0
		}
		heap := k.HeapCap(v.Value, f.Cgroup)
		if heap >= need {
			return f.Cgroup
		}
		f.Limit = f.Limit.Plus(max(step, (need - heap).CeilTo(step)))
	}
	return 0
}

// HeapCapIn returns the smallest heap cap that the variables of all runtimes' knobs set; 0: none. value returns the
// text of a variable; percentages are of limit.
func HeapCapIn(value func(name string) string, limit memory.Bytes) memory.Bytes {
	var least memory.Bytes
	for _, r := range table {
		for i := range r.Knobs {
			k := &r.Knobs[i]
			if k.HeapCap != nil {
				least = smallerKnown(least, k.HeapCap(value(k.Env), limit))
			}
		}
	}
	return least
}

// CollectAt returns the heap size above which the runtime collects as much as it can: the smallest hard or soft cap in
// settings, which are words of the command line and NAME=value of the environment. Percentages are of limit. 0:
// unknown.
func (r *Runtime) CollectAt(settings []string, limit memory.Bytes) memory.Bytes {
	var least memory.Bytes
	for i := range r.Knobs {
		k := &r.Knobs[i]
		for _, text := range settings {
			text, named := strings.CutPrefix(text, k.Env+"=")
			var heap memory.Bytes
			switch {
			case named == (k.List != nil): // a list's words come without the variable's name, other values with it
			case k.HeapCap != nil:
				heap = k.HeapCap(text, limit)
			case k.SoftCap != nil:
				heap = k.SoftCap(text)
			}
			least = smallerKnown(least, heap)
		}
	}
	return least
}

// smallerKnown returns the smaller of two sizes; 0 is unknown.
func smallerKnown(a, b memory.Bytes) memory.Bytes {
	if a > 0 && b > 0 {
		return min(a, b)
	}
	return max(a, b)
}

// flagPercent returns a [Knob.HeapCap] for a flag with a percentage of the limit, such as "60.0".
func flagPercent(flag string) func(string, memory.Bytes) memory.Bytes {
	return func(text string, limit memory.Bytes) memory.Bytes {
		percent, err := strconv.ParseFloat(flagValue(text, flag), 32)
		if err != nil || percent <= 0 || percent > 100 {
			return 0
		}
		if ram, err := strconv.ParseInt(flagValue(text, maxRAMBytesName), 10, 64); err == nil && ram > 0 {
			limit = memory.Bytes(ram)
		}
		return limit.Percent(int32(10*percent)) / 10
	}
}

// flagValue returns the text after the last "flag=".
func flagValue(text, flag string) string {
	i := strings.LastIndex(text, flag+"=")
	if i < 0 {
		return ""
	}
	value := text[i+len(flag)+1:]
	if end := strings.IndexAny(value, " \t\n\r\"',"); end >= 0 {
		value = value[:end]
	}
	return value
}
