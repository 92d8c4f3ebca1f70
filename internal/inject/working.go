// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// working is a copy of a container without an earlier plan's changes, to which this plan applies its own.
type working struct {
	env      []Variable
	memory   memory.Size
	resize   corev1.ResourceResizeRestartPolicy // of memory
	commands []string                           // command and args

	before *containerRecord // the record of an earlier plan; never nil
	// userChanged are the variables that memfit set and that were later removed or changed; see [containerRecord].
	userChanged []string

	sources []source // see gather

	resizeSet string // the memory resizePolicy that this plan added

	written, was map[string]string // the written and the replaced texts, for the record
}

// revertChanges returns c without memfit's recorded changes. A variable that was changed since keeps its value.
func revertChanges(c *corev1.Container, rec *containerRecord) *working {
	w := &working{
		env: make([]Variable, len(c.Env), len(c.Env)+4), memory: constraints.SizeOf(&c.Resources),
		resize:   memoryPolicy(c.ResizePolicy),
		commands: slices.Concat(c.Command, c.Args), before: &containerRecord{},
		written: map[string]string{}, was: map[string]string{},
	}
	for i := range c.Env {
		w.env[i].EnvVar = c.Env[i]
	}
	if rec == nil {
		return w
	}
	w.before = rec
	for _, name := range variableNames { // ignore other names: a record can be copied or forged
		wrote, set := rec.Set[name]
		if !set || rec.DryRun {
			continue
		}
		was, replaced := rec.Was[name]
		if !w.revertVariable(name, wrote, was, replaced) {
			w.markChanged(name)
		}
	}
	for _, name := range rec.UserChanged {
		if _, ours := variables[name]; ours {
			w.markChanged(name)
		}
	}
	if string(w.resize) == rec.ResizePolicy {
		w.resize = ""
	}
	return w
}

func (w *working) markChanged(name string) {
	if !slices.Contains(w.userChanged, name) {
		w.userChanged = append(w.userChanged, name)
		slices.Sort(w.userChanged)
	}
}

// variables has the variables of all runtimes' knobs, with the grammar of a variable that holds several settings.
var variables = func() map[string]*runtimes.Grammar {
	all := make(map[string]*runtimes.Grammar)
	for _, r := range runtimes.All() {
		for i := range r.Knobs {
			all[r.Knobs[i].Env] = r.Knobs[i].List
		}
	}
	return all
}()

// variableNames has the sorted names of variables.
var variableNames = slices.Sorted(maps.Keys(variables))

// revertVariable reverts memfit's change of one variable; false if the variable no longer has memfit's text.
func (w *working) revertVariable(name, wrote, was string, replaced bool) bool {
	v, count := w.find(name)
	if count != 1 || v.ValueFrom != nil {
		return false
	}
	if variables[name] == nil {
		if v.Value != wrote {
			return false
		}
		v.Value, v.Absent = was, !replaced
		return true
	}
	rest, ok := cutWords(v.Value, wrote, was)
	if !ok {
		return false
	}
	v.Value, v.Absent = rest, rest == "" && !replaced
	return true
}

// cutWords replaces the words wrote in value with was; ok is false if value does not have them as whole words.
func cutWords(value, wrote, was string) (rest string, ok bool) {
	if wrote == "" {
		return value, false
	}
	start, ok := indexWords(value, wrote)
	if !ok {
		return value, false
	}
	head, tail := value[:start], value[start+len(wrote):]
	switch {
	case was != "":
	case tail != "":
		tail = tail[1:]
	case head != "":
		head = head[:len(head)-1]
	}
	return head + was + tail, true
}

// maxArgument is the longest variable of a process, in bytes (MAX_ARG_STRLEN). It bounds the cost of a forged record.
const maxArgument = 128 << 10

// indexWords returns where words first occur in value as whole words.
func indexWords(value, words string) (start int, ok bool) {
	if len(value) > maxArgument {
		return 0, false
	}
	start = strings.Index(" "+spaces.Replace(value)+" ", " "+spaces.Replace(words)+" ")
	return start, start >= 0 && value[start:start+len(words)] == words
}

// spaces replaces all separators by spaces.
var spaces = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

// find returns the last entry of name, which the kubelet uses, and the number of entries.
func (w *working) find(name string) (v *Variable, count int) {
	for i := range w.env {
		if w.env[i].Name == name && !w.env[i].Absent {
			v = &w.env[i]
			count++
		}
	}
	return v, count
}

// put sets a variable at its index, or appends it, so that $(NAME) references in earlier variables keep their meaning.
func (w *working) put(name, value string) {
	for i := range w.env {
		if w.env[i].Name == name {
			w.env[i] = Variable{EnvVar: corev1.EnvVar{Name: name, Value: value}}
			return
		}
	}
	w.env = append(w.env, Variable{EnvVar: corev1.EnvVar{Name: name, Value: value}})
}

// write writes the settings into env, and stores the written and replaced texts for the record.
func (w *working) write(settings []setting) {
	lists := make(map[string][]setting)
	for _, s := range settings {
		if s.knob.List != nil {
			lists[s.knob.Env] = append(lists[s.knob.Env], s)
		}
	}
	for _, s := range settings {
		switch {
		case s.knob.List == nil:
			w.writeScalar(s)
		case len(lists[s.knob.Env]) > 0:
			w.writeList(s.knob.Env, lists[s.knob.Env])
			delete(lists, s.knob.Env)
		}
	}
}

func (w *working) writeScalar(s setting) {
	w.written[s.knob.Env] = s.verdict.Value
	if old, _ := w.find(s.knob.Env); old != nil {
		w.was[s.knob.Env] = old.Value
	}
	w.put(s.knob.Env, s.verdict.Value)
}

// writeList writes settings before the user's words, because the last word wins in both runtimes with such a variable.
func (w *working) writeList(name string, settings []setting) {
	old, _ := w.find(name)
	existing, replaced := "", false
	if old != nil {
		existing = old.Value
	}
	var ours []setting
	for _, s := range settings {
		if next, ok := replaceFlag(existing, s); s.replace && ok {
			existing, replaced = next, true
		} else {
			ours = append(ours, s)
		}
	}
	text := frontWords(ours)
	whole := text
	if existing != "" {
		whole = strings.TrimLeft(text+" "+existing, " ")
	}
	w.written[name] = text
	if old != nil && (replaced || old.Value == "") {
		w.written[name], w.was[name] = whole, old.Value
	}
	w.put(name, whole)
}

// frontWords returns the words of settings, guards first, without duplicates.
func frontWords(settings []setting) string {
	var words []string
	for _, s := range settings {
		for _, word := range append(slices.Clone(s.knob.Guard), s.verdict.Value) {
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return strings.Join(words, " ")
}

// replaceFlag replaces the user's words for the same flag with the setting; ok is false if value has none.
func replaceFlag(value string, s setting) (next string, ok bool) {
	words := strings.Split(value, " ")
	for i, word := range words {
		if strings.HasPrefix(s.runtime.Folded(word), s.knob.Name+"=") {
			words[i], ok = s.verdict.Value, true
		}
	}
	return strings.Join(words, " "), ok
}

// owns returns the user's values of the knobs in [runtimes.Runtime.Reads]; empty if not visible in the pod.
func (w *working) owns(r *runtimes.Runtime) map[string]string {
	out := make(map[string]string, len(r.Reads))
	for _, name := range r.Reads {
		if k := knob(r, name); k.List != nil {
			out[name] = w.flag(r, name+"=").value
		} else if v, count := w.find(k.Env); count > 0 {
			out[name] = v.Value
		}
	}
	return out
}
