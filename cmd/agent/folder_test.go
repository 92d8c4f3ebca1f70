// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/memfit/memfit/internal/cgroup"
)

// TestFolder: it is a valid file system, and reports which folders contain no others.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "a/y", "a/b/z"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("12\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := folder(dir)
	if err := fstest.TestFS(f, "x", "a/y", "a/b/z"); err != nil {
		t.Error(err)
	}
	if _, err := f.Open("gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if f.Leaf("a") || f.Leaf("gone") || f.Leaf("x") {
		t.Error("a folder with another in it, a file, and nothing are told to be leaves")
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink == 3 && !f.Leaf("a/b") { // this file system counts them
		t.Error("a folder with nothing but a file in it is told to be no leaf")
	}
}

// TestAKeptFileIsReadFromItsStart: each time, with one call.
func TestAKeptFileIsReadFromItsStart(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{"12\n", "3\n"} {
		if err := os.WriteFile(filepath.Join(dir, "x"), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		kept, err := folder(dir).Keep("x")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var b [8]byte
			if n, err := kept.Read(b[:]); string(b[:n]) != want || err != nil {
				t.Errorf("%q, %v, want %q", b[:n], err, want)
			}
		}
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"gone", "../x"} {
		if _, err := folder(dir).Keep(name); err == nil {
			t.Errorf("%s is kept", name)
		}
	}
}

// TestFilesAreClosed: of files that were read, and of folders.
func TestFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	before := open()
	for range 50 {
		if _, err := fs.ReadFile(folder(dir), "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.ReadDir(folder(dir), "."); err != nil {
			t.Fatal(err)
		}
	}
	if now := open(); now > before+10 {
		t.Errorf("%d files are open, %d before", now, before)
	}
}

// BenchmarkUsage is one sample of a container, of which the agent takes two a second where rescues are enabled, and 20
// of one that is about to reach its limit.
func BenchmarkUsage(b *testing.B) {
	dir := b.TempDir()
	for name, text := range map[string]string{"cgroup.controllers": "memory\n", "memory.current": "104857600\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	tree, err := cgroup.Open(folder(dir))
	if err != nil {
		b.Fatal(err)
	}
	gauge := tree.Gauge(".")
	defer gauge.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := gauge.Usage(); err != nil {
			b.Fatal(err)
		}
	}
}
