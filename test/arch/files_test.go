// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the top of the repository, seen from this package.
const root = "../.."

// files returns the paths of all files of the repository, relative to its top and with slashes: what git tracks or
// would add. In a source archive, where git knows nothing, every file counts.
func files(t *testing.T) []string {
	t.Helper()
	found, err := listFiles()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var listFiles = sync.OnceValues(func() ([]string, error) {
	var found []string
	if out, err := exec.Command(
		"git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard",
	).Output(); err == nil {
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
				found = append(found, name)
			}
		}
		return found, openFolders(found)
	}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		found = append(found, filepath.ToSlash(rel))
		return err
	})
	return found, err
})

// openFolders opens every folder that leads to a file. go test replays a cached result as long as what a test opened is
// unchanged, and it does not see what git opened: without this a new file would go unchecked.
func openFolders(names []string) error {
	opened := map[string]bool{}
	for _, name := range names {
		for dir := path.Dir(name); !opened[dir]; dir = path.Dir(dir) {
			opened[dir] = true
			if _, err := os.ReadDir(filepath.Join(root, dir)); err != nil {
				return err
			}
		}
	}
	return nil
}

// goFiles returns the Go files that people wrote, apart from test data.
func goFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, f := range files(t) {
		if path.Ext(f) == ".go" && !slices.Contains(strings.Split(f, "/"), "testdata") && !isGenerated(t, f) {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		t.Fatal("no Go file found: the test looks in the wrong place")
	}
	return found
}

// goDirs returns the folders that hold Go files other than tests, each with these files.
func goDirs(t *testing.T) map[string][]string {
	t.Helper()
	dirs := map[string][]string{}
	for _, f := range goFiles(t) {
		if !strings.HasSuffix(f, "_test.go") {
			dirs[path.Dir(f)] = append(dirs[path.Dir(f)], f)
		}
	}
	return dirs
}

func isGenerated(t *testing.T, file string) bool {
	t.Helper()
	for line := range strings.Lines(string(read(t, file))) {
		if strings.HasPrefix(line, "// Code generated ") && strings.HasSuffix(strings.TrimSpace(line), " DO NOT EDIT.") {
			return true
		}
		if strings.HasPrefix(line, "package ") {
			return false
		}
	}
	return false
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
