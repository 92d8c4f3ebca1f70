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
	return slices.ContainsFunc(r.Knobs, func(k Knob) bool { return k.Caps != nil })
}

// BelowLiveHeap returns why a value is too small for the live heap of running replicas; empty: it fits, or unknown.
func (k *Knob) BelowLiveHeap(v Verdict, f Facts) string {
	if f.Live == 0 || k.Caps == nil {
		return ""
	}
	heap := k.Caps(v.Value, f.Cgroup)
	need := f.Live.Percent(k.MinPercentOfLive)
	if heap == 0 || heap >= need || f.Proven > 0 && heap >= f.Proven {
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

// remedy returns what the owner can do for a large enough heap.
func (k *Knob) remedy(v Verdict, f Facts, need memory.Bytes) string {
	if limit := k.limitFor(f, need); limit > 0 && !v.Fixed {
		return fmt.Sprintf("raise the limit to %s", limit)
	}
	return "ask for that much, or raise the limit"
}

// limitFor returns the least limit, in steps of 16Mi, that gives a heap of this size. 0: none.
func (k *Knob) limitFor(f Facts, need memory.Bytes) memory.Bytes {
	const step, tries = 16 * memory.MiB, 64
	parts := f.parts()
	beside := f.Cgroup.Minus(f.Limit * parts) // memory-backed volumes and reserve
	f.Limit = max(f.Limit, need).CeilTo(step)
	for range tries {
		f.Cgroup = (f.Limit * parts).Plus(beside)
		v := k.Derive(f)
		if v.Value == "" || v.Fixed {
			return 0
		}
		heap := k.Caps(v.Value, f.Cgroup)
		if heap >= need {
			return f.Cgroup
		}
		f.Limit = f.Limit.Plus(max(step, (need - heap).CeilTo(step)))
	}
	return 0
}

// HeapCapIn returns the heap cap in a process's environment, as far as memfit's variables set it; 0: none. value
// returns the text of a variable, shares are of limit. Of several the smallest counts.
func HeapCapIn(value func(name string) string, limit memory.Bytes) memory.Bytes {
	var least memory.Bytes
	for _, r := range table {
		for i := range r.Knobs {
			k := &r.Knobs[i]
			if k.Caps != nil {
				least = lesser(least, k.Caps(value(k.Env), limit))
			}
		}
	}
	return least
}

// CollectAt returns the heap size at which the runtime collects all it can, by the process's settings: words of its
// command line, or NAME=value of its environment; 0: unknown. Shares are of limit. Of several the smallest counts.
func (r *Runtime) CollectAt(settings []string, limit memory.Bytes) memory.Bytes {
	var least memory.Bytes
	for i := range r.Knobs {
		k := &r.Knobs[i]
		for _, text := range settings {
			text, named := strings.CutPrefix(text, k.Env+"=")
			var heap memory.Bytes
			switch {
			case named == (k.List != nil): // list words have no variable name, values do
			case k.Caps != nil:
				heap = k.Caps(text, limit)
			case k.Turns != nil:
				heap = k.Turns(text)
			}
			least = lesser(least, heap)
		}
	}
	return least
}

// lesser returns the smaller of two heaps; 0: unknown.
func lesser(a, b memory.Bytes) memory.Bytes {
	if a > 0 && b > 0 {
		return min(a, b)
	}
	return max(a, b)
}

// flagPercent parses a flag with a share of the limit, such as "60.0".
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
