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

// partsListed have their own line: with the first and last line there are five.
const partsListed = 3

// fullest returns the replica of a container with the most resident memory, by their nodes' agents; nil: not inspected.
func largestReplica(s *Snapshot, container string) (name string, parts *v1alpha1.MemoryParts) {
	for _, pod := range s.Governed {
		if m := partsOf(s, pod, container); m != nil && (parts == nil || m.Resident.Cmp(parts.Resident) > 0) {
			name, parts = pod.Name, m
		}
	}
	return name, parts
}

// partsOf returns nil if the container was not inspected.
func partsOf(s *Snapshot, pod *corev1.Pod, container string) *v1alpha1.MemoryParts {
	if c := s.seenByAgent(pod, container); c != nil {
		return c.Memory
	}
	return nil
}

// breakdown describes the fullest replica's memory, in lines; nil: not inspected. outlier is its pod, if it uses far
// more than the other replicas.
func breakdown(s *Snapshot, container string) (lines []string, outlier string) {
	name, fullest := largestReplica(s, container)
	if fullest == nil {
		return nil, ""
	}
	first := fmt.Sprintf("%s: %s resident at %s", name, amount(fullest.Resident), format.Time(fullest.Time.Time))
	if usual, replicas, above := aboveOthers(s, container, name); above {
		outlier, first = name, fmt.Sprintf("%s, its replicas %s (median of %d)", first, usual, replicas)
	}
	lines = append(lines, first)
	parts := slices.Clone(fullest.Parts)
	slices.SortStableFunc(parts, func(a, b v1alpha1.MemoryPart) int { return b.Resident.Cmp(a.Resident) })
	var others memory.Bytes
	for i, p := range parts {
		if i >= partsListed {
			others = others.Plus(amount(p.Resident))
			continue
		}
		lines = append(lines, partLine(p))
	}
	return append(lines, fmt.Sprintf("other parts %s, unexplained %s", others, amount(fullest.Unexplained))), outlier
}

// aboveOthers reports whether a pod's container uses far more than the other replicas, and their usual amount.
func aboveOthers(s *Snapshot, container, pod string) (usual memory.Bytes, replicas int, above bool) {
	var all []shape.Replica
	for _, p := range s.Governed {
		if m := partsOf(s, p, container); m != nil {
			all = append(all, shape.Replica{Pod: p.Name, RSS: amount(m.Resident)})
		}
	}
	outliers, usual := shape.Outliers(all)
	return usual, len(all), slices.Contains(outliers, pod)
}

func partLine(p v1alpha1.MemoryPart) string {
	line := quote.Cut(quote.Line(p.Name), maxNameLength) + " " + amount(p.Resident).String()
	if p.Free != nil && !p.Free.IsZero() {
		line += ", of which " + amount(*p.Free).String() + " is free"
	}
	return line
}

// Bounds of the API, in bytes: of a part's name, and of the sentences of a snapshot.
const maxNameLength, maxSentence, maxSummary = 64, 256, 512

// gainsListed bounds the actions in a recommendation: a snapshot has eight, the most certain first.
const savingsListed = 5

// suggestions returns the actions that give memory of the fullest replica back, in lines: a summary, and each action.
func suggestions(s *Snapshot, container string) []string {
	_, fullest := largestReplica(s, container)
	if fullest == nil || fullest.Summary == "" {
		return nil
	}
	lines := []string{quote.Cut(quote.Line(fullest.Summary), maxSummary)}
	for i := range head(fullest.Savings, savingsListed) {
		lines = append(lines, savingLine(&fullest.Savings[i]))
	}
	return lines
}

func savingLine(g *v1alpha1.PredictedSaving) string {
	p := levers.Prediction{
		Action: quote.Cut(quote.Line(g.Action), maxNameLength), Why: quote.Cut(quote.Line(g.Method), maxSentence),
		How: quote.Cut(quote.Line(g.How), maxSentence), Least: amount(g.Amount), Most: amount(g.Amount),
	}
	if g.AtMost != nil {
		p.Most = amount(*g.AtMost)
	}
	return p.String()
}

// measured returns settings with an effect that an agent predicted in the fullest replica.
func predictedSettings(s *Snapshot, container string) (settings []string) {
	_, fullest := largestReplica(s, container)
	if fullest == nil {
		return nil
	}
	for i := range fullest.Savings {
		if setting := fullest.Savings[i].Setting; setting != "" {
			settings = append(settings, setting)
		}
	}
	return settings
}

// maxEase bounds a replica's reported need, as a multiple of its limit. The collector's limit is a share of it, 90 %
// by default. Twice a live heap below that, with the rest of the runtime, is 2.3 times the limit.
const maxEase = 3

// ease returns the highest limit that a replica needs for its live heap. Only replicas count whose collector's limit is
// memfit's for their current limit: others do not follow the limit, so that each step would ask for still more.
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
				!slices.Contains(inject.Wrote(pod, container), g.Setting) {
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
