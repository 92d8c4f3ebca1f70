// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"compress/gzip"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// TestRecordedHeaps counts the alarms of real processes that do not leak (test/recordings: Node.js, the JVM, Go,
// CPython and Ruby) under a limit just above the highest that each needed in its 12 to 15 minutes. Each alarm is false,
// and is the first time that its process comes so high: what is left to the limit is the growth of half a second.
func TestRecordedHeaps(t *testing.T) {
	for _, c := range []struct {
		above int32 // percent of the highest
		most  int
	}{{4, 27}, {15, 8}} {
		alarms, hours, processes := 0, 0.0, 0
		for _, r := range recorded(t, false) {
			n := falseAlarms(r, r.highest().Percent(100+c.above).Plus(2*mib))
			alarms, hours, processes = alarms+n, hours+float64(len(r))/3600, processes+1
		}
		t.Logf("%d %% above the highest: %d alarms of %d processes in %.1f h", c.above, alarms, processes, hours)
		if alarms > c.most || hours < 20 {
			t.Errorf("%d %% above the highest: %d alarms in %.1f h, want %d at most", c.above, alarms, hours, c.most)
		}
	}
}

// recording is what a process needed each second.
type recording []memory.Bytes

func (r recording) highest() (most memory.Bytes) {
	for _, b := range r {
		most = max(most, b)
	}
	return most
}

// at is what it needed after a time, between two seconds in proportion.
func (r recording) at(at time.Duration) memory.Bytes {
	second, part := int(at/time.Second), memory.Bytes(at%time.Second)
	return (r[second]*memory.Bytes(time.Second-time.Duration(part)) + r[second+1]*part) / memory.Bytes(time.Second)
}

// falseAlarms follows a recording as an agent does, whose alarms get a loan.
func falseAlarms(r recording, limit memory.Bytes) (n int) {
	var w Watch
	allowed := limit
	for at := time.Duration(0); at < time.Duration(len(r)-1)*time.Second; {
		w.Add(Sample{start.Add(at), r.at(at), allowed})
		if p, due := w.Due(allowed, 0, 420*time.Millisecond); due {
			w.Raise(p)
			n++
			allowed = limit.Percent(MaxPercent)
		}
		if at += seldom; w.MayReach(allowed, 2*time.Second) {
			at += often - seldom
		}
	}
	return n
}

// recorded are the processes that leak, or do not, and lived for two minutes at least.
func recorded(t *testing.T, leaks bool) (all []recording) {
	t.Helper()
	files, err := filepath.Glob("../../test/recordings/*.csv.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		if strings.Contains(file, "-leak-") != leaks {
			continue
		}
		processes := map[string]recording{}
		for _, row := range rows(t, file)[1:] {
			kib, err := strconv.ParseInt(row[5], 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			of := row[1] + "/" + row[2] // replica and instance
			processes[of] = append(processes[of], memory.Bytes(kib)*memory.KiB)
		}
		for _, r := range processes {
			if len(r) >= 120 {
				all = append(all, r)
			}
		}
	}
	return all
}

func rows(t *testing.T, file string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(unzipped).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return all
}
