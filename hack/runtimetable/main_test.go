// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// TestWhatFollowsFromTheTableIsWritten: the files say what the table says today.
func TestWhatFollowsFromTheTableIsWritten(t *testing.T) {
	source, err := api(read(t, "hack/boilerplate.go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	filled, err := withTables(string(read(t, page)))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{apiFile: string(source), page: filled} {
		if diff := cmp.Diff(string(read(t, file)), want); diff != "" {
			t.Errorf("%s does not say what internal/runtimes says: make generate manifests (-file +table):\n%s", file, diff)
		}
	}
}

// TestAPageWithoutItsMarkersIsRefused: a table that lost its place would otherwise stay as it was for good.
func TestAPageWithoutItsMarkersIsRefused(t *testing.T) {
	text := string(read(t, page))
	for _, marker := range []string{"<!-- table settings: make generate -->", "<!-- end of table never -->"} {
		_, err := withTables(strings.Replace(text, marker, "", 1))
		if err == nil || !strings.Contains(err.Error(), marker) {
			t.Errorf("without %s: %v, want an error that names it", marker, err)
		}
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
