// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/runtimes"
)

// evaluateKnobs adds a setting, skip or advice for each knob of the container's runtime.
func (c *ContainerPlan) evaluateKnobs(w *working, t target, in Input) {
	r := c.runtime.runtime
	for i := range r.Knobs {
		k := &r.Knobs[i]
		v := k.Derive(c.facts)
		switch _, has := w.find(k.Env); {
		case v.Suggest != "" && has == 0:
			c.advice = append(c.advice, tip{k.Name, v.Suggest})
		case v.Value == "" && v.SkipReason == "":
		default:
			c.evaluateKnob(w, t, in, k, v)
		}
	}
	c.adviseCap()
	c.advise(r.Advise(c.facts)...)
}

func (c *ContainerPlan) evaluateKnob(w *working, t target, in Input, k *runtimes.Knob, v runtimes.Verdict) {
	s := setting{knob: k, verdict: v, runtime: c.runtime.runtime}
	s.replace = t.policy.Tuning.ConflictPolicy == v1alpha1.Replace &&
		slices.Contains(t.policy.Tuning.Replace, v1alpha1.Setting(k.Name))
	checks := []func() string{
		func() string { return w.userHas(s, c.facts) },
		func() string { return c.startScriptWins(s) },
		func() string { return v.SkipReason },
		func() string { return w.setOutsideEnv(s, t, in) },
		func() string { return w.cannotExtend(s, c.facts.Version) },
		func() string { return c.unmetNeed(k) },
		func() string { return k.BelowLiveHeap(v, c.facts) },
	}
	for i, check := range checks { // the first reason is the one the user reads
		if why := check(); why != "" {
			c.skips = append(c.skips, skip{name: k.Name, why: why, belowLiveHeap: i == len(checks)-1})
			return
		}
	}
	c.set = append(c.set, s)
}

// startScriptWins returns the skip reason if a start script takes the heap cap from a variable of the pod.
func (c *ContainerPlan) startScriptWins(s setting) string {
	if s.knob.HeapCap == nil || !c.owner.launcher {
		return ""
	}
	return c.owner.by + ", and the user's value wins" + s.wouldSet()
}

// unmetNeed returns why k's tier or required knob prevents the setting; empty if neither does.
func (c *ContainerPlan) unmetNeed(k *runtimes.Knob) string {
	if k.Tier == runtimes.TierB && !c.runtime.certain {
		return "the runtime is uncertain: declare runtime.type in the profile"
	}
	if k.Needs == "" || slices.ContainsFunc(c.set, func(s setting) bool { return s.knob.Name == k.Needs }) {
		return ""
	}
	return fmt.Sprintf("it is safe only together with %s, which was not set", k.Needs)
}

// userHas returns the skip reason if the user has set or removed the setting; empty otherwise.
func (w *working) userHas(s setting, f runtimes.Facts) string {
	v, count := w.find(s.knob.Env)
	switch {
	case count > 1:
		return fmt.Sprintf("%s is %d times in env, and only the last one counts: keep one", s.subject(), count)
	case count == 1 && v.ValueFrom != nil:
		note := ""
		if from := v.ValueFrom; from.ConfigMapKeyRef != nil || from.SecretKeyRef != nil || from.FileKeyRef != nil {
			note = s.setThereText()
		}
		return fmt.Sprintf("%s comes from %s (valueFrom), which memfit does not read%s", s.subject(), fromWhere(v.ValueFrom),
			note)
	case slices.Contains(w.userChanged, s.knob.Env) && count == 0:
		return fmt.Sprintf("%s was removed after memfit had set it, so it is not set again", s.subject())
	case slices.Contains(w.userChanged, s.knob.Env) && s.knob.List != nil:
		return fmt.Sprintf("%s was changed after memfit had set it, so it is left alone", s.subject())
	case count == 1 && s.knob.List == nil && s.verdict.Value != "" && v.Value == s.verdict.Value:
		return fmt.Sprintf("the pod sets the same value itself (%s)", shorten(v.Value))
	case count == 1 && s.knob.List == nil && !s.replace:
		return fmt.Sprintf("the pod sets %s=%s itself, and the user's value wins%s", s.knob.Env, shorten(v.Value),
			s.wouldSet())
	}
	if w.assigned(s.knob.Env) {
		return fmt.Sprintf("the command line sets %s itself, which replaces the value in the pod", s.knob.Env)
	}
	for _, sign := range s.knob.SkipIf {
		if sign.UnlessDivided && f.Processes > 0 || sign.UnlessSince.Known() && f.Version.AtLeast(sign.UnlessSince) {
			continue
		}
		if why := w.sign(s, sign); why != "" {
			return why
		}
	}
	return ""
}

// assigned reports whether a shell or env on the command line replaces the variable's value: NAME=x does, NAME="$NAME
// x" does not, and a quoted 'NAME=' is text of a program.
func (w *working) assigned(name string) bool {
	found := false
	for _, text := range w.commands {
		if strings.Contains(text, "$"+name) || strings.Contains(text, "${"+name) {
			return false
		}
		for word := range strings.FieldsFuncSeq(text, isAssignmentSeparator) {
			found = found || strings.HasPrefix(word, name+"=")
		}
	}
	return found
}

// isAssignmentSeparator reports whether c may precede an assignment on a command line of a shell or env.
func isAssignmentSeparator(c rune) bool { return strings.ContainsRune(" \t\n;&|(", c) }

// sign returns where a sign was found and why it excludes the setting; empty if the sign is not found, or is in a value
// that the profile replaces.
func (w *working) sign(s setting, sign runtimes.Sign) string {
	where := w.findSign(s, sign)
	switch {
	case where == "":
		return ""
	case sign.Why != "":
		return where + ", " + sign.Why
	}
	return where + ", and the user's value wins" + s.wouldSet()
}

// findSign describes where a sign was found: "JAVA_OPTS has -Xmx700m"; empty if not found.
func (w *working) findSign(s setting, sign runtimes.Sign) string {
	switch sign.In {
	case runtimes.AsVariable:
		for i := range w.env {
			if name := w.env[i].Name; !w.env[i].Absent && matches(sign.Text, name) && name != s.knob.Env {
				return "the pod sets " + name
			}
		}
	case runtimes.InCommand:
		for _, text := range w.commands {
			for word := range strings.FieldsFuncSeq(text, isWordSeparator) {
				if path.Base(word) == sign.Text {
					return "the command runs " + shorten(word)
				}
			}
		}
	default:
		for _, src := range w.sources {
			text := src.folded
			if s.replace && src.name == s.knob.Env {
				text = withoutFlag(text, s.knob.Name)
			}
			if i := strings.Index(text, s.runtime.Folded(sign.Text)); i >= 0 {
				return fmt.Sprintf("%s has %s", src.title, shorten(wordAt(src.text, i)))
			}
		}
	}
	return ""
}

// withoutFlag returns text without the words that set the flag.
func withoutFlag(text, flag string) string {
	sets := func(word string) bool { return strings.HasPrefix(word, flag+"=") }
	return strings.Join(slices.DeleteFunc(strings.Split(text, " "), sets), " ")
}

// matches reports whether a variable's name matches the pattern. A trailing "*" makes the pattern a prefix.
func matches(pattern, name string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(name, prefix)
	}
	return name == pattern
}

// setOutsideEnv returns the skip reason if envFrom or the image may set the variable: an entry in env would replace it.
func (w *working) setOutsideEnv(s setting, t target, in Input) string {
	if _, count := w.find(s.knob.Env); count > 0 {
		return ""
	}
	for _, from := range t.container.EnvFrom {
		key, ok := strings.CutPrefix(s.knob.Env, from.Prefix)
		if !ok || key == "" {
			continue
		}
		where := "a source of an unknown kind"
		switch {
		case from.ConfigMapRef != nil:
			keys, known := in.ConfigMapKeys[from.ConfigMapRef.Name]
			_, ours := w.before.Set[s.knob.Env]
			if known && !keys[key] || !known && in.Created && ours {
				continue
			}
			where = fmt.Sprintf("ConfigMap %s (envFrom)", shorten(from.ConfigMapRef.Name))
			if known {
				return fmt.Sprintf("%s comes from %s, and the user's value wins%s", s.subject(), where, s.setThereText())
			}
		case from.SecretRef != nil:
			where = fmt.Sprintf("Secret %s (envFrom)", shorten(from.SecretRef.Name))
		}
		return fmt.Sprintf("%s may come from %s, which memfit does not read%s", s.subject(), where, s.setThereText())
	}
	return t.fromImage(s)
}

// cannotExtend returns why memfit must not add words to the user's value; empty if it may.
func (w *working) cannotExtend(s setting, version runtimes.Version) string {
	v, count := w.find(s.knob.Env)
	if count > 0 && !utf8.ValidString(v.Value) { // the JSON record could not restore the value byte for byte
		return fmt.Sprintf("the pod's own %s is not valid UTF-8: correct it", s.knob.Env)
	}
	if s.knob.List == nil || count == 0 {
		return ""
	}
	g := s.knob.List
	words, hazard := g.Split(v.Value)
	if hazard != "" {
		return fmt.Sprintf("the pod's own %s %s", s.knob.Env, hazard)
	}
	if g.MaxLength == 0 || !g.Strict(version) {
		return ""
	}
	// The most bytes and words that memfit adds to a variable.
	const ours, ourWords = 256, 7
	if len(v.Value)+ours > g.MaxLength || len(words)+ourWords > g.MaxWords {
		return fmt.Sprintf("%s is already long (%d bytes), and %s: declare runtime.version if the runtime is newer",
			s.knob.Env, len(v.Value), g.StrictWhy)
	}
	return ""
}
