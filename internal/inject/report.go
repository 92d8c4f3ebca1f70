// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// warningsMax is how many admission warnings a person reads; the rest is counted.
const warningsMax = 3

// Warnings are what the person who creates the pod should read now; at most a few short sentences, often none. What was
// left alone because the user decided otherwise is no warning.
func (p Plan) Warnings() []string {
	out := p.EveryWarning()
	if extra := len(out) - warningsMax; extra > 0 {
		out = append(out[:warningsMax], fmt.Sprintf("and %d more; kubectl memfit inject shows them all", extra))
	}
	return out
}

// EveryWarning is [Plan.Warnings] for those who have room for all of them.
func (p Plan) EveryWarning() []string {
	var out []string
	for _, n := range p.notes {
		if !slices.Contains(out, n) { // the annotation is the pod's, the note comes once per container
			out = append(out, n)
		}
	}
	for i := range p.containers {
		out = append(out, p.containers[i].warnings()...)
	}
	return out
}

func (c *containerPlan) warnings() []string {
	var out []string
	if c.refused != "" {
		out = append(out, fmt.Sprintf("container %s does not get the recommended size: %s", c.name, c.refused))
	}
	if c.mode == v1alpha1.TuningOff {
		return out
	}
	if c.limit.effective == 0 && c.runtime.certain && c.lacksLimit() {
		out = append(
			out,
			fmt.Sprintf(
				"container %s has no memory limit, so nothing derived from it is set: set resources.limits.memory", c.name,
			),
		)
	}
	if c.limit.unfit != "" {
		out = append(out, fmt.Sprintf("container %s: %s", c.name, c.limit.unfit))
	}
	for _, s := range c.set {
		if s.verdict.Warning != "" {
			out = append(out, fmt.Sprintf("container %s: %s", c.name, s.verdict.Warning))
		}
	}
	return out
}

// lacksLimit reports whether the runtime has a setting that follows the limit, and none was set.
func (c *containerPlan) lacksLimit() bool {
	for _, s := range c.set {
		if s.knob.Follows == runtimes.Literal {
			return false
		}
	}
	return slices.ContainsFunc(
		c.runtime.runtime.Knobs, func(k runtimes.Knob) bool { return k.Follows == runtimes.Literal },
	)
}

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

// ShortOfQuota says whether a container does not get its size because a quota has no room now. The next pod may find
// it.
func (p Plan) ShortOfQuota() bool {
	return slices.ContainsFunc(p.containers, func(c containerPlan) bool { return c.quota })
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

// Skipped is container -> what is left alone and why: "GOMEMLIMIT left alone: the pod sets GOMEMLIMIT=1GiB itself,
// ...".
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

// RuntimeOf says what memfit takes the container to run and how it knows: "Node.js 20 (declared by the profile)".
func (p Plan) RuntimeOf(container string) string {
	if c := p.of(container); c != nil {
		return c.runtime.String()
	}
	return ""
}

// Identity returns what [Plan.RuntimeOf] says as fields; nil where the runtime is unknown.
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

// Runs is what the container certainly runs, as the API spells it ("NodeJS"): declared, or told by its command. Empty:
// not known.
func (p Plan) Runs(container string) string {
	if c := p.of(container); c != nil && c.runtime.certain {
		return c.runtime.runtime.Name
	}
	return ""
}

// Advice is what the profile's owner may try in that container, each with why memfit does not do it unasked. It leaves
// out settings that are measured: what they would do in this workload is known, and told elsewhere.
func (p Plan) Advice(container string, measured ...string) []string {
	c := p.of(container)
	if c == nil {
		return nil
	}
	var texts []string
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
	r := c.runtime.runtime
	ours := slices.ContainsFunc(c.set, func(s setting) bool { return s.knob.Name == r.Heap })
	g := r.Growth(c.facts, ours)
	g.Overhead *= memory.Bytes(max(c.facts.Processes, 1))
	g.Reserve = c.limit.reserve
	if c.usersHeap() || ours && c.facts.Ask.HeapLimit > 0 { // a fixed cap does not move with the limit
		g.FollowsLimit, g.HeapPercent = false, 0
	}
	return g
}

// CapFollows says whether a process that gives up at its heap cap gets a larger one from a higher limit: follows. With
// frozen, only a new pod does, because memfit wrote the cap into the pod as a number; otherwise a restart is enough.
// The cap may be memfit's, the user's own share of the limit, or the share that the runtime takes unasked. It is known
// of pods that were created already (Input.Created).
func (p Plan) CapFollows(container string) (follows, frozen bool) {
	c := p.of(container)
	if c == nil || c.facts.Limit == 0 {
		return false, false
	}
	r := c.runtime.runtime
	for _, s := range c.set {
		if s.knob.Name == r.Heap {
			return !s.verdict.Fixed && c.facts.Ask.HeapLimit == 0, s.knob.Follows == runtimes.Literal
		}
	}
	if c.fixedHeap || slices.ContainsFunc(c.skips, func(s skip) bool { return s.name == r.Heap && s.unseen }) {
		return false, false
	}
	return c.usersHeap() || r.Growth(c.facts, false).HeapPercent > 0, false
}

func (p Plan) of(container string) *containerPlan {
	for i := range p.containers {
		if p.containers[i].name == container {
			return &p.containers[i]
		}
	}
	return nil
}
