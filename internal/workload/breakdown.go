// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/levers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/shape"
)

// partsListed is the number of memory parts with a line of their own in a breakdown.
const partsListed = 3

// largestReplica returns the name and memory parts of the replica with the most resident memory, as the agents of the
// nodes reported it; nil: no replica was inspected.
func largestReplica(s *Snapshot, container string) (name string, parts *v1alpha1.MemoryParts) {
	for _, pod := range s.Governed {
		if m := partsOf(s, pod, container); m != nil && (parts == nil || m.Resident.Cmp(parts.Resident) > 0) {
			name, parts = pod.Name, m
		}
	}
	return name, parts
}

// partsOf returns the memory parts of a pod's container; nil: not inspected.
func partsOf(s *Snapshot, pod *corev1.Pod, container string) *v1alpha1.MemoryParts {
	if c := s.seenByAgent(pod, container); c != nil {
		return c.Memory
	}
	return nil
}

// breakdown returns lines about the memory of the largest replica; nil: no replica was inspected. outlier is the pod of
// this replica if it uses far more than the others.
func breakdown(s *Snapshot, container string) (lines []string, outlier string) {
	name, largest := largestReplica(s, container)
	if largest == nil {
		return nil, ""
	}
	first := fmt.Sprintf("%s: %s resident at %s", name, amount(largest.Resident), format.Time(largest.Time.Time))
	if median, replicas, above := aboveOthers(s, container, name); above {
		outlier, first = name, fmt.Sprintf("%s, its replicas %s (median of %d)", first, median, replicas)
	}
	lines = append(lines, first)
	parts := slices.Clone(largest.Parts)
	slices.SortStableFunc(parts, func(a, b v1alpha1.MemoryPart) int { return b.Resident.Cmp(a.Resident) })
	var others memory.Bytes
	for i, p := range parts {
		if i >= partsListed {
			others = others.Plus(amount(p.Resident))
			continue
		}
		lines = append(lines, partLine(p))
	}
	return append(lines, fmt.Sprintf("other parts %s, unexplained %s", others, amount(largest.Unexplained))), outlier
}

// aboveOthers reports whether a pod's container uses far more than its replicas, with the median of all replicas.
func aboveOthers(s *Snapshot, container, pod string) (median memory.Bytes, replicas int, above bool) {
	var all []shape.Replica
	for _, p := range s.Governed {
		if m := partsOf(s, p, container); m != nil {
			all = append(all, shape.Replica{Pod: p.Name, RSS: amount(m.Resident)})
		}
	}
	outliers, median := shape.Outliers(all)
	return median, len(all), slices.Contains(outliers, pod)
}

func partLine(p v1alpha1.MemoryPart) string {
	line := quote.Cut(quote.Line(p.Name), maxNameLength) + " " + amount(p.Resident).String()
	if p.Free != nil && !p.Free.IsZero() {
		line += ", of which " + amount(*p.Free).String() + " is free"
	}
	return line
}

// Bounds of texts in a snapshot, in bytes, as in the API.
const maxNameLength, maxSentence, maxSummary = 64, 256, 512

// savingsListed bounds the actions in a recommendation. A snapshot has up to eight, the most certain first.
const savingsListed = 5

// suggestions returns lines about how to save memory in the largest replica: a summary, then one line for each action.
func suggestions(s *Snapshot, container string) []string {
	_, largest := largestReplica(s, container)
	if largest == nil || largest.Summary == "" {
		return nil
	}
	lines := []string{quote.Cut(quote.Line(largest.Summary), maxSummary)}
	for i := range head(largest.Savings, savingsListed) {
		lines = append(lines, savingLine(&largest.Savings[i]))
	}
	return lines
}

func savingLine(s *v1alpha1.PredictedSaving) string {
	p := levers.Prediction{
		Action: quote.Cut(quote.Line(s.Action), maxNameLength), Why: quote.Cut(quote.Line(s.Method), maxSentence),
		How: quote.Cut(quote.Line(s.How), maxSentence), Least: amount(s.Amount), Most: amount(s.Amount),
	}
	if s.AtMost != nil {
		p.Most = amount(*s.AtMost)
	}
	return p.String()
}

// predictedSettings returns the settings whose effect an agent predicted in the largest replica.
func predictedSettings(s *Snapshot, container string) (settings []string) {
	_, largest := largestReplica(s, container)
	if largest == nil {
		return nil
	}
	for i := range largest.Savings {
		if setting := largest.Savings[i].Setting; setting != "" {
			settings = append(settings, setting)
		}
	}
	return settings
}

// maxEase bounds the limit that an agent suggests, as a multiple of the current limit. The live heap is below the
// collector's limit, by default 90 % of the container's. Twice this heap, plus the rest of the runtime, is 2.3 times.
const maxEase = 3

// ease returns the highest limit that an agent suggests for the live heap of a replica. It ignores replicas whose
// collector's limit memfit did not set for the current limit: with them, each raise would lead to another.
func ease(
	s *Snapshot, container string, limit memory.Bytes, observed map[string]inject.Observed,
) (most recommend.Ease) {
	for _, pod := range s.Governed {
		m := partsOf(s, pod, container)
		if m == nil {
			continue
		}
		for i := range m.Savings {
			g := &m.Savings[i]
			if g.Limit == nil || amount(*g.Limit) <= most.Limit || amount(*g.Limit) > maxEase*limit ||
				!slices.Contains(inject.WrittenVariables(pod, container), g.Setting) {
				continue
			}
			if state, _ := inject.Compare(pod, s.Profile, observed); state != inject.UpToDate {
				continue
			}
			most = recommend.Ease{Limit: amount(*g.Limit), Why: fmt.Sprintf("in pod %s at %s %s", pod.Name,
				format.Time(m.Time.Time), quote.Cut(quote.Line(g.Method), maxSentence))}
		}
	}
	return most
}

func amount(q resource.Quantity) memory.Bytes { return memory.FromQuantity(q) }
