// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree finds the repository that a test runs in.
package tree

import (
	"os"
	"path/filepath"
)

// Root returns the repository's root: the nearest folder with a file PROJECT, at or above the test's start folder. It
// panics if there is none.
func Root() string {
	if root == "" {
		panic("file PROJECT not found here or in a parent folder: start the test in memfit's repository")
	}
	return root
}

// root is found before a test changes its folder. The path of this file is not available, because of -trimpath.
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
