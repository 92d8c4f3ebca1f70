// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

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
	changed, err := created(t.Context(), root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if !changed() || changed() {
		t.Error("what was there is to be looked at once")
	}
	for _, dir := range []string{
		"kubepods/burstable/" + pod, "kubepods/burstable/" + pod + "/" + container, "kubepods/besteffort",
	} {
		mkdir(dir)
		for waited := time.Duration(0); !changed(); waited += time.Millisecond {
			if waited > 20*time.Second {
				t.Fatalf("%s was created, and nothing told", dir)
			}
			time.Sleep(time.Millisecond)
		}
	}
	mkdir("elsewhere/" + pod)
	time.Sleep(20 * time.Millisecond)
	if changed() {
		t.Error("a cgroup outside of those of pods was told")
	}
}
