// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command runtimetable generates enums of the API, which the CRDs have as well, from the table in internal/runtimes.
// `make generate` runs it in the root of the repository. It must not import the API, because it writes a part of it.
package main

import (
	"bytes"
	"fmt"
	"os"
)

// apiFile is the generated file.
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

// replace writes a file unless it has this content already, so that make rebuilds nothing.
func replace(file string, content []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return os.WriteFile(file, content, 0o644)
}
