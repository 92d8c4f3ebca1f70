// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
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

// partsTold is how many parts have a line of their own: with the first line and the last there are five.
const partsTold = 3

// fullest is the replica of a container that holds the most, by the agents of the nodes that they run on; nil: no agent
// looked.
func fullest(s *Snapshot, container string) (name string, parts *v1alpha1.MemoryParts) {
	for _, pod := range s.Governed {
		if m := partsOf(s, pod, container); m != nil && (parts == nil || m.Resident.Cmp(parts.Resident) > 0) {
			name, parts = pod.Name, m
		}
	}
	return name, parts
}

// partsOf is what the agent of its node found in a container of a pod; nil: it did not look.
func partsOf(s *Snapshot, pod *corev1.Pod, container string) *v1alpha1.MemoryParts {
	if c := s.seenByAgent(pod, container); c != nil {
		return c.Memory
	}
	return nil
}

// breakdown is what fills the fullest replica of a container, in lines; nil: no agent read it. outlier is its pod,
// where it holds far more than the other replicas; empty: it does not.
func breakdown(s *Snapshot, container string) (lines []string, outlier string) {
	name, fullest := fullest(s, container)
	if fullest == nil {
		return nil, ""
	}
	first := fmt.Sprintf("%s: %s resident at %s", name, amount(fullest.Resident), format.Time(fullest.Time.Time))
	if usual, replicas, above := aboveOthers(s, container, name); above {
		outlier, first = name, fmt.Sprintf("%s, its replicas %s (median of %d)", first, usual, replicas)
	}
	lines = append(lines, first)
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
	return append(lines, fmt.Sprintf("other parts %s, unexplained %s", others, amount(fullest.Unexplained))), outlier
}

// aboveOthers reports whether a pod's container holds far more than those of the other replicas, and what these hold.
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
	line := quote.Cut(quote.Line(p.Name), nameMost) + " " + bytesOf(p).String()
	if p.Free != nil && !p.Free.IsZero() {
		line += ", of which " + amount(*p.Free).String() + " is free"
	}
	return line
}

// Bounds of the API, in bytes: of a part's name, and of the sentences of a snapshot.
const (
	nameMost     = 64
	sentenceMost = 256
	helpsMost    = 512
)

// gainsTold is how many actions have a line in a recommendation: a snapshot has eight, the surest first.
const gainsTold = 5

// suggestions is what gives memory of the fullest replica back, in lines: what sums it up, and each action.
func suggestions(s *Snapshot, container string) []string {
	_, fullest := fullest(s, container)
	if fullest == nil || fullest.Summary == "" {
		return nil
	}
	lines := []string{quote.Cut(quote.Line(fullest.Summary), helpsMost)}
	for i := range fullest.Savings[:min(len(fullest.Savings), gainsTold)] {
		lines = append(lines, gainLine(&fullest.Savings[i]))
	}
	return lines
}

func gainLine(g *v1alpha1.PredictedSaving) string {
	p := levers.Prediction{
		Action: quote.Cut(quote.Line(g.Action), nameMost), Why: quote.Cut(quote.Line(g.Method), sentenceMost),
		How: quote.Cut(quote.Line(g.How), sentenceMost), Least: amount(g.Amount), Most: amount(g.Amount),
	}
	if g.AtMost != nil {
		p.Most = amount(*g.AtMost)
	}
	return p.String()
}

// measured are the settings of memfit whose effect in the fullest replica an agent has predicted.
func measured(s *Snapshot, container string) (settings []string) {
	_, fullest := fullest(s, container)
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

// easeMost is how many times its limit a replica may be reported to need. The collector's limit is a share of it that
// memfit wrote, 90 % by default. Twice what is alive below that, with the rest of the runtime, is 2.3 times the limit.
const easeMost = 3

// ease is the highest limit that a replica needs for what is alive in it. Only replicas count whose collector's limit
// memfit wrote, as it would for the limit that they have: one of the owner's, or from before a resize in place, does
// not move with the limit, so that the next step would ask for still more.
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
			if g.Limit == nil || amount(*g.Limit) <= most.Limit || amount(*g.Limit) > easeMost*limit ||
				!slices.Contains(inject.Wrote(pod, container), g.Setting) {
				continue
			}
			if state, _ := inject.Compare(pod, s.Profile, observed); state != inject.UpToDate {
				continue
			}
			most = recommend.Ease{Limit: amount(*g.Limit), Why: fmt.Sprintf("in pod %s at %s %s", pod.Name,
				format.Time(m.Time.Time), quote.Cut(quote.Line(g.Method), sentenceMost))}
		}
	}
	return most
}

func bytesOf(p v1alpha1.MemoryPart) memory.Bytes { return amount(p.Resident) }

func amount(q resource.Quantity) memory.Bytes { return memory.FromQuantity(q) }
