// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"regexp"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// Deno uses V8 and ignores NODE_OPTIONS. Its heap cap is 4192 MiB for any limit (measured, 2.9.6). An invalid V8 flag
// stops Deno at start, so memfit sets a cap only if the profile requests one.
var _ = row(&Runtime{
	Name: "Deno", Title: "Deno", Order: 9,
	Images:   []Image{{Name: "denoland/deno", Tagged: true}},
	Commands: []string{"deno"},
	// checked with 2.9.6; the hash after the version distinguishes it from the versions of linked libraries
	Marks: []Mark{{Program: true, File: "deno*", Versions: []VersionAt{
		{Text: regexp.MustCompile(`Deno/(\d+\.\d+\.\d+)\+[0-9a-f]{7}`)},
	}}},
	LimitDetections: []LimitDetection{{}},
	Sources:         []string{denoFlags, ""}, Checks: v8Checks(denoFlags),
	Fold: foldV8,
	Heap: denoFlags, HeapFixed: []Sign{{Text: "max-old-space-size="}, {Text: "max-heap-size="}},
	Knobs: append([]Knob{{
		Name: denoFlags, Env: denoFlags, Tier: TierB, Follows: Literal,
		SkipIf: []Sign{{Text: "max-old-space-size"}, {Text: "max-heap-size"}},
		Form:   `^--max-old-space-size=[1-9][0-9]+$`,
		Derive: denoOldSpace, HeapCap: v8OldSpace, MinPercentOfLive: v8MinOfLive,
	}}, glibc(0, "", suggestArenas)...),
	FullHeap: FullHeap{
		Exits: v8Exits, Words: v8LastWords,
		Raise: "raise --max-old-space-size in DENO_V8_FLAGS (heapPercent in the profile)",
	},
	Levers: glibcLevers("call it after a burst"),
	Growth: func(f Facts, set bool) Growth {
		if !set {
			return Growth{Overhead: nodeBare}
		}
		return Growth{HeapPercent: percentOr(f.Tuning, nodePercent), Overhead: nodeBare + 3*denoSemiSpace}
	},
})

const (
	denoFlags = "DENO_V8_FLAGS"

	// denoSemiSpace is the size of one of three semi-spaces, which add 96 MiB to the old space. Deno does not detect the
	// limit: the size was equal with limits from 256Mi to 4Gi (measured, 2.9.6 on a machine with 24 GiB).
	denoSemiSpace = 32 * memory.MiB
)

func denoOldSpace(f Facts) Verdict {
	v := v8{name: "Deno", semiSpace: denoSemiSpace}.oldSpace(f)
	mib, found := strings.CutPrefix(v.Value, oldSpaceFlag+"=")
	switch {
	case f.Tuning.HeapPercent > 0 || f.Tuning.HeapLimit > 0:
		return v
	case !found:
		return notRequested()
	}
	return suggestf("Deno's heap cap is 4192 MiB whatever the limit: heapPercent: %d in the profile sets it to %s MiB "+
		"here", nodePercent, mib)
}
