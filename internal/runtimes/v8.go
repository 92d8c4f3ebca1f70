// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// v8Exits are the exit codes of V8's fatal handler, which aborts, or traps in some builds.
var v8Exits = []int32{Abort, trap}

var v8LastWords = []string{
	"JavaScript heap out of memory",
	"Reached heap limit", // precedes the first message, which may be cut off
	"Fatal JavaScript out of memory",
}

// v8MinOfLive is V8's [Knob.MinPercentOfLive]. Node.js aborted with caps of up to 111 % of the live heap, and did not
// with 115 % or more, while its live objects were constantly replaced (docs/evidence/runtimes.md).
const v8MinOfLive = 120

// v8 is a runtime that uses V8: Node.js or Deno.
type v8 struct {
	name      string
	semiSpace memory.Bytes // the size of one of the three semi-spaces, which V8 uses besides the old space
}

// oldSpace returns the flag for V8's old space: the profile's share of the limit, or 75 %, less three semi-spaces.
func (e v8) oldSpace(f Facts) Verdict {
	if f.Tuning.HeapLimit > 0 {
		return fixed(e.requested(f, f.Tuning.HeapLimit, "heapLimit of the profile"))
	}
	if f.Limit == 0 {
		return noLimit("it")
	}
	if f.Limit < nodeLimitMin {
		return skipf("%s is below %s, where a heap cap does more harm than good; %s alone takes about %s: raise the limit",
			f.LimitText, nodeLimitMin, e.name, nodeBare)
	}
	percent := percentOr(f.Tuning, nodePercent)
	if bad := badPercent(percent); bad != "" {
		return skip(bad)
	}
	old := f.Limit.Percent(percent).Minus(3 * e.semiSpace)
	why := fmt.Sprintf("%d %% of %s less three semi-spaces of %s", percent, f.LimitText, e.semiSpace)
	if percent > nodePercent { // may not fit, unlike the default
		return e.requested(f, old, why)
	}
	return e.checked(f, old, why)
}

// requested returns the flag for the profile's value, or a skip if the value plus the memory outside the old space
// exceeds the limit.
func (e v8) requested(f Facts, old memory.Bytes, why string) Verdict {
	if bad := badHeapLimit(f.Tuning.HeapLimit); bad != "" {
		return skip(bad)
	}
	young := 3 * e.semiSpace
	if need := old.Plus(young).Plus(nodeBare); f.Limit > 0 && need > f.Limit {
		return skipf("%s (%s) plus %s of semi-spaces and about %s for the rest of %s exceeds the limit of %s: lower "+
			"heapLimit, or raise the limit", old, why, young, nodeBare, e.name, f.LimitText)
	}
	return e.checked(f, old, why)
}

func (v8) checked(f Facts, old memory.Bytes, why string) Verdict {
	if old < nodeOldMin && f.Tuning.HeapLimit == 0 {
		return skipf("%s (%s) is below %s, where a heap cap does more harm than good: raise the limit or heapPercent",
			old, why, nodeOldMin)
	}
	return set(fmt.Sprintf("%s=%d", oldSpaceFlag, old.MiB()), why)
}

// v8Collection returns the gain of a full collection: at least the pages in V8's pool. How many objects are garbage is
// unknown before it.
func v8Collection(_ Process, a amounts.Usage) (Gain, bool) {
	pool := a.Bytes(amounts.PoolResident)
	return gainBetween(pool, a.Resident(), "V8 keeps %s of freed pages; how much of the allocated %s is garbage "+
		"is unknown before a collection", pool, a.InUse)
}

// foldV8 normalizes flags: V8 accepts "_" for "-" anywhere in the name of a flag.
func foldV8(text string) string { return strings.ReplaceAll(text, "_", "-") }

// v8OldSpace returns the old space that the last flag in text sets; 0: none, or invalid.
func v8OldSpace(text string, _ memory.Bytes) memory.Bytes {
	n, err := strconv.ParseInt(flagValue(foldV8(text), oldSpaceFlag), 10, 32)
	if err != nil {
		return 0
	}
	return memory.Bytes(n) * memory.MiB
}
