// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/memfit/memfit/internal/runtimes"
)

// Variables returns the environment variables that concern memory. Others may be secrets and are not read.
func Variables() []string {
	names := []string{"LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_CONF", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"}
	for _, row := range runtimes.All() {
		for _, k := range row.Knobs {
			names = append(names, k.Env)
		}
		for _, s := range allSigns(row) {
			if s.In == runtimes.AsVariable && !strings.HasSuffix(s.Text, "*") {
				names = append(names, s.Text)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func allSigns(row *runtimes.Runtime) []runtimes.Sign {
	signs := slices.Clone(row.HeapFixed)
	for _, k := range row.Knobs {
		signs = append(signs, k.SkipIf...)
	}
	return signs
}

// Bounds of a kept command line and of a reported flag.
const (
	maxWords    = 1024
	maxFlagText = 128
	maxFlags    = 32
)

// flags collects the runtime's memory settings. Unknown words are dropped, because they may be secrets.
func (r *Result) flags(f Facts, row *runtimes.Runtime) {
	grammars := map[string]*runtimes.Grammar{}
	for _, k := range row.Knobs {
		grammars[k.Env] = k.List
	}
	for _, name := range Variables() {
		value, set := f.Env[name]
		switch grammar, ofRuntime := grammars[name]; {
		case !set || !ofRuntime:
		case grammar != nil:
			words, _ := grammar.Split(value)
			r.words(row, name, words)
		default:
			r.flag(name+"="+value, name)
		}
	}
	if len(f.Argv) > 1 {
		r.words(row, "command line", f.Argv[1:min(len(f.Argv), maxWords)])
	}
	r.words(row, "hsperfdata", strings.Fields(f.VMArgs))
}

// Words returns the words of a command line (/proc/PID/cmdline) that concern the memory of any runtime. An empty word
// replaces the program. Other words may be passwords, and are not copied.
func Words(cmdline []byte) []string {
	kept := []string{""}
	first := true
	for word := range bytes.SplitSeq(bytes.TrimRight(cmdline, "\x00"), []byte{0}) {
		if !first && mayBeSetting(word) && len(kept) < maxWords {
			kept = append(kept, string(word))
		}
		first = false
	}
	return kept
}

// mayBeSetting reports whether a word may be a memory setting of any runtime, and can be reported.
func mayBeSetting(word []byte) bool {
	return len(word) > 0 && len(word) <= maxFlagText && word[0] == '-' && concerns(word, allTexts())
}

// concerns reports whether a word contains one of the texts.
func concerns[T string | []byte](word T, texts []string) bool {
	return slices.ContainsFunc(texts, func(known string) bool { return contains(word, known) })
}

// contains reports whether word contains text, without a copy. As in runtimes, case is ignored, and - equals _.
func contains[T string | []byte](word T, text string) bool {
	for at := 0; at+len(text) <= len(word); at++ {
		i := 0
		for i < len(text) && folded(word[at+i]) == folded(text[i]) {
			i++
		}
		if i == len(text) {
			return true
		}
	}
	return false
}

// folded returns the lower-case letter, and - for _.
func folded(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c - 'A' + 'a'
	case c == '_':
		return '-'
	}
	return c
}

// allTexts are the texts that identify memory settings of any runtime.
var allTexts = sync.OnceValue(func() (all []string) {
	for _, row := range runtimes.All() {
		all = append(all, textsOf(row)...)
	}
	return all
})

// textsOf returns the texts that identify memory settings of a runtime.
func textsOf(row *runtimes.Runtime) (texts []string) {
	for _, s := range allSigns(row) {
		if s.In == runtimes.Anywhere {
			texts = append(texts, s.Text)
		}
	}
	for _, k := range row.Knobs {
		if strings.HasPrefix(k.Name, "-") {
			texts = append(texts, k.Name)
		}
	}
	return texts
}

// words adds the words that concern the memory of a runtime to the flags.
func (r *Result) words(row *runtimes.Runtime, from string, words []string) {
	texts := textsOf(row)
	for _, word := range words[:min(len(words), maxWords)] {
		if strings.HasPrefix(word, "-") && concerns(word, texts) {
			r.flag(word, from)
		}
	}
}

// fixesHeap reports whether a flag sets the heap as a number.
func fixesHeap(row *runtimes.Runtime, flag string) bool {
	flag = row.Folded(flag)
	return slices.ContainsFunc(row.HeapFixed, func(s runtimes.Sign) bool {
		if s.In == runtimes.AsVariable {
			return strings.HasPrefix(flag, s.Text+"=")
		}
		return strings.Contains(flag, s.Text)
	})
}

func (r *Result) flag(text, from string) {
	odd := strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
	known := slices.ContainsFunc(r.Flags, func(f Flag) bool { return f.Text == text })
	if len(text) > maxFlagText || odd || known || len(r.Flags) >= maxFlags {
		return
	}
	r.Flags = append(r.Flags, Flag{Text: text, From: from})
}
