// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/test/budget"
)

// stateBudget is what reading the stored restarts, and writing them twice, may take: 100 are kept, and each takes 64
// bytes in memory for the three that spell it ("{},"), some 90 when it is written, and both in several copies.
var stateBudget = budget.Budget{Bytes: 256 << 10, PerByte: 64, CPU: time.Second}

// FuzzState: whatever a checkpoint holds, it is refused, or read within the budget and back as it was written; noting
// one restart more does not make it grow without bound, and undoing it leaves no trace.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"restarts":[{"pod":"web-1","uid":"u1","at":"2026-03-02T08:00:00Z"}]}`))
	f.Add([]byte(`{"restarts":[]}`))
	f.Add([]byte(`{"restarts":[{"at":"9999-12-31T23:59:59Z"},{"at":"0001-01-01T00:00:00Z"},null]}`))
	f.Add([]byte(`{"restarts":[` + strings.Repeat(`{},`, 1000) + `{}]}`))
	checkState(f, []byte(`{"restarts":[{}]}`)) // what is made once per process is no part of the budget
	f.Fuzz(func(t *testing.T, stored []byte) {
		budget.Check(t, stateBudget, len(stored), func() { checkState(t, stored) })
	})
}

func checkState(t testing.TB, stored []byte) {
	t.Helper()
	var s, again State
	if json.Unmarshal(stored, &s) != nil {
		return
	}
	written, err := json.Marshal(&s)
	if err != nil {
		t.Fatalf("what was read cannot be written: %v", err)
	}
	if err := json.Unmarshal(written, &again); err != nil {
		t.Fatalf("%s was written, and cannot be read: %v", written, err)
	}
	if twice, err := json.Marshal(&again); err != nil || !bytes.Equal(written, twice) {
		t.Errorf("%s was written, and after reading it %s (%v)", written, twice, err)
	}
	before := len(s.Restarts(now))
	s.Undo("uid-of-a-new-pod")
	s.Add(Restart{Pod: "web-2", UID: "uid-of-a-new-pod", At: now})
	if n := len(s.Restarts(now)); n > restartsKept+1 || n > before+1 {
		t.Errorf("%d restarts are on file after one more than %d", n, before)
	}
	s.Undo("uid-of-a-new-pod")
	if n := len(s.Restarts(now)); n > before {
		t.Errorf("%d restarts are on file after one that did not happen, %d before", n, before)
	}
}
