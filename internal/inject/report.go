// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// Settings is container -> what is set, for status: "GOMEMLIMIT=483183820 (90 % of 512Mi)". In DryRun, what would be
// set, and that it is not.
func (p Plan) Settings() map[string][]string {
	var out map[string][]string
	for i := range p.containers {
		c := &p.containers[i]
		for _, s := range c.set {
			if out == nil {
				out = make(map[string][]string)
			}
			text := s.text()
			if c.mode == v1alpha1.TuningDryRun {
				text = strings.TrimSuffix(text, ")") + "; not set: tuning.mode is DryRun)"
			}
			out[c.name] = append(out[c.name], text)
		}
	}
	return out
}

// Mode is the effective tuning mode for the container; empty when the profile does not manage it.
func (p Plan) Mode(container string) v1alpha1.TuningMode {
	if c := p.of(container); c != nil {
		return c.mode
	}
	return ""
}

// Sets reports whether anything is set in the container, or in DryRun would be.
func (p Plan) Sets(container string) bool {
	c := p.of(container)
	return c != nil && len(c.set) > 0
}

// Skipped is container -> what is skipped and why: "GOMEMLIMIT skipped: the pod sets GOMEMLIMIT=1GiB itself, ...".
func (p Plan) Skipped() map[string][]string {
	var out map[string][]string
	for i := range p.containers {
		c := &p.containers[i]
		for _, s := range c.skips {
			if out == nil {
				out = make(map[string][]string)
			}
			out[c.name] = append(out[c.name], s.text())
		}
	}
	return out
}

// RuntimeOf is what memfit takes the container to run and how it knows: "Node.js 20 (declared by the profile)".
func (p Plan) RuntimeOf(container string) string {
	if c := p.of(container); c != nil {
		return c.runtime.String()
	}
	return ""
}

// Identity returns [Plan.RuntimeOf] as fields; nil if the runtime is unknown.
func (p Plan) Identity(container string) *v1alpha1.RuntimeIdentity {
	c := p.of(container)
	if c == nil || !c.runtime.certain {
		return nil
	}
	id := &c.runtime
	return &v1alpha1.RuntimeIdentity{
		Type: v1alpha1.RuntimeType(id.runtime.Name), Variant: id.spec.Variant, Version: id.spec.Version,
		Source: id.source, Evidence: id.evidence,
	}
}

// Runs is what the container certainly runs, as the API spells it ("NodeJS"): declared, or shown by its command.
// Empty: unknown.
func (p Plan) Runs(container string) string {
	if c := p.of(container); c != nil && c.runtime.certain {
		return c.runtime.runtime.Name
	}
	return ""
}

// Advice is what the container's owner should change or may try, the warnings first. It leaves out settings that are
// measured: what they would do in this workload is known and reported elsewhere.
func (p Plan) Advice(container string, measured ...string) []string {
	c := p.of(container)
	if c == nil {
		return nil
	}
	texts := make([]string, 0, len(c.warned)+len(c.advice))
	for _, w := range c.warned {
		texts = append(texts, w.text)
	}
	for _, a := range c.advice {
		if a.setting == "" || !slices.Contains(measured, a.setting) {
			texts = append(texts, a.text)
		}
	}
	return texts
}

// Advisories are the part of [Plan.Advice] that is known about the declared version of the container's runtime.
func (p Plan) Advisories(container string) []string {
	if c := p.of(container); c != nil {
		return c.runtime.runtime.Known(c.facts)
	}
	return nil
}

// Growth is what the container's runtime does with its limit, given the settings in this plan.
func (p Plan) Growth(container string) runtimes.Growth {
	c := p.of(container)
	if c == nil {
		return runtimes.Growth{}
	}
	g := c.runtime.runtime.Growth(c.facts, c.heapSetting() != nil)
	g.Overhead *= memory.Bytes(max(c.facts.Processes, 1))
	g.Reserve = c.limit.reserve
	g.FollowsLimit, g.MayFollow, g.HeapPercent = c.following(g.HeapPercent)
	return g
}

// CapFollows reports whether a process that gives up at its heap cap is known to get a larger one from a higher limit.
// With frozen, only a new pod does, because memfit wrote the cap into the pod as a number; otherwise a restart is
// enough. An unknown cap does not follow: raising the limit after each abort would then help nothing.
func (p Plan) CapFollows(container string) (follows, frozen bool) {
	c := p.of(container)
	if c == nil || c.facts.Limit == 0 || c.blind {
		return false, false
	}
	ours := c.heapSetting()
	follows, _, _ = c.following(c.runtime.runtime.Growth(c.facts, ours != nil).HeapPercent)
	return follows, ours != nil && ours.follows() == runtimes.Literal
}

func (p Plan) of(container string) *containerPlan {
	for i := range p.containers {
		if p.containers[i].name == container {
			return &p.containers[i]
		}
	}
	return nil
}
