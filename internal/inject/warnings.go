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
	// warningsMax bounds the admission warnings; the rest is counted.
	warningsMax = 3
	// maxWarning bounds one warning. With the prefix "memfit: ", it stays within the 256 characters after which the API
	// server may truncate it.
	maxWarning = 248
)

// warning is a message for the creator of the pod. It is in the webhook's response, and in the advice in status.
type warning struct {
	text  string
	ofPod bool // it is about the whole pod; each container that it concerns has a copy
}

func (c *ContainerPlan) warn(format string, args ...any) {
	c.warned = append(c.warned, warning{text: fmt.Sprintf(format, args...)})
}

// Warnings returns a few short messages for the creator of the pod. A valid value of the user's own causes none.
func (p Plan) Warnings() []string {
	out := p.EveryWarning()
	if extra := len(out) - warningsMax; extra > 0 {
		out = append(out[:warningsMax], fmt.Sprintf("and %d more; kubectl memfit inject shows them all", extra))
	}
	return out
}

// EveryWarning returns [Plan.Warnings] without a bound.
func (p Plan) EveryWarning() []string {
	texts := slices.Clone(p.notes)
	for i := range p.containers {
		texts = append(texts, p.containers[i].warnings()...)
	}
	var out []string
	for _, text := range texts {
		if text = cut(text); !slices.Contains(out, text) { // each container has a copy of a note about the annotation
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
	if c.limit.unfit != "" {
		add(": " + c.limit.unfit)
	}
	for _, s := range c.set {
		if s.verdict.Warning != "" {
			add(": " + s.verdict.Warning)
		}
	}
	return out
}

// lacksLimit reports whether a setting of the runtime follows the limit and could not be set without one.
func (c *ContainerPlan) lacksLimit() bool {
	if slices.ContainsFunc(c.set, func(s setting) bool { return s.knob.Follows == runtimes.Literal }) {
		return false
	}
	derived := func(k runtimes.Knob) bool { return k.Follows == runtimes.Literal && k.Needs == "" }
	return slices.ContainsFunc(c.runtime.runtime.Knobs, derived)
}

// minMemory is less than any process needs.
const minMemory = memory.MiB

// checkSize warns about a memory limit or request that has no unit, or the unit m (a thousandth of a byte).
func (c *ContainerPlan) checkSize(of string, r *corev1.ResourceRequirements, now memory.Size) {
	if q, set := r.Limits[corev1.ResourceMemory]; set && now.Limit > 0 && now.Limit < minMemory {
		c.warn("%slimits.memory: %s is %s, so the container does not start: set %s", of, q.String(), tiny(q), meant(q))
	}
	if q, set := r.Requests[corev1.ResourceMemory]; set && thousandths(q) && now.Request > 0 && now.Request < minMemory {
		c.warn("%srequests.memory: %s is %s, so the scheduler reserves no memory: set %s", of, q.String(), tiny(q), meant(q))
	}
}

// thousandths reports whether the quantity is written with the unit m.
func thousandths(q resource.Quantity) bool { return strings.HasSuffix(q.String(), "m") }

func tiny(q resource.Quantity) string {
	if thousandths(q) {
		return "in thousandths of a byte (m)"
	}
	return "less than 1Mi"
}

// meant returns the quantity with the intended unit.
func meant(q resource.Quantity) string { return strings.TrimRight(q.String(), "mkKi") + "Mi" }

// checkValues reads the numbers of the user, and warns about invalid ones, without changing them. If the runtime is
// uncertain, the checks of every runtime apply, because a variable or flag belongs to only one.
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
				c.owner.permits(check.Heap(own.Value), subject)
			}
			if wrong := check.Wrong(own, c.facts); wrong != "" && c.mode != v1alpha1.TuningDisabled {
				if w := (warning{text: subject + " " + wrong}); !slices.Contains(c.warned, w) {
					c.warned = append(c.warned, w)
				}
			}
		}
	}
}

// replaces reports whether the profile replaces the checked value by memfit's.
func (c *ContainerPlan) replaces(check *runtimes.Check) bool {
	return slices.ContainsFunc(c.set, func(s setting) bool {
		return s.replace && (s.knob.Env == check.Env || check.Flag == s.knob.Name+"=")
	})
}

// own returns the user's value to check, and the setting as the subject of a sentence; empty if no value is known.
func (w *working) own(r *runtimes.Runtime, check *runtimes.Check) (own runtimes.Own, subject string) {
	if check.Env != "" {
		v, count := w.find(check.Env)
		if count == 0 || v.ValueFrom != nil || refers(v.Value) {
			return own, ""
		}
		return runtimes.Own{Value: v.Value, Direct: true}, check.Env + "=" + short(v.Value)
	}
	found := w.flag(r, check.Flag)
	if found.in == "" {
		return own, ""
	}
	own = runtimes.Own{Value: found.value, Direct: found.direct}
	if check.Against != "" {
		own.Other = w.flag(r, check.Against).value
	}
	return own, found.in + ": " + short(check.Flag+found.value)
}

// refers reports whether the value contains a variable that the kubelet or a shell expands.
func refers(value string) bool { return strings.ContainsRune(value, '$') }

// ownFlag is a flag as the user set it.
type ownFlag struct {
	value  string
	in     string // the variable, or the command line; empty: not set, or the value is unknown
	direct bool
}

// flag returns the user's flag that takes effect in the runtime. It returns none if places with unknown precedence have
// different values.
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
	if differ || refers(found.value) {
		return ownFlag{}
	}
	return found
}

// lastFlag returns the text after the last occurrence of the flag.
func lastFlag(r *runtimes.Runtime, text, flag string) (value string, has bool) {
	if beginning := flag[:min(len(flag), 5)]; !strings.Contains(text, beginning) { // every spelling has it
		return "", false
	}
	for word := range strings.FieldsFuncSeq(text, betweenWords) {
		if rest, found := strings.CutPrefix(r.Folded(word), flag); found {
			value, has = rest, true
		}
	}
	return value, has
}
