// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"github.com/memfit/memfit/internal/procmem"
)

// Cache remembers what was found in files, so that a program that many processes run, or one process after the other,
// is looked through once. What was found in a file is used again only within one scope: who can make up a file that
// looks like another one misleads about its own scope, and no other. It is not safe for concurrent use; its zero value
// is ready.
type Cache struct {
	files map[cached]File
}

// cached is a file, and under which name it was read, because the name decides about marks.
type cached struct {
	scope, path string
	program     bool
	identity    procmem.FileIdentity
}

// cachedMost files are remembered. Node.js has one, a JVM two, each has a C library, and what is remembered of each is
// below 1 KiB.
const cachedMost = 1024

func (c *Cache) look(scope string, o *opened) (File, error) {
	known, ok := o.file.(procmem.Identified)
	if !ok {
		return o.look()
	}
	identity, ok := known.Identity()
	if !ok {
		return o.look()
	}
	key := cached{scope, o.path, o.program, identity}
	if found, ok := c.files[key]; ok {
		return found, nil
	}
	found, err := o.look()
	if err != nil { // not to be remembered: the next may be readable
		return found, err
	}
	if again, same := known.Identity(); !same || again != identity {
		return found, nil // it is being written to
	}
	if c.files == nil || len(c.files) >= cachedMost {
		c.files = map[cached]File{}
	}
	c.files[key] = found
	return found, nil
}
