// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command runtimetable writes what follows from the table of runtimes and cannot read it: the enums of the API, which
// the CRDs repeat, and the tables of docs/guide/runtimes.md. `make generate` runs it at the top of the tree. It imports
// nothing of the API, because it writes a part of it.
package main

import (
	"bytes"
	"fmt"
	"os"
)

// The files it writes: the whole of the first, and tables of the second.
const (
	apiFile = "api/v1alpha1/zz_generated.runtimes.go"
	page    = "docs/guide/runtimes.md"
)

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
		return fmt.Errorf("making %s: %w", apiFile, err)
	}
	if err := replace(apiFile, source); err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := withTables(string(text))
	if err != nil {
		return fmt.Errorf("filling the tables of %s: %w", page, err)
	}
	return replace(page, []byte(filled))
}

// replace leaves a file alone that says the same already, so that nothing is built anew.
func replace(file string, content []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return os.WriteFile(file, content, 0o644)
}
