// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// Brook is synthetic. It reads BROOK_OPTIONS. Its heap grows to a cap, 1 GiB by default, independent of the limit.
var _ = row(&Runtime{
	Name: "Brook", Title: "Brook",
	Commands: []string{"brook", "brookd"},
	Heap:     brookHeapFlag, HeapFixed: []Sign{{Text: brookHeapFlag + "="}},
	Knobs: append([]Knob{{
		Name: brookHeapFlag, Env: "BROOK_OPTIONS", List: brookOptions, Tier: TierB, Follows: Literal,
		SkipIf: []Sign{{Text: brookHeapFlag}},
		Form:   `^--heap-bytes=[1-9][0-9]+$`,
		Derive: brookHeap, HeapCap: brookCap, MinPercentOfLive: 120,
	}}, glibc(0, "", "")...),
	NoHeapLimit: brookNoHeapLimit,
	Growth: func(f Facts, set bool) Growth {
		if !set {
			return Growth{Overhead: brookBare}
		}
		return Growth{HeapPercent: percentOr(f.Tuning, brookPercent), Overhead: brookBare}
	},
	FullHeap: FullHeap{
		Exits: []int32{99}, Words: []string{"brook: the heap is full"},
		Raise: "raise --heap-bytes (heapPercent in the profile)",
	},
	Advisories: []Advisory{
		{Before: V(2), Text: "Brook before 2 does not read BROOK_OPTIONS: upgrade", Source: "synthetic"},
	},
	Advice: "Brook gives memory back at its checkpoints only: take one every hour",
})

const (
	brookHeapFlag    = "--heap-bytes"
	brookNoHeapLimit = "is not for Brook, whose page size depends on the machine: use heapPercent"

	brookPercent = 70              // of the limit; the rest is for its pages and stacks
	brookBare    = 24 * memory.MiB // memory of an idle process besides its heap
)

// brookOptions is the grammar of BROOK_OPTIONS: words separated by spaces. With a comma, Brook exits at start.
var brookOptions = &Grammar{
	Split: func(value string) (words []string, hazard string) {
		if strings.Contains(value, ",") {
			hazard = "has a comma, which stops Brook at start: separate the words by spaces"
		}
		return strings.Fields(value), hazard
	},
}

func brookHeap(f Facts) Verdict {
	percent := percentOr(f.Tuning, brookPercent)
	heap := f.Limit.Percent(percent)
	switch {
	case f.Version.Below(V(2)):
		return skip("Brook before 2 does not read it")
	case f.Tuning.HeapLimit > 0:
		return skip("heapLimit " + brookNoHeapLimit)
	case f.Limit == 0:
		return noLimit("it")
	case badPercent(percent) != "":
		return skip(badPercent(percent))
	case heap < heapLimitMin:
		return skip(fmt.Sprintf("%s is too small a heap for Brook: raise the limit", heap))
	}
	return set(brookHeapFlag+"="+strconv.FormatInt(int64(heap), 10), fmt.Sprintf("%d %% of %s", percent, f.LimitText))
}

func brookCap(text string, _ memory.Bytes) memory.Bytes {
	n, err := strconv.ParseInt(flagValue(text, brookHeapFlag), 10, 64)
	if err != nil {
		return 0
	}
	return memory.Bytes(n)
}
