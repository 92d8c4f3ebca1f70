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

// source is a text that may contain a user's flag. name is its variable, empty for the command line; title names it for
// users. folded is the text with normalized spellings.
type source struct{ name, title, text, folded string }

// gather collects the sources: the command line and every literal environment value, because variables such as
// JAVA_OPTS end up on a command line in the image. Call it before any setting is written.
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

// isWordSeparator reports whether c separates words in scripts and lists of flags. Commas separate Deno's flags.
func isWordSeparator(c rune) bool {
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

// shorten returns a user's text for a message: one line, at most 60 characters.
func shorten(text string) string {
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

// fromWhere describes the source of a valueFrom.
func fromWhere(from *corev1.EnvVarSource) string {
	switch {
	case from.ConfigMapKeyRef != nil:
		return fmt.Sprintf("key %s of ConfigMap %s", shorten(from.ConfigMapKeyRef.Key), shorten(from.ConfigMapKeyRef.Name))
	case from.SecretKeyRef != nil:
		return fmt.Sprintf("key %s of Secret %s", shorten(from.SecretKeyRef.Key), shorten(from.SecretKeyRef.Name))
	case from.FieldRef != nil:
		return "field " + shorten(from.FieldRef.FieldPath)
	case from.FileKeyRef != nil:
		return fmt.Sprintf("key %s of file %s", shorten(from.FileKeyRef.Key), shorten(from.FileKeyRef.Path))
	case from.ResourceFieldRef != nil:
		return "resource " + shorten(from.ResourceFieldRef.Resource)
	}
	return "another source"
}

// subject returns the variable as the subject of a reason; "it" if the message already begins with its name.
func (s setting) subject() string {
	if s.knob.Name == s.knob.Env {
		return "it"
	}
	return s.knob.Env
}

// wouldSet returns the value that memfit skips, in parentheses; empty if unknown.
func (s setting) wouldSet() string {
	if s.verdict.Value == "" {
		return ""
	}
	return fmt.Sprintf(" (memfit would set %s)", s.verdict.Value)
}

// setThereText returns the instruction to set the value in its source, which memfit cannot write.
func (s setting) setThereText() string {
	switch {
	case s.verdict.Value == "":
		return ""
	case s.knob.List != nil:
		return fmt.Sprintf(": add %s there", frontWords([]setting{s}))
	}
	return fmt.Sprintf(": set %s=%s there", s.knob.Env, s.verdict.Value)
}
