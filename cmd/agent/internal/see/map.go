// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/pagemap"
	"github.com/memfit/memfit/internal/procmem"
)

const (
	// maxSeparate bounds the separate regions of a part. More regions, such as V8's scattered pages, are merged into one.
	maxSeparate = 16
	// maxMapped bounds the regions read from a process: it may have 65,530, and each costs a system call.
	maxMapped = 16 << 10
)

// pages returns the regions of a process with their resident and free ranges, for [pagemap.Draw].
func pages(r *attribution.Result, s *attribution.Snapshot, process int32) []pagemap.Region {
	byPart := map[attribution.Kind][]pagemap.Region{}
	left := maxMapped
	for i := range r.Regions {
		one := &r.Regions[i]
		if one.RSS == 0 || left == 0 {
			continue
		}
		left--
		runs, err := s.Memory.Resident(one.Start, one.End)
		if err != nil {
			continue // not drawn: it is gone, or unreadable
		}
		byPart[one.Kind] = append(byPart[one.Kind], pagemap.Region{
			Part: string(one.Kind), Process: process, Span: pagemap.Span{Start: one.Start, End: one.End},
			Resident: spans(runs, one.Start, one.End), Free: spans(r.Free, one.Start, one.End),
		})
	}
	var all []pagemap.Region
	for _, regions := range byPart {
		if len(regions) > maxSeparate {
			regions = []pagemap.Region{packed(regions)}
		}
		all = append(all, regions...)
	}
	slices.SortFunc(all, func(a, b pagemap.Region) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Part, b.Part))
	})
	return all
}

// spans returns the runs that overlap a region. runs must be in ascending order.
func spans(runs []procmem.Run, start, end uint64) (out []pagemap.Span) {
	first, _ := slices.BinarySearchFunc(runs, start, func(r procmem.Run, at uint64) int {
		return cmp.Compare(r.End(), at+1)
	})
	for _, r := range runs[first:] {
		if r.Start >= end {
			break
		}
		out = append(out, pagemap.Span{Start: r.Start, End: r.End()})
	}
	return out
}

// packed merges regions into one that starts at the address of the first and omits the gaps between them.
func packed(regions []pagemap.Region) pagemap.Region {
	out := pagemap.Region{Part: regions[0].Part, Process: regions[0].Process}
	out.Start = regions[0].Start
	at := out.Start
	for i := range regions {
		r := &regions[i]
		move := func(from []pagemap.Span) (to []pagemap.Span) {
			for _, s := range from {
				s = pagemap.Span{Start: max(s.Start, r.Start), End: min(s.End, r.End)}
				if s.Start < s.End {
					to = append(to, pagemap.Span{Start: s.Start - r.Start + at, End: s.End - r.Start + at})
				}
			}
			return to
		}
		out.Resident = append(out.Resident, move(r.Resident)...)
		out.Free = append(out.Free, move(r.Free)...)
		at += r.End - r.Start
	}
	out.End = at
	return out
}

// drawn returns a map for the API. missing is the resident memory of processes that could not be read.
func drawn(regions []pagemap.Region, missing memory.Bytes, now time.Time) *v1alpha1.MemoryMap {
	m := pagemap.Draw(regions)
	out := &v1alpha1.MemoryMap{Time: metav1.NewTime(now.Truncate(time.Second)), Rest: format.Exact(m.Rest.Plus(missing))}
	for i := range m.Regions {
		d := &m.Regions[i]
		out.Regions = append(out.Regions, v1alpha1.MapRegion{
			Part: d.Part, Process: d.Process, Size: d.Size.Quantity(), Block: d.Block.Quantity(),
			Resident: d.Resident.Quantity(), Free: format.Exact(d.Free), Pages: pagemap.Text(d.Runs),
		})
	}
	return out
}
