// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"path"
	"strings"
)

// short returns an image's name without its registry.
func short(ref string) string { return path.Base(ref) }

// name returns an image's name without registry and tag.
func (r Recipe) name() string {
	name, _, _ := strings.Cut(short(r.Ref), ":")
	return name
}

// fileName replaces slashes, and colons, which some tools take for the end of a host name.
func fileName(name string) string { return strings.NewReplacer(":", "-", "/", "-").Replace(name) }
