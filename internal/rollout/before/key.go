// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package before

import "strings"

// Key names a container and the program that it runs: a recommendation rests on the evidence of one program and is for
// its pods alone. Program is empty where it is unknown.
type Key struct{ Container, Program string }

// key returns the key of a running container.
func (c *Container) key() Key { return Key{c.Name, c.Program} }

// MarshalText returns "container@program", or "container".
func (k Key) MarshalText() ([]byte, error) {
	if k.Program == "" {
		return []byte(k.Container), nil
	}
	return []byte(k.Container + "@" + k.Program), nil
}

// UnmarshalText reads what MarshalText wrote. The name of a container has no "@".
func (k *Key) UnmarshalText(text []byte) error {
	k.Container, k.Program, _ = strings.Cut(string(text), "@")
	return nil
}
