// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/runtimes"
)

// Settings returns the settings of the container, for status. In DryRun each has a note that it is not set.
func (c *ContainerPlan) Settings() []string {
	var out []string
	for _, s := range c.set {
		text := s.text()
		if c.mode == v1alpha1.TuningDryRun {
			text = strings.TrimSuffix(text, ")") + "; not set: tuning.mode is DryRun)"
		}
		out = append(out, text)
	}
	return out
}

// Skipped returns the skipped settings with reasons: "GOMEMLIMIT skipped: the pod sets GOMEMLIMIT=1GiB itself, ...".
func (c *ContainerPlan) Skipped() []string {
	var out []string
	for _, s := range c.skips {
		out = append(out, s.text())
	}
	return out
}

// Mode returns the effective tuning mode of the container; empty if the profile does not manage it.
func (c *ContainerPlan) Mode() v1alpha1.TuningMode { return c.mode }

// Sets reports whether the plan sets a variable in the container, or in DryRun would set one.
func (c *ContainerPlan) Sets() bool { return len(c.set) > 0 }

// Runtime returns the assumed runtime of the container and its source: "Node.js 20 (declared by the profile)".
func (c *ContainerPlan) Runtime() string { return c.runtime.String() }

// Identity returns the container's runtime for status; nil if unknown.
func (c *ContainerPlan) Identity() *v1alpha1.RuntimeIdentity {
	if !c.runtime.certain {
		return nil
	}
	id := &c.runtime
	return &v1alpha1.RuntimeIdentity{
		Type: v1alpha1.RuntimeType(id.runtime.Name), Variant: id.spec.Variant, Version: id.spec.Version,
		Source: id.source, Evidence: id.evidence,
	}
}

// RuntimeName returns the API name of the container's runtime ("NodeJS"); empty if the runtime is not certain.
func (c *ContainerPlan) RuntimeName() string {
	if c.runtime.certain {
		return c.runtime.runtime.Name
	}
	return ""
}

// Advice returns what the container's owner should change or may try, warnings first. It omits tips about measured
// settings, whose effect is known.
func (c *ContainerPlan) Advice(measured ...string) []string {
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

// Advisories returns the part of [ContainerPlan.Advice] about the declared version of the runtime.
func (c *ContainerPlan) Advisories() []string { return c.runtime.runtime.VersionAdvisories(c.facts) }

// Growth returns how the container's processes together use the limit, with the settings in this plan.
func (c *ContainerPlan) Growth() runtimes.Growth {
	g := c.growth()
	g.Name = c.runtime.runtime.Title
	processes := c.limit.division.parts()
	g.Overhead *= processes
	g.OwnHeap, g.OwnHeapBy = c.owner.heap*processes, c.owner.number
	g.Reserve = c.limit.division.reserve
	g.FollowsLimit, g.MayFollow, g.HeapPercent = c.heapFollows(g.HeapPercent)
	return g
}

// growth returns the runtime's own behavior, without the owner's settings; zero if unknown.
func (c *ContainerPlan) growth() (g runtimes.Growth) {
	if of := c.runtime.runtime.Growth; of != nil {
		g = of(c.facts, c.heapSetting() != nil)
	}
	return g
}

// CapFollows reports whether a higher limit is known to raise the heap cap of a process that aborts at its cap. If
// frozen, only a new pod gets the higher cap, because memfit wrote the cap as a number; otherwise a restart suffices.
// An unknown cap does not follow; a higher limit might have no effect on it.
func (c *ContainerPlan) CapFollows() (follows, frozen bool) {
	if c.facts.Limit == 0 || c.heapByNode {
		return false, false
	}
	follows, _, _ = c.heapFollows(c.growth().HeapPercent)
	return follows, c.capIsLiteral()
}

// Container returns the plan of one container; an empty one if the profile does not manage it.
func (p Plan) Container(name string) *ContainerPlan {
	for i := range p.containers {
		if p.containers[i].name == name {
			return &p.containers[i]
		}
	}
	return &ContainerPlan{name: name, runtime: unmanaged}
}
