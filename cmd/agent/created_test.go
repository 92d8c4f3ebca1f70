// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// counting counts what is opened.
type counting struct {
	fs.FS

	dirs atomic.Int32
}

func (c *counting) Open(name string) (fs.File, error) {
	c.dirs.Add(1)
	return c.FS.Open(name)
}

// TestCreated: pods and containers that are new are noticed, also one in a pod that was new itself.
func TestCreated(t *testing.T) {
	const (
		pod       = "pod0f6b7c7a-4c55-4a7a-9d5f-0123456789ab"
		container = "8c2f0c4cc6d4d2b9d2b3a7d8a1c8f4c6e5b7a9d0c1e2f3a4b5c6d7e8f9a0b1c2"
	)
	root := t.TempDir()
	mkdir := func(dir string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, "memory", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mkdir("kubepods/burstable")
	if err := os.WriteFile(filepath.Join(root, "memory", "memory.stat"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		mkdir(fmt.Sprintf("kubepods/burstable/pod0f6b7c7a-4c55-4a7a-9d5f-%012d/%s", i, container))
		mkdir(fmt.Sprintf("system.slice/%d.service", i))
	}
	opened := &counting{FS: folder(root)}
	changed, err := created(t.Context(), root, opened, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if !changed() || changed() {
		t.Error("what was there is to be looked at once")
	}
	opened.dirs.Store(0)
	for _, dir := range []string{
		"kubepods/burstable/" + pod, "kubepods/burstable/" + pod + "/" + container, "kubepods/besteffort",
		"kubepods/besteffort/" + pod, "kubepods/besteffort/" + pod + "/" + container,
	} {
		mkdir(dir)
		for waited := time.Duration(0); !changed(); waited += time.Millisecond {
			if waited > 20*time.Second {
				t.Fatalf("%s was created, and nothing told", dir)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if n := opened.dirs.Load(); n > 5 {
		t.Errorf("%d directories were listed for five that are new", n)
	}
	mkdir("elsewhere/" + pod)
	time.Sleep(20 * time.Millisecond)
	if changed() {
		t.Error("a cgroup outside of those of pods was told")
	}
}
