// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/memfit/memfit/test/budget"
)

// FuzzSmaps: what comes out of any text is in order and not more than what went in, and what is written as it was read
// reads the same.
func FuzzSmaps(f *testing.F) {
	f.Add(recordedFile(f, "smaps"))
	f.Add([]byte("1000-2000 rwxs 0 00:00 0\nRss: 99999999999999999999 kB\n"))
	f.Add([]byte("0-1 \n1-2 rw-p 0 0:0 0 [heap]\n"))
	within := budget.Budget{Bytes: 256 << 10, PerByte: 24, CPU: time.Second}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got []Mapping
		var err error
		budget.Check(t, within, len(data), func() { got, err = ReadSmaps(bytes.NewReader(data)) })
		if err != nil {
			return
		}
		for i, m := range got {
			if m.End <= m.Start || i > 0 && m.Start < got[i-1].End {
				t.Errorf("mapping %d is %x-%x, behind one that ends at %x", i, m.Start, m.End, got[max(i-1, 0)].End)
			}
			if m.RSS < 0 || m.HugeTLB < 0 || len(m.Path) > maxPath {
				t.Errorf("%+v", m)
			}
		}
	})
}

// FuzzStatus goes through all files of a few lines: whatever they hold, amounts and counts are within their bounds.
func FuzzStatus(f *testing.F) {
	for _, file := range []string{"status", "stat", "cgroup", "environ"} {
		f.Add(recordedFile(f, file))
	}
	f.Add([]byte("Threads: 99999999999\nNSpid:\nShdPnd: zz\n"))
	within := budget.Budget{Bytes: 512 << 10, PerByte: 16, CPU: time.Second}
	f.Fuzz(func(t *testing.T, data []byte) {
		budget.Check(t, within, len(data), func() {
			if s, err := ReadStatus(bytes.NewReader(data)); err == nil && (s.Threads <= 0 || s.Threads > 1<<22 || s.RSS < 0) {
				t.Errorf("%+v", s)
			}
			if start, err := ReadStartTime(bytes.NewReader(data)); err == nil && start == 0 {
				t.Error("a start time of 0 pins nothing")
			}
			if one, err := readTime(bytes.NewReader(data)); err == nil && (one.Time < 0 || len(one.Name) > maxName) {
				t.Errorf("%+v", one)
			}
			env, _ := ReadEnviron(bytes.NewReader(data), []string{"GOGC"})
			if len(env) > 1 || len(env["GOGC"]) > maxValue {
				t.Errorf("%d variables", len(env))
			}
		})
	})
}

func recordedFile(f *testing.F, name string) []byte {
	b, err := os.ReadFile("testdata/100/" + name)
	if err != nil {
		f.Fatal(err)
	}
	return b
}
