// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package newruntime

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree is a copy of the repository that the test may change.
type tree struct{ dir string }

// copyTree copies the repository without build output. It reads the files itself, so that go test's cache tracks them.
func copyTree(t *testing.T) tree {
	t.Helper()
	c := tree{t.TempDir()}
	root, err := os.OpenRoot("../..")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // another test removed the file
			return nil
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "dist", "out"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(c.dir, path), 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := root.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(c.dir, path), content, 0o644)
	})
	if err != nil {
		t.Fatalf("copying the repository: %v", err)
	}
	return c
}

// add copies a file or folder of testdata into the tree.
func (c tree) add(t *testing.T, from, to string) {
	t.Helper()
	from, to = filepath.Join("testdata", from), filepath.Join(c.dir, to)
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o644)
	} else if info, statErr := os.Stat(from); statErr == nil && info.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a command in the tree and returns its output.
func (c tree) run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = c.dir
	// Remove the variables by which go test and make control their subprocesses.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PWD=") || strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	})
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is like run, but the test fails if the command does.
func (c tree) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := c.run(t, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func (c tree) read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
