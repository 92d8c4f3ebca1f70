// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/runtimes"
)

// source is a place that may have a user's flag. folded is its text with normalized spellings.
type source struct{ name, title, text, folded string }

// gather finds the sources: the command line and every literal environment value. All values count, because variables
// such as JAVA_OPTS end up on a command line in the image. Call it before anything is written.
func (w *working) gather(r *runtimes.Runtime) {
	w.sources = make([]source, 0, len(w.env)+1)
	add := func(name, title, text string) {
		if text != "" {
			w.sources = append(w.sources, source{name, title, text, r.Folded(text)})
		}
	}
	add("", "the command line", strings.Join(w.commands, " "))
	for i := range w.env {
		if v := &w.env[i]; !v.Absent && v.ValueFrom == nil {
			add(v.Name, v.Name, v.Value)
		}
	}
}

// betweenWords returns the separators of words in scripts and lists of flags. Deno's variable has commas between its
// flags.
func betweenWords(c rune) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '\'', '"', ',', ';', '&', '|', '(', ')':
		return true
	}
	return false
}

// wordAt returns the word of text at position i.
func wordAt(text string, i int) string {
	const ends = " \t\n\r'\";"
	i = min(i, len(text))
	start := strings.LastIndexAny(text[:i], ends) + 1
	if end := strings.IndexAny(text[i:], ends); end >= 0 {
		return text[start : i+end]
	}
	return text[start:]
}

// short returns a user's text for a reason: one line, at most 60 characters.
func short(text string) string {
	const most = 60
	if text == "" {
		return `""`
	}
	if enough := utf8.UTFMax * (most + 1); len(text) > enough {
		text = text[:enough]
	}
	text = strings.ToValidUTF8(oneLine.Replace(text), "?")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "..."
}

var oneLine = strings.NewReplacer("\n", " ", "\t", " ", "\r", " ")

// fromWhere returns the name of a valueFrom's source, also for unknown kinds.
func fromWhere(from *corev1.EnvVarSource) string {
	switch {
	case from.ConfigMapKeyRef != nil:
		return fmt.Sprintf("key %s of ConfigMap %s", short(from.ConfigMapKeyRef.Key), short(from.ConfigMapKeyRef.Name))
	case from.SecretKeyRef != nil:
		return fmt.Sprintf("key %s of Secret %s", short(from.SecretKeyRef.Key), short(from.SecretKeyRef.Name))
	case from.FieldRef != nil:
		return "field " + short(from.FieldRef.FieldPath)
	case from.FileKeyRef != nil:
		return fmt.Sprintf("key %s of file %s", short(from.FileKeyRef.Key), short(from.FileKeyRef.Path))
	case from.ResourceFieldRef != nil:
		return "resource " + short(from.ResourceFieldRef.Resource)
	}
	return "another source"
}

// it returns the variable as the subject of a reason that begins with the setting's name.
func (s setting) it() string {
	if s.knob.Name == s.knob.Env {
		return "it"
	}
	return s.knob.Env
}

// instead returns what memfit would have set; empty if unknown.
func (s setting) instead() string {
	if s.verdict.Value == "" {
		return ""
	}
	return fmt.Sprintf(" (memfit would set %s)", s.verdict.Value)
}

// setThere returns what the user should write where memfit cannot.
func (s setting) setThere() string {
	switch {
	case s.verdict.Value == "":
		return ""
	case s.knob.List != nil:
		return fmt.Sprintf(": add %s there", frontWords([]setting{s}))
	}
	return fmt.Sprintf(": set %s=%s there", s.knob.Env, s.verdict.Value)
}
