// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"sort"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// Result is the attribution of a process's memory.
type Result struct {
	// Regions are in ascending order and do not overlap; their RSS adds up to the RSS of the mappings.
	Regions []Region
	// Usages are the results of the readers, in their order.
	Usages []amounts.Usage
	// Failed has the readers that detected their heap but could not read it.
	Failed []Failure
	// Free has the free ranges of whole pages, resident or not, in ascending order, if [Snapshot.Locate] is set.
	Free        []procmem.Run
	RSS         memory.Bytes // of all mappings, as the kernel reports it
	Unexplained memory.Bytes // RSS of the regions of kind Other
}

// Failure is the error of a reader.
type Failure struct {
	Reader string
	Err    error
}

// ByKind sums up the resident bytes of each kind.
func (r *Result) ByKind() map[Kind]memory.Bytes {
	sums := map[Kind]memory.Bytes{}
	for _, one := range r.Regions {
		sums[one.Kind] = sums[one.Kind].Plus(one.RSS)
	}
	return sums
}

// Attribute calls the readers in order, classifies unclaimed memory by its mappings, and measures each region. Failed
// readers are listed in the result. Attribute returns an error only if the process or the context has ended.
func Attribute(ctx context.Context, s *Snapshot, readers []Reader) (Result, error) {
	var result Result
	var claims claims
	for _, reader := range readers {
		if err := ctx.Err(); err != nil {
			return result, err
		}
		if !reader.Detect(s) {
			continue
		}
		s.free = nil
		regions, usage, err := reader.Claim(ctx, s)
		if err != nil {
			result.Failed = append(result.Failed, Failure{Reader: reader.Name(), Err: err})
			continue
		}
		usage.Reader = reader.Name()
		if usage.Understood() {
			result.Free = append(result.Free, s.free...)
		} else { // too little was readable for amounts
			usage = amounts.Usage{Reader: usage.Reader, Coverage: usage.Coverage}
		}
		result.Usages = append(result.Usages, usage)
		claims.add(reader.Name(), regions)
	}
	regions := claims.filled(s, rulesFor(s, result.Usages))
	measure(s, regions)
	result.Regions = regions
	s.free = nil
	slices.SortFunc(result.Free, func(a, b procmem.Run) int { return cmp.Compare(a.Start, b.Start) })
	result.sum(s)
	return result, s.Same()
}

func (r *Result) sum(s *Snapshot) {
	for i := range s.Mappings {
		r.RSS = r.RSS.Plus(s.Mappings[i].RSS)
	}
	for _, one := range r.Regions {
		if one.Kind == Other {
			r.Unexplained = r.Unexplained.Plus(one.RSS)
		}
	}
}

// claims holds the regions that readers claimed, in ascending order and without overlap.
type claims []Region

// add claims the unclaimed parts of regions for owner. It drops regions beyond procmem.MaxMappings.
func (c *claims) add(owner string, regions []Region) {
	var added []Region
	for _, r := range regions {
		if r.End <= r.Start || len(*c)+len(added) >= procmem.MaxMappings {
			continue
		}
		r.Owner, r.RSS = owner, 0
		added = append(added, r)
	}
	slices.SortStableFunc(added, byStart)
	*c = merge(*c, added)
}

func byStart(a, b Region) int { return cmp.Compare(a.Start, b.Start) }

// merge merges two sorted lists. From second it cuts what overlaps first, or an earlier region of second.
func merge(first, second []Region) []Region {
	merged := slices.Clone(first)
	var reached uint64 // end of the last part of the second list
	for _, r := range second {
		r.Start = max(r.Start, reached)
		i := sort.Search(len(first), func(i int) bool { return first[i].End > r.Start })
		for ; r.Start < r.End; i++ {
			part := r
			if i < len(first) {
				part.End = min(r.End, first[i].Start)
			}
			if part.Start < part.End {
				merged = append(merged, part)
				reached = part.End
			}
			if i >= len(first) {
				break
			}
			r.Start = max(r.Start, first[i].End)
		}
		reached = max(reached, min(r.Start, r.End))
	}
	slices.SortFunc(merged, byStart)
	return merged
}

// filled returns the claims, split at the borders of mappings, and between them the rest, classified by the rules.
func (c claims) filled(s *Snapshot, rules *rules) []Region {
	regions := make([]Region, 0, len(s.Mappings)+len(c))
	next := 0
	for i := range s.Mappings {
		m := &s.Mappings[i]
		rest := rules.classify(i)
		at := m.Start
		for next < len(c) && c[next].End <= at {
			next++
		}
		for j := next; j < len(c) && c[j].Start < m.End; j++ {
			claimed := c[j]
			claimed.Start, claimed.End = max(claimed.Start, at), min(claimed.End, m.End)
			regions = appendRange(regions, rest, at, claimed.Start)
			regions = append(regions, claimed)
			at = claimed.End
		}
		regions = appendRange(regions, rest, at, m.End)
	}
	return regions
}

func appendRange(regions []Region, like Region, start, end uint64) []Region {
	if start >= end {
		return regions
	}
	like.Start, like.End = start, end
	return append(regions, like)
}

// measure sets the RSS of each region. A region that is a whole mapping has the RSS of the mapping. Other regions
// divide the RSS of their mapping in proportion to their resident pages.
func measure(s *Snapshot, regions []Region) {
	for first, i := 0, 0; first < len(regions); i++ {
		m := &s.Mappings[i]
		last := first
		for last < len(regions) && regions[last].End <= m.End {
			last++
		}
		measureMapping(s.Memory, m, regions[first:last])
		first = last
	}
}

func measureMapping(mem procmem.Memory, m *procmem.Mapping, parts []Region) {
	if len(parts) == 1 {
		parts[0].RSS = m.RSS
		return
	}
	if m.RSS == 0 {
		return
	}
	runs, err := mem.Resident(m.Start, m.End)
	if err != nil || len(runs) == 0 { // unknown: divide by address range, so that the sum is right
		runs = []procmem.Run{{Start: m.Start, Length: m.Size()}}
	}
	total := memory.FromUint64(procmem.ResidentBytes(runs, m.Start, m.End))
	var before memory.Bytes
	for i := range parts {
		after := before.Plus(memory.FromUint64(procmem.ResidentBytes(runs, parts[i].Start, parts[i].End)))
		parts[i].RSS = share(m.RSS, before, after, total)
		before = after
	}
}

// share returns the part of amount for the resident bytes between offsets from and to of total. Consecutive shares add
// up to amount exactly, although resident pages may have changed since amount was read.
func share(amount, from, to, total memory.Bytes) memory.Bytes {
	if total == 0 {
		return 0
	}
	return proportion(amount, min(to, total), total) - proportion(amount, min(from, total), total)
}

// proportion returns amount * part / total, rounded down. part is at most total, and no argument is negative. With
// floating point the parts would not add up to amount exactly.
func proportion(amount, part, total memory.Bytes) memory.Bytes {
	high, low := bits.Mul64(uint64(amount), uint64(part)) //nolint:gosec // not negative
	quotient, _ := bits.Div64(high, low, uint64(total))   //nolint:gosec // not negative
	return memory.FromUint64(quotient)
}
