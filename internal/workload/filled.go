// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
)

// partsTold is how many parts have a line of their own: with the first line and the last there are five.
const partsTold = 3

// filledBy is what fills the replica of a container that holds the most, in lines; nil: no agent looked.
func filledBy(s *Snapshot, container string) []string {
	var name string
	var fullest *v1alpha1.MemoryParts
	for _, pod := range s.Governed {
		seen := s.Snapshots[pod.UID]
		if seen == nil || seen.Status.NodeName != pod.Spec.NodeName {
			continue
		}
		for i := range seen.Status.Containers {
			c := &seen.Status.Containers[i]
			if c.Container == container && c.Memory != nil && (fullest == nil || c.Memory.Resident.Cmp(fullest.Resident) > 0) {
				name, fullest = pod.Name, c.Memory
			}
		}
	}
	if fullest == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("%s: %s resident at %s", name, amount(fullest.Resident), format.Time(fullest.Time.Time))}
	parts := slices.Clone(fullest.Parts)
	slices.SortStableFunc(parts, func(a, b v1alpha1.MemoryPart) int { return -cmp.Compare(bytesOf(a), bytesOf(b)) })
	var others memory.Bytes
	for i, p := range parts {
		if i >= partsTold {
			others = others.Plus(bytesOf(p))
			continue
		}
		lines = append(lines, partLine(p))
	}
	return append(lines, fmt.Sprintf("other parts %s, unexplained %s", others, amount(fullest.Unexplained)))
}

func partLine(p v1alpha1.MemoryPart) string {
	line := quote.Cut(quote.Line(p.Name), nameMost) + " " + bytesOf(p).String()
	if p.Free != nil && !p.Free.IsZero() {
		line += ", of which " + amount(*p.Free).String() + " is free"
	}
	return line
}

// nameMost is the bound of a part's name in the API, in bytes.
const nameMost = 64

func bytesOf(p v1alpha1.MemoryPart) memory.Bytes { return amount(p.Resident) }

func amount(q resource.Quantity) memory.Bytes { return memory.FromQuantity(q) }
