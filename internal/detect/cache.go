// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"github.com/memfit/memfit/internal/procmem"
)

// Cache remembers what was found in files, so that a program that many processes run is read once. Results are reused
// within one scope only: an attacker who can forge a file that looks like another one misleads its own scope only. It
// is not safe for concurrent use; its zero value is ready.
type Cache struct {
	files map[cached]File
}

// cached is a file, and under which name it was read, because the name decides about marks.
type cached struct {
	scope, path string
	program     bool
	identity    procmem.FileIdentity
}

// maxCached files are remembered. Node.js has one, a JVM two, each has a C library, and what is remembered of each is
// below 1 KiB.
const maxCached = 1024

func (c *Cache) look(scope string, which File, file procmem.File) (File, error) {
	identity, ok := file.Identity()
	if !ok {
		return look(which, file)
	}
	key := cached{scope, which.Path, which.Program, identity}
	if found, ok := c.files[key]; ok {
		return found, nil
	}
	found, err := look(which, file)
	if err != nil { // not to be remembered: the next may be readable
		return found, err
	}
	if again, same := file.Identity(); !same || again != identity {
		return found, nil // it is being written to
	}
	if c.files == nil || len(c.files) >= maxCached {
		c.files = map[cached]File{}
	}
	c.files[key] = found
	return found, nil
}
