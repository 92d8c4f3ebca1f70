// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package goldenpods finds the golden pairs of internal/inject, which several tests take different ways: NAME.yaml, a pod with
// what governs it, and NAME.yaml.injected, what becomes of it. Those of one runtime stand in a folder of its own.
package goldenpods

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
)

// fewest catches a test that looks in the wrong place and so finds nothing wrong.
const fewest = 100

// Dir is the folder that holds them.
func Dir() string {
	_, file, _, _ := runtime.Caller(0) //nolint:dogsled // the file is all that counts
	return filepath.Join(filepath.Dir(file), "..", "..", "internal", "inject", "testdata")
}

// Inputs are the files NAME.yaml, in order.
func Inputs() ([]string, error) { return named("*.yaml") }

// Outputs are the files NAME.yaml.injected, in order.
func Outputs() ([]string, error) { return named("*.yaml.injected") }

func named(pattern string) ([]string, error) {
	var found []string
	for _, at := range []string{pattern, filepath.Join("*", pattern)} {
		files, err := filepath.Glob(filepath.Join(Dir(), at))
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	if len(found) < fewest {
		return nil, fmt.Errorf("%d files %s in %s and its folders, want at least %d", len(found), pattern, Dir(), fewest)
	}
	slices.Sort(found)
	return found, nil
}
