// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package suggest guesses what a container probably runs from its spec alone: image, command and the names of its
// variables. It is for users, with its evidence, and never for the webhook: an image's name is not certain. What
// suggests a runtime is listed in the runtime's own file of internal/runtimes. It performs no I/O.
package suggest

import (
	"path"
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
)

// Container is what is known without looking inside. Variables are names.
type Container struct {
	Image         string
	Command, Args []string
	Variables     []string
}

// Suggestion is a guess with what it rests on; Runtime is nil where nothing suggests one.
type Suggestion struct {
	Runtime *runtimes.Runtime
	// Version is what the image's tag begins with; empty: not known.
	Version  string
	Evidence []string
}

// For starts with what is surest: the program, the image, the variables. Only what agrees with the first is evidence.
func For(c Container) (s Suggestion) {
	if name := program(c); name != "" {
		s.add(runtimes.ByCommand(name), "", "it starts "+quote.Name(path.Base(name)))
	}
	byImage, version := runtimes.ByImage(c.Image)
	s.add(byImage, version, "the image is "+quote.Name(c.Image))
	for _, name := range c.Variables {
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

// mostWords of a command line are read: an init program, its options, and the program.
const mostWords = 8

// program is the first word that is a program of some runtime, before any that may be a script: what follows a shell is
// up to the script.
func program(c Container) string {
	words := slices.Concat(c.Command, c.Args)
	for _, word := range words[:min(len(words), mostWords)] {
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
