// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSamplesAreCurrent: config/samples/map has exactly the files that `make map-sample` writes.
func TestSamplesAreCurrent(t *testing.T) {
	t.Chdir("../..")
	profiles, err := filepath.Glob("config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	profiles = slices.DeleteFunc(profiles, func(f string) bool { return filepath.Base(f) == "kustomization.yaml" })
	fresh := t.TempDir()
	if err := run(fresh, profiles); err != nil {
		t.Fatal(err)
	}
	want, have := contents(t, fresh), contents(t, "config/samples/map")
	if len(want) == 0 {
		t.Fatal("no policy from config/samples: is the path wrong?")
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf(
			"config/samples/map is out of date, run `make map-sample` (and remove files that it no longer writes): -want "+
				"+got\n%s",
			diff,
		)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = string(content)
	}
	return all
}
