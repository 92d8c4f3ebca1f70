// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

const (
	// warningsMax bounds the admission warnings of a pod; one more has the number of the others.
	warningsMax = 3
	// maxWarning bounds one warning, in characters. With the prefix "memfit: " it has at most 256, after which the API
	// server may truncate it.
	maxWarning = 248
)

// warning is a message for the creator of the pod, in the webhook's response and in the advice in status.
type warning struct {
	text  string
	ofPod bool // about the whole pod; each affected container has a copy
}

func (c *ContainerPlan) warn(format string, args ...any) {
	c.warned = append(c.warned, warning{text: fmt.Sprintf(format, args...)})
}

// Warnings returns at most four messages for the creator of the pod. The user's valid values cause none.
func (p Plan) Warnings() []string {
	out := p.EveryWarning()
	if extra := len(out) - warningsMax; extra > 0 {
		out = append(out[:warningsMax], fmt.Sprintf("and %d more; kubectl memfit inject shows them all", extra))
	}
	return out
}

// EveryWarning returns all of [Plan.Warnings].
func (p Plan) EveryWarning() []string {
	texts := slices.Clone(p.notes)
	for i := range p.containers {
		texts = append(texts, p.containers[i].warnings()...)
	}
	var out []string
	for _, text := range texts {
		if text = cut(text); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// cut shortens a text to maxWarning characters.
func cut(text string) string {
	if len(text) <= maxWarning || utf8.RuneCountInString(text) <= maxWarning {
		return text
	}
	return string([]rune(text)[:maxWarning-3]) + "..."
}

func (c *ContainerPlan) warnings() []string {
	var out []string
	add := func(text string) { out = append(out, "container "+c.name+text) }
	if c.refused != "" {
		add(" does not get the recommended size: " + c.refused)
	}
	for _, w := range c.warned {
		if w.ofPod {
			out = append(out, w.text)
		} else {
			add(": " + w.text)
		}
	}
	if c.mode == v1alpha1.TuningDisabled {
		return out
	}
	if c.limit.effective == 0 && c.runtime.certain && c.lacksLimit() {
		add(" has no memory limit, so nothing derived from it is set: set resources.limits.memory")
	}
	if c.limit.noMemory != "" {
		add(": " + c.limit.noMemory)
	}
	for _, s := range c.set {
		if s.verdict.Warning != "" {
			add(": " + s.verdict.Warning)
		}
	}
	return out
}

// lacksLimit reports whether a setting of the runtime is derived from the limit, and no such setting is in the plan.
func (c *ContainerPlan) lacksLimit() bool {
	if slices.ContainsFunc(c.set, func(s setting) bool { return s.knob.Follows == runtimes.Literal }) {
		return false
	}
	derived := func(k runtimes.Knob) bool { return k.Follows == runtimes.Literal && k.Needs == "" }
	return slices.ContainsFunc(c.runtime.runtime.Knobs, derived)
}

// minMemory is a size that no process can start with.
const minMemory = memory.MiB

// checkSize warns about a memory limit or request without a unit, or with unit m (thousandths of a byte). of is the
// owner of r as a prefix; now is the planned size.
func (c *ContainerPlan) checkSize(of string, r *corev1.ResourceRequirements, now memory.Size) {
	if q, set := r.Limits[corev1.ResourceMemory]; set && now.Limit > 0 && now.Limit < minMemory {
		c.warn("%slimits.memory: %s is %s, so the container does not start: set %s", of, q.String(), whyTiny(q), withMebi(q))
	}
	if q, set := r.Requests[corev1.ResourceMemory]; set && inThousandths(q) && now.Request > 0 && now.Request < minMemory {
		c.warn("%srequests.memory: %s is %s, so the scheduler reserves no memory: set %s", of, q.String(), whyTiny(q),
			withMebi(q))
	}
}

// inThousandths reports whether the quantity has the unit m.
func inThousandths(q resource.Quantity) bool { return strings.HasSuffix(q.String(), "m") }

func whyTiny(q resource.Quantity) string {
	if inThousandths(q) {
		return "in thousandths of a byte (m)"
	}
	return "less than 1Mi"
}

// withMebi returns the quantity's number with the unit that the user probably intended.
func withMebi(q resource.Quantity) string { return strings.TrimRight(q.String(), "mkKi") + "Mi" }

// checkValues warns about the user's invalid values, and records their heap caps. If the runtime is uncertain, it uses
// the checks of all runtimes, because each variable or flag belongs to only one.
func (c *ContainerPlan) checkValues(w *working) {
	rows := []*runtimes.Runtime{c.runtime.runtime}
	if !c.runtime.certain {
		rows = runtimes.All()
	}
	for _, r := range rows {
		for i := range r.Checks {
			check := &r.Checks[i]
			own, subject := w.own(r, check)
			if subject == "" || c.replaces(check) {
				continue
			}
			if check.Heap != nil {
				c.owner.recordHeap(check.Heap(own.Value), subject)
			}
			if wrong := check.Problem(own, c.facts); wrong != "" && c.mode != v1alpha1.TuningDisabled {
				if w := (warning{text: subject + " " + wrong}); !slices.Contains(c.warned, w) {
					c.warned = append(c.warned, w)
				}
			}
		}
	}
}

// replaces reports whether the profile replaces the checked value with memfit's.
func (c *ContainerPlan) replaces(check *runtimes.Check) bool {
	return slices.ContainsFunc(c.set, func(s setting) bool {
		return s.replace && (s.knob.Env == check.Env || check.Flag == s.knob.Name+"=")
	})
}

// own returns the user's value to check, and the setting with its value as the subject of a sentence; empty if unknown.
func (w *working) own(r *runtimes.Runtime, check *runtimes.Check) (own runtimes.Own, subject string) {
	if check.Env != "" {
		v, count := w.find(check.Env)
		if count == 0 || v.ValueFrom != nil || hasReference(v.Value) {
			return own, ""
		}
		return runtimes.Own{Value: v.Value, Direct: true}, check.Env + "=" + shorten(v.Value)
	}
	found := w.flag(r, check.Flag)
	if found.in == "" {
		return own, ""
	}
	own = runtimes.Own{Value: found.value, Direct: found.direct}
	if check.Against != "" {
		own.Other = w.flag(r, check.Against).value
	}
	return own, found.in + ": " + shorten(check.Flag+found.value)
}

// hasReference reports whether the value contains a variable that the kubelet or a shell expands.
func hasReference(value string) bool { return strings.ContainsRune(value, '$') }

// ownFlag is a flag as the user set it.
type ownFlag struct {
	value  string
	in     string // the variable, or the command line; empty: not set, or the value is unknown
	direct bool
}

// flag returns the user's effective value of a flag; none if sources with unknown precedence have different values.
func (w *working) flag(r *runtimes.Runtime, flag string) (found ownFlag) {
	best, differ := -1, false
	for _, src := range w.sources {
		rank := slices.Index(r.Sources, src.name)
		direct := rank >= 0 && src.name != ""
		if rank < 0 {
			rank = slices.Index(r.Sources, "")
		}
		if rank < best {
			continue
		}
		value, has := lastFlag(r, src.text, flag)
		if !has {
			continue
		}
		differ = rank == best && !direct && (differ || value != found.value)
		best, found = rank, ownFlag{value, src.title, direct}
	}
	if differ || hasReference(found.value) {
		return ownFlag{}
	}
	return found
}

// lastFlag returns the text after the last occurrence of the flag.
func lastFlag(r *runtimes.Runtime, text, flag string) (value string, has bool) {
	if beginning := flag[:min(len(flag), 5)]; !strings.Contains(text, beginning) { // all spellings begin with it
		return "", false
	}
	for word := range strings.FieldsFuncSeq(text, isWordSeparator) {
		if rest, found := strings.CutPrefix(r.Folded(word), flag); found {
			value, has = rest, true
		}
	}
	return value, has
}
