// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memfit/memfit/hack/lab/internal/flock"
)

// TestArgs: without each of these arguments, the guest is slow, crashes, or has access to all files of the machine.
func TestArgs(t *testing.T) {
	args := Boot{Disk: "/s/disk", Share: "/s/share", Run: "/r", Device: "dev0"}.Args()
	for _, want := range []string{
		"seccomp=on", "ncpus=1", "ubd0=/s/disk", "hostfs=/s/share", "uml_dir=/r/", "vec0:transport=raw,ifname=dev0,depth=128",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("%q lacks %q", args, want)
		}
	}
	if has := slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "ubd1") }); has {
		t.Errorf("%q has a swap device", args)
	}
	if swap := (Boot{Swap: "/s/swap"}).Args(); !slices.Contains(swap, "ubd1=/s/swap") {
		t.Errorf("%q has no swap device", swap)
	}
}

// guest writes the result of one command as files/node-init does.
func guest(t *testing.T, s Share, code string) {
	t.Helper()
	for {
		scripts, err := filepath.Glob(s.path("commands", "*.run"))
		if err != nil {
			t.Error(err)
			return
		}
		for _, script := range scripts {
			name := strings.TrimSuffix(script, ".run")
			text, err := os.ReadFile(script)
			err = errors.Join(err, os.WriteFile(name+".out", append([]byte("did "), text...), 0o600),
				os.WriteFile(name+".tmp", []byte(code+"\n"), 0o600), os.Rename(name+".tmp", name+".code"))
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

func TestRun(t *testing.T) {
	s := Share(filepath.Join(t.TempDir(), "share"))
	if err := s.Prepare(map[string]string{"B": "it's", "A": "1"}); err != nil {
		t.Fatal(err)
	}
	if env, _ := os.ReadFile(s.path("node.env")); string(env) != "A='1'\nB='it'\\''s'\n" {
		t.Errorf("node.env: %s", env)
	}
	up := func() bool { return true }
	go guest(t, s, "0")
	if out, err := s.Run(t.Context(), up, "true"); string(out) != "did true" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	go guest(t, s, "3")
	var exit *ExitError
	if out, err := s.Run(t.Context(), up, "exit 3"); !errors.As(err, &exit) || exit.Code != 3 || len(out) == 0 {
		t.Errorf("a command that fails: %q, %v", out, err)
	}
	if _, err := s.Run(t.Context(), func() bool { return false }, "true"); err == nil {
		t.Error("a dead guest: no error")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Run(canceled, up, "true"); !errors.Is(err, context.Canceled) {
		t.Errorf("a guest that hangs: %v", err)
	}
	if left, _ := filepath.Glob(s.path("commands", "*")); len(left) > 0 {
		t.Errorf("files of commands are left: %q", left)
	}
}

func TestSeedNameFollowsItsContent(t *testing.T) {
	busybox := filepath.Join(t.TempDir(), "busybox")
	if err := os.WriteFile(busybox, []byte("shell"), 0o600); err != nil {
		t.Fatal(err)
	}
	usual := func() SeedRequest {
		return SeedRequest{
			Kernel: "/k", Programs: "/p", Images: []string{"/a", "/b"}, Config: map[string][]byte{"c": []byte("1")},
			Share: "/share", Memory: "/m", Run: "/r",
		}
	}
	seen := map[string]string{}
	for what, change := range map[string]func(*SeedRequest){
		"as it is":           func(*SeedRequest) {},
		"another kernel":     func(r *SeedRequest) { r.Kernel = "/k2" },
		"other programs":     func(r *SeedRequest) { r.Programs = "/p2" },
		"another image":      func(r *SeedRequest) { r.Images = []string{"/a", "/b2"} },
		"one image less":     func(r *SeedRequest) { r.Images = []string{"/a"} },
		"other settings":     func(r *SeedRequest) { r.Config = map[string][]byte{"c": []byte("2")} },
		"settings elsewhere": func(r *SeedRequest) { r.Config = map[string][]byte{"d": []byte("1")} },
	} {
		r := usual()
		change(&r)
		name, err := seedName(r, busybox)
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[name]; other != "" {
			t.Errorf("%s has the name of %s", what, other)
		}
		seen[name] = what
	}
	elsewhere := usual()
	elsewhere.Share, elsewhere.Memory, elsewhere.Run = "/share2", "/m2", "/r2"
	if name, err := seedName(elsewhere, busybox); err != nil || seen[name] != "as it is" {
		t.Errorf("the name depends on the lab that makes the disk: %v", err)
	}
}

// TestEndOrphans: processes and files of an interrupted build are removed, and a running build is not changed.
func TestEndOrphans(t *testing.T) {
	store := t.TempDir()
	orphaned, err := workDir(filepath.Join(store, "a"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.Dir = orphaned
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	unlock, err := flock.Lock(t.Context(), filepath.Join(store, "b.lock"), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	going, err := workDir(filepath.Join(store, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := EndOrphans(store); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the compiler was not killed")
	}
	if _, err := os.Stat(orphaned); err == nil {
		t.Error("the files of the interrupted build are not removed")
	}
	if _, err := os.Stat(going); err != nil {
		t.Errorf("the running build: %v", err)
	}
}
