// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree finds the source tree that a test runs in.
package tree

import (
	"os"
	"path/filepath"
)

// Root is the root of the repository: the nearest folder with a PROJECT, from where the test was started.
func Root() string {
	if root == "" {
		panic("no file PROJECT here or in the folders above: start the test in memfit's tree")
	}
	return root
}

// Found before a test changes its folder; not from the path of this file, which -trimpath takes away.
var root = func() string {
	for dir, _ := os.Getwd(); dir != ""; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "PROJECT")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return ""
}()
