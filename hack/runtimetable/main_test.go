// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

func TestGeneratedFileIsCurrent(t *testing.T) {
	source, err := api(read(t, "hack/boilerplate.go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(read(t, apiFile)), string(source)); diff != "" {
		t.Errorf("%s differs from internal/runtimes: make generate manifests (-file +table):\n%s", apiFile, diff)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
