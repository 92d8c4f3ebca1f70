// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command runtimetable writes the enums of the API that follow from the table of runtimes, and which the CRDs repeat.
// `make generate` runs it at the top of the tree. It imports nothing of the API, because it writes a part of it.
package main

import (
	"bytes"
	"fmt"
	"os"
)

// apiFile is what it writes.
const apiFile = "api/v1alpha1/zz_generated.runtimes.go"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "runtimetable:", err)
		os.Exit(1)
	}
}

func run() error {
	header, err := os.ReadFile("hack/boilerplate.go.txt")
	if err != nil {
		return err
	}
	source, err := api(header)
	if err != nil {
		return fmt.Errorf("generating %s: %w", apiFile, err)
	}
	return replace(apiFile, source)
}

// replace keeps an equal file, so that nothing is rebuilt.
func replace(file string, content []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return os.WriteFile(file, content, 0o644)
}
