// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/cgroup"
)

// TestCreated: pods and containers that are new are noticed, also one in a pod that was new itself, and each is found
// by one search.
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
	tree, err := cgroup.Open(folder(root))
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWatch(t.Context(), root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	search := func() (containers int) {
		t.Helper()
		found, parents, err := tree.Containers()
		if err != nil {
			t.Fatal(err)
		}
		w.Watch(parents)
		return len(found)
	}
	if n := search(); n != 50 || !w.Created() {
		t.Errorf("%d containers at first, and what came before the watch is to be searched for", n)
	}
	if search(); w.Created() {
		t.Error("nothing was created")
	}
	for _, tc := range []struct {
		dir        string
		containers int
	}{
		{"kubepods/burstable/" + pod, 50}, {"kubepods/burstable/" + pod + "/" + container, 51}, {"kubepods/besteffort", 51},
		{"kubepods/besteffort/" + pod, 51}, {"kubepods/besteffort/" + pod + "/" + container, 52},
	} {
		mkdir(tc.dir)
		for waited := time.Duration(0); !w.Created(); waited += time.Millisecond {
			if waited > 20*time.Second {
				t.Fatalf("%s was created, and not noticed", tc.dir)
			}
			time.Sleep(time.Millisecond)
		}
		if n := search(); n != tc.containers || w.Created() {
			t.Errorf("%d containers after %s, want %d, and no other search", n, tc.dir, tc.containers)
		}
	}
	mkdir("elsewhere/" + pod)
	time.Sleep(20 * time.Millisecond)
	if w.Created() {
		t.Error("a cgroup outside of those of pods was noticed")
	}
}

// TestACgroupThatIsGoneIsNotWatched: of a cgroup, the kernel does not remove the watch.
func TestACgroupThatIsGoneIsNotWatched(t *testing.T) {
	root := t.TempDir()
	w, err := newWatch(t.Context(), root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // it may come back
		if added, err := w.add(root); !added || err != nil {
			t.Fatalf("added %v, %v", added, err)
		}
		if w.forget(root); len(w.watcher.WatchList()) != 0 {
			t.Errorf("still watched: %v", w.watcher.WatchList())
		}
	}
}
