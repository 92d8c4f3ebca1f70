// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3"
	tests := map[string]struct {
		in        string
		wantTicks uint64
		wantState byte
		wantErr   bool
	}{
		"a plain name":            {in: "42 (etcd)" + rest, wantTicks: 987654, wantState: 'S'},
		"a name with parentheses": {in: "42 (a) Z 1 (b))" + rest, wantTicks: 987654, wantState: 'S'},
		"no name":                 {in: "42 etcd S 1", wantErr: true},
		"cut short":               {in: "42 (etcd) S 1 2 3", wantErr: true},
		"an invalid start time":   {in: "42 (x) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 soon 1", wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ticks, state, err := parseStat([]byte(tc.in))
			if (err != nil) != tc.wantErr {
				t.Fatalf("error = %v, want an error: %v", err, tc.wantErr)
			}
			if ticks != tc.wantTicks || state != tc.wantState {
				t.Errorf("got %d %c, want %d %c", ticks, state, tc.wantTicks, tc.wantState)
			}
		})
	}
}

func TestADaemonIsStartedRecordedAndStopped(t *testing.T) {
	dir := t.TempDir()
	store := Store{Dir: filepath.Join(dir, "processes")}
	started, err := store.Run(
		Spec{
			Name: "stubborn", Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; echo hello; while :; do sleep 0.1; done"},
			Log: filepath.Join(dir, "log"),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = started.Stop() })

	recorded, err := store.Get("stubborn")
	if err != nil {
		t.Fatal(err)
	}
	if !recorded.Alive() {
		t.Fatal("Alive() = false for a started daemon")
	}
	recycled := recorded
	recycled.Start--
	if recycled.Alive() {
		t.Error("Alive() = true for a process with another start time")
	}
	otherBoot := recorded
	otherBoot.Boot = "another"
	if otherBoot.Alive() {
		t.Error("Alive() = true for a process of another boot")
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if data, _ := os.ReadFile(filepath.Join(dir, "log")); string(data) == "hello\n" {
			break
		}
	}
	if err := recorded.Stop(); err != nil {
		t.Fatal(err)
	}
	if recorded.Alive() {
		t.Error("Alive() = true for a stopped daemon")
	}
	if err := store.Forget("stubborn"); err != nil {
		t.Fatal(err)
	}
	if records, err := store.List(); err != nil || len(records) != 0 {
		t.Errorf("List() = %v, %v after Forget", records, err)
	}
}

func TestFindLeavesOutItself(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mine := Find(func(args []string) bool { return args[0] == self })
	if i := slices.IndexFunc(mine, func(r Record) bool { return r.PID == os.Getpid() }); i >= 0 {
		t.Error("Find returned the calling process, which would then kill itself")
	}
}

// TestEndKillsAllOfThem: a process that has ended already is not an error.
func TestEndKillsAllOfThem(t *testing.T) {
	dir := t.TempDir()
	var records []Record
	for _, name := range []string{"a", "b", "c"} {
		r, err := Start(Spec{Name: name, Path: "/bin/sleep", Args: []string{"60"}, Log: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Stop() })
		records = append(records, r)
	}
	if err := records[1].Stop(); err != nil {
		t.Fatal(err)
	}
	if err := End(records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Alive() {
			t.Errorf("Alive() = true for the killed process %s", r.Name)
		}
	}
}

// TestInsideReturnsNone for a plain file, which a namespace is after a reboot, and for the namespace of the caller.
func TestInsideReturnsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "netns")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + "-missing", "/proc/self/ns/net"} {
		if found := Inside(path); len(found) != 0 {
			t.Errorf("Inside(%[2]s) returned %[1]d processes, which would be killed", len(found), path)
		}
	}
}
