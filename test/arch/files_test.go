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

// root is the repository's root directory, relative to this package.
const root = "../.."

// files returns the slash-separated paths, relative to root, of all files that git tracks or would add. In a source
// archive, which has no git data, it returns every file.
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

// openFolders opens the parent folders of all files. go test reuses a cached result while all files and folders that
// the test opened are unchanged. It does not see what git opened, so without openFolders a new file would be unchecked.
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

// goFiles returns the handwritten Go files outside testdata.
func goFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, f := range files(t) {
		if path.Ext(f) == ".go" && !slices.Contains(strings.Split(f, "/"), "testdata") && !isGenerated(t, f) {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		t.Fatal("no Go file found: the test searches the wrong folder")
	}
	return found
}

// goDirs returns the non-test Go files by folder.
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
