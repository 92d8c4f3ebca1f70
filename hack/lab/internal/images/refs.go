// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"path"
	"strings"
)

// short is an image's name without its registry, for people.
func short(ref string) string { return path.Base(ref) }

// fileName makes a name safe for files and for tools that read a colon as a host.
func fileName(name string) string { return strings.NewReplacer(":", "-", "/", "-").Replace(name) }
