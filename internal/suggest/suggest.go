// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package suggest guesses the runtime of a container from its spec: image, command and names of environment variables.
// kubectl memfit shows the guess with its evidence; the webhook does not use it, because the name of an image proves
// nothing. The hints are in the files of the runtimes (internal/runtimes). The package performs no I/O.
package suggest

import (
	"path"
	"strings"

	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
)

// Suggestion is a guess with its evidence. Runtime is nil if nothing in the spec suggests one.
type Suggestion struct {
	Runtime *runtimes.Runtime
	// Version is the start of the image's tag; empty: unknown.
	Version  string
	Evidence []string
}

// For tries the most certain hint first: the program in the command line, the image, the names of the variables. Only
// hints that agree with the first are evidence.
func For(image string, command, variables []string) (s Suggestion) {
	if name := program(command); name != "" {
		s.add(runtimes.ByCommand(name), "", "it starts "+quote.Name(path.Base(name)))
	}
	byImage, version := runtimes.ByImage(image)
	s.add(byImage, version, "the image is "+quote.Name(image))
	for _, name := range variables {
		s.add(runtimes.ByVariable(name), "", "it has the variable "+quote.Name(name))
	}
	return s
}

func (s *Suggestion) add(r *runtimes.Runtime, version, evidence string) {
	if r == nil || s.Runtime != nil && s.Runtime != r {
		return
	}
	s.Runtime = r
	if s.Version == "" {
		s.Version = version
	}
	s.Evidence = append(s.Evidence, evidence)
}

// maxWords bounds the words read in a command line: an init program, its options, and the program.
const maxWords = 8

// program returns the first word that is the program of a runtime; empty: none, or a shell comes first, whose script
// may start anything.
func program(words []string) string {
	for _, word := range words[:min(len(words), maxWords)] {
		switch base := path.Base(word); {
		case base == "sh", base == "bash", base == "ash", base == "dash":
			return ""
		case strings.HasPrefix(word, "-"), strings.Contains(word, "="):
		case runtimes.ByCommand(word) != nil:
			return word
		}
	}
	return ""
}
