// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/procmem"
)

// counted is a file with an identity that counts how often it is read.
type counted struct {
	*bytes.Reader
	identity *procmem.FileIdentity
	reads    *int
}

func (c counted) ReadAt(p []byte, at int64) (int, error) {
	*c.reads++
	return c.Reader.ReadAt(p, at)
}

func (c counted) Size() int64                            { return c.Reader.Size() }
func (c counted) Close() error                           { return nil }
func (c counted) Identity() (procmem.FileIdentity, bool) { return *c.identity, c.identity.Inode != 0 }

// TestFilesAreLookedThroughOnce: within a scope, as long as the file is the same one.
func TestFilesAreLookedThroughOnce(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	identity, reads := procmem.FileIdentity{Device: 1, Inode: 2, Size: 3, Modified: 4, Changed: 5}, 0
	open := func(path string) (procmem.File, error) {
		if path == "" {
			return nil, os.ErrNotExist
		}
		return counted{bytes.NewReader(program), &identity, &reads}, nil
	}
	var c Cache
	want, err := new(Cache).Gather("", Process{Program: "/srv/app"}, open)
	if err != nil || reads == 0 || Detect(want).Title != "Go" {
		t.Fatalf("%d reads, %+v", reads, want)
	}
	looks := func(scope, path string) bool {
		t.Helper()
		reads = 0
		got, err := c.Gather(scope, Process{Program: path}, open)
		want.Program, want.Files[0].Path = path, path
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v, -want +got:\n%s", err, diff)
		}
		return reads > 0
	}
	for i, step := range []struct {
		scope, path string
		change      func()
		looks       bool
	}{
		{"shop", "/srv/app", func() {}, true},
		{"shop", "/srv/app", func() {}, false},
		{"bank", "/srv/app", func() {}, true}, // whoever made it up in one namespace misleads no other
		{"shop", "/srv/other", func() {}, true},
		{"shop", "/srv/app", func() { identity.Changed++ }, true},
		{"shop", "/srv/app", func() { identity.Inode = 0 }, true}, // it cannot be told from others
		{"shop", "/srv/app", func() {}, true},
	} {
		step.change()
		if looks(step.scope, step.path) != step.looks {
			t.Errorf("step %d: looked through: %v", i, !step.looks)
		}
	}
	for i := range maxCached {
		c.files[cacheKey{scope: "shop", identity: procmem.FileIdentity{Inode: uint64(10 + i)}}] = File{}
	}
	identity.Inode = 3
	looks("shop", "/srv/app")
	if len(c.files) > maxCached {
		t.Errorf("%d files are remembered", len(c.files))
	}
}

// TestAFileThatIsWrittenIsNotRemembered: what was found may be of neither version.
func TestAFileThatIsWrittenIsNotRemembered(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	identity, reads := procmem.FileIdentity{Inode: 2}, 0
	var c Cache
	if _, err := c.Gather("shop", Process{Program: "/srv/app"}, func(string) (procmem.File, error) {
		return written{counted{bytes.NewReader(program), &identity, &reads}}, nil
	}); err != nil || len(c.files) != 0 {
		t.Errorf("remembered: %+v, error %v", c.files, err)
	}
}

// TestAFileThatFailsIsNotRemembered: wherever reading it fails, the error is returned, and the next process that runs
// the file may be able to read it.
func TestAFileThatFailsIsNotRemembered(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	identity, all := procmem.FileIdentity{Inode: 2}, 0
	if _, err := new(Cache).Gather("", Process{Program: "/srv/app"}, func(string) (procmem.File, error) {
		return counted{bytes.NewReader(program), &identity, &all}, nil
	}); err != nil || all < 3 {
		t.Fatalf("%d reads, error %v", all, err)
	}
	for _, at := range []int{1, 2, all / 2, all} {
		var c Cache
		reads := 0
		_, err := c.Gather("shop", Process{Program: "/srv/app"}, func(string) (procmem.File, error) {
			return failing{counted{bytes.NewReader(program), &identity, &reads}, at}, nil
		})
		if !errors.Is(err, os.ErrDeadlineExceeded) || len(c.files) != 0 {
			t.Errorf("read %d of %d fails: error %v, %d remembered", at, all, err, len(c.files))
		}
	}
}

// failing is a file of which one read fails.
type failing struct {
	counted

	at int
}

func (f failing) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.counted.ReadAt(p, at)
	if *f.reads == f.at {
		return 0, os.ErrDeadlineExceeded
	}
	return n, err
}

// written is a file that changes with every read.
type written struct{ counted }

func (w written) ReadAt(p []byte, at int64) (int, error) {
	w.identity.Changed++
	return w.counted.ReadAt(p, at)
}
