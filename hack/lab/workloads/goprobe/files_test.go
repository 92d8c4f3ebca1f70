// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
	"time"
)

func TestFilesAreReadAgainAndAgain(t *testing.T) {
	p, dir := &probe{pause: time.Millisecond}, t.TempDir()
	if err := p.files(dir, 3<<20+5, 2<<20, true); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"/mapped": 3<<20 + 5, "/read": 2 << 20} {
		if info, err := os.Stat(dir + name); err != nil || info.Size() != want {
			t.Errorf("%s: %v, %v, want %d bytes", name, info, err, want)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); p.stats().Rounds < 4; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d passes in 10s, want 4", p.stats().Rounds)
		}
	}
	if took, err := time.ParseDuration(p.stats().RoundTook); err != nil || took <= 0 {
		t.Errorf("the last pass took %v, %v", took, err)
	}
}

func TestAFileThatCannotBeWrittenIsAnError(t *testing.T) {
	if err := (&probe{}).files("/proc/no/such/place", 1<<20, 0, false); err == nil {
		t.Error("no error")
	}
}
