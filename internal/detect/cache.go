// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import "github.com/memfit/memfit/internal/procmem"

// Cache caches what was found in files. It reuses results only within one scope, so that a file forged to resemble
// another affects only its own. It is not safe for concurrent use; its zero value is ready.
type Cache struct {
	files map[cached]File
}

// cached identifies a file and its name, because marks depend on the name.
type cached struct {
	scope, path string
	program     bool
	identity    procmem.FileIdentity
}

// maxCached bounds the cached files, each below 1 KiB. Node.js has one, a JVM two, and each process a C library.
const maxCached = 1024

func (c *Cache) identify(scope string, which File, file procmem.File) (File, error) {
	identity, ok := file.Identity()
	if !ok {
		return identify(which, file)
	}
	key := cached{scope, which.Path, which.Program, identity}
	if found, ok := c.files[key]; ok {
		return found, nil
	}
	found, err := identify(which, file)
	if err != nil { // not cached: it may be readable later
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
