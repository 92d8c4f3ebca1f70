// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import "github.com/memfit/memfit/internal/procmem"

// Cache caches what was found in files. Results are reused only within a scope, so that a forged file affects only its
// own scope. It is not safe for concurrent use; its zero value is ready.
type Cache struct {
	files map[cacheKey]File
}

// cacheKey identifies a file and its name, because marks depend on the name.
type cacheKey struct {
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
	key := cacheKey{scope, which.Path, which.Program, identity}
	if found, ok := c.files[key]; ok {
		return found, nil
	}
	found, err := identify(which, file)
	if err != nil { // not cached: it may be readable later
		return found, err
	}
	if again, same := file.Identity(); !same || again != identity {
		return found, nil // the file is being written
	}
	if c.files == nil || len(c.files) >= maxCached {
		c.files = map[cacheKey]File{}
	}
	c.files[key] = found
	return found, nil
}
