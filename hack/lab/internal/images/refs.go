// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"path"
	"strings"
)

// short is an image's name without its registry, for people.
func short(ref string) string { return path.Base(ref) }

// name is an image's name without its registry and tag.
func (r Recipe) name() string {
	name, _, _ := strings.Cut(short(r.Ref), ":")
	return name
}

// fileName makes a name safe for files and for tools that read a colon as a host.
func fileName(name string) string { return strings.NewReplacer(":", "-", "/", "-").Replace(name) }
