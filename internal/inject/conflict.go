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

// settle evaluates every knob of the container's runtime, as a setting, skip or advice.
func (c *ContainerPlan) settle(w *working, t target, in Input) {
	r := c.runtime.runtime
	for i := range r.Knobs {
		k := &r.Knobs[i]
		v := k.Derive(c.facts)
		switch _, has := w.find(k.Env); {
		case v.Suggest != "" && has == 0:
			c.advice = append(c.advice, tip{k.Name, v.Suggest})
		case v.Value == "" && v.SkipReason == "":
		default:
			c.settleOne(w, t, in, k, v)
		}
	}
	c.adviseCap()
	c.advise(r.Advise(c.facts)...)
}

func (c *ContainerPlan) settleOne(w *working, t target, in Input, k *runtimes.Knob, v runtimes.Verdict) {
	s := setting{knob: k, verdict: v, runtime: c.runtime.runtime}
	s.replace = t.policy.Tuning.ConflictPolicy == v1alpha1.Replace &&
		slices.Contains(t.policy.Tuning.Replace, v1alpha1.Setting(k.Name))
	checks := []func() string{
		func() string { return w.userHas(s, c.facts) },
		func() string { return c.launched(s) },
		func() string { return v.SkipReason },
		func() string { return w.elsewhere(s, t, in) },
		func() string { return w.unsafe(s, c.facts.Version) },
		func() string { return c.unmet(k) },
		func() string { return k.BelowLiveHeap(v, c.facts) },
	}
	for i, check := range checks { // the first reason is the one the user reads
		if why := check(); why != "" {
			c.skips = append(c.skips, skip{name: k.Name, why: why, tight: i == len(checks)-1})
			return
		}
	}
	c.set = append(c.set, s)
}

// launched returns the skip reason if a start script overrides memfit's heap cap by a variable of the pod.
func (c *ContainerPlan) launched(s setting) string {
	if s.knob.Caps == nil || !c.owner.launcher {
		return ""
	}
	return c.owner.by + ", and the user's value wins" + s.instead()
}

// unmet returns why the tier or a requirement of k is not met.
func (c *ContainerPlan) unmet(k *runtimes.Knob) string {
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
		return fmt.Sprintf("%s is %d times in env, and only the last one counts: keep one", s.it(), count)
	case count == 1 && v.ValueFrom != nil:
		note := ""
		if from := v.ValueFrom; from.ConfigMapKeyRef != nil || from.SecretKeyRef != nil || from.FileKeyRef != nil {
			note = s.setThere()
		}
		return fmt.Sprintf("%s comes from %s (valueFrom), which memfit does not read%s", s.it(), fromWhere(v.ValueFrom),
			note)
	case slices.Contains(w.taken, s.knob.Env) && count == 0:
		return fmt.Sprintf("%s was removed after memfit had set it, so it is not set again", s.it())
	case slices.Contains(w.taken, s.knob.Env) && s.knob.List != nil:
		return fmt.Sprintf("%s was changed after memfit had set it, so it is left alone", s.it())
	case count == 1 && s.knob.List == nil && s.verdict.Value != "" && v.Value == s.verdict.Value:
		return fmt.Sprintf("the pod sets the same value itself (%s)", short(v.Value))
	case count == 1 && s.knob.List == nil && !s.replace:
		return fmt.Sprintf("the pod sets %s=%s itself, and the user's value wins%s", s.knob.Env, short(v.Value), s.instead())
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
		for word := range strings.FieldsFuncSeq(text, beforeCommand) {
			found = found || strings.HasPrefix(word, name+"=")
		}
	}
	return found
}

// beforeCommand returns the separators after which a shell or env takes an assignment.
func beforeCommand(c rune) bool { return strings.ContainsRune(" \t\n;&|(", c) }

// sign returns the place of a sign that excludes the setting, and why it does; empty if the sign is not found, or if
// the profile replaces the user's value.
func (w *working) sign(s setting, sign runtimes.Sign) string {
	where := w.shows(s, sign)
	switch {
	case where == "":
		return ""
	case sign.Why != "":
		return where + ", " + sign.Why
	}
	return where + ", and the user's value wins" + s.instead()
}

// shows returns the place of a sign: "JAVA_OPTS has -Xmx700m"; empty if it is not found.
func (w *working) shows(s setting, sign runtimes.Sign) string {
	switch sign.In {
	case runtimes.AsVariable:
		for i := range w.env {
			if name := w.env[i].Name; !w.env[i].Absent && matches(sign.Text, name) && name != s.knob.Env {
				return "the pod sets " + name
			}
		}
	case runtimes.InCommand:
		for _, text := range w.commands {
			for word := range strings.FieldsFuncSeq(text, betweenWords) {
				if path.Base(word) == sign.Text {
					return "the command runs " + short(word)
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
				return fmt.Sprintf("%s has %s", src.title, short(wordAt(src.text, i)))
			}
		}
	}
	return ""
}

// withoutFlag returns text without the words that set the flag, which will be replaced.
func withoutFlag(text, flag string) string {
	sets := func(word string) bool { return strings.HasPrefix(word, flag+"=") }
	return strings.Join(slices.DeleteFunc(strings.Split(text, " "), sets), " ")
}

// matches reports whether an environment variable's name fits the pattern, whose trailing "*" makes it a prefix.
func matches(pattern, name string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(name, prefix)
	}
	return name == pattern
}

// elsewhere returns the skip reason if envFrom may set the variable, which an entry in env would silently replace.
func (w *working) elsewhere(s setting, t target, in Input) string {
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
			where = fmt.Sprintf("ConfigMap %s (envFrom)", short(from.ConfigMapRef.Name))
			if known {
				return fmt.Sprintf("%s comes from %s, and the user's value wins%s", s.it(), where, s.setThere())
			}
		case from.SecretRef != nil:
			where = fmt.Sprintf("Secret %s (envFrom)", short(from.SecretRef.Name))
		}
		return fmt.Sprintf("%s may come from %s, which memfit does not read%s", s.it(), where, s.setThere())
	}
	return t.fromImage(s)
}

// unsafe returns why the user's own text must not be extended.
func (w *working) unsafe(s setting, version runtimes.Version) string {
	v, count := w.find(s.knob.Env)
	if count > 0 && !utf8.ValidString(v.Value) { // the record, which is JSON, could not restore it byte for byte
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
	// Space for every word that memfit could add, not only this one.
	const ours, ourWords = 256, 7
	if len(v.Value)+ours > g.MaxLength || len(words)+ourWords > g.MaxWords {
		return fmt.Sprintf("%s is already long (%d bytes), and %s: declare runtime.version if the runtime is newer",
			s.knob.Env, len(v.Value), g.StrictWhy)
	}
	return ""
}
