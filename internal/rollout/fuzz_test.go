// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

// stateBudget is what reading a stored state may take, and a decision about three pods with it.
var stateBudget = budget.Budget{Bytes: 256 << 10, PerByte: 64, CPU: time.Second}

// FuzzState: whatever a checkpoint holds, it is refused or used without falling over, reads back as it was written,
// stays bounded, and makes nothing happen to a pod that is not there or to more pods than the policy allows.
func FuzzState(f *testing.F) {
	for _, stored := range storedStates(f) {
		f.Add(stored)
		checkState(f, stored) // what is made once per process is no part of the budget
	}
	f.Add(
		[]byte(
			`{"rollout":{"began":"9999-12-31T23:59:59Z","decrease":true,"targets":{"app":{"Limit":-1}}},
				"steps":[{"pod":"web-1","uid":"uid-1","phase":"Evicting"}]}`,
		),
	)
	f.Add(
		[]byte(
			`{"rollout":{"targets":{}},
				"steps":[{"uid":"uid-1","at":"0001-01-01T00:00:00Z","from":{"app":{}},
				"to":{"app":{"Limit":9223372036854775807}},"request":{"tries":99}}]}`,
		),
	)
	f.Add(
		[]byte(
			`{"restart":{"uid":"uid-2"},"pastRestarts":[{"at":"9999-12-31T23:59:59Z"},{"at":"0001-01-01T00:00:00Z"}],"conflictingWriter":{"until":"2999-01-01T00:00:00Z","why":"x"},"reverts":[{"container":"app"}]}`,
		),
	)
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
	for _, desired := range []memory.Size{small, big} {
		c := newCluster(t, 3, memory.Size{Request: 100 * mib, Limit: 128 * mib})
		c.wants(desired, desired == big)
		c.killed(0)
		c.in.State, c.in.Policy.Evict = s, true
		c.in.State, _ = Observe(c.in, c.kills)
		d := Decide(c.in)
		checkTransition(t, &d, &s)
	}
	if after, err := json.Marshal(&s); err != nil || !bytes.Equal(written, after) {
		t.Errorf("deciding changed the state they were given: %s became %s (%v)", written, after, err)
	}
}

// storedStates are what workloads have in their checkpoints in the middle of things.
func storedStates(t testing.TB) (stored [][]byte) {
	t.Helper()
	for name, meet := range map[string]func(*cluster){
		"a canary":  func(c *cluster) { c.wants(small, false) },
		"a raise":   func(c *cluster) { c.wants(memory.Size{Request: 300 * mib, Limit: 512 * mib}, true) },
		"a refusal": func(c *cluster) { c.wants(small, false); c.refuse = func(Action) bool { return true } },
		"an evicted": func(c *cluster) {
			c.wants(small, false)
			c.in.Policy.Evict = true
			c.node = func(p *Pod) { p.Resize.Infeasible = true }
		},
	} {
		c := newCluster(t, 3, big)
		meet(c)
		for range 3 {
			c.reconcile()
			c.passes(5 * time.Second)
		}
		left := c.stored()
		if len(left) < 20 {
			t.Fatalf("%s leaves nothing behind: %s", name, left)
		}
		stored = append(stored, left)
	}
	return stored
}

func checkTransition(t testing.TB, d *Transition, before *State) {
	t.Helper()
	if len(d.State.Changes) > maxChanges || len(d.State.Refusals) > maxRefusals ||
		len(d.State.Steps) > max(maxSteps, len(before.Steps)) {
		t.Errorf("the state grows: %+v", d.State)
	}
	if _, err := json.Marshal(&d.State); err != nil {
		t.Errorf("the next state cannot be written: %v", err)
	}
	present, evicted := map[types.UID]bool{"uid-1": true, "uid-2": true, "uid-3": true}, map[types.UID]bool{}
	for _, a := range d.Actions {
		if !present[a.UID] {
			t.Errorf("something is done to %s, which is not there: %+v", a.UID, a)
		}
		for name, size := range a.Sizes {
			if !a.Undo && (size.Limit < 0 || size.Request < 0) {
				t.Errorf("container %s is to get %+v", name, size)
			}
		}
		if a.Evict {
			evicted[a.UID] = true
		}
	}
	if len(evicted) > 1 {
		t.Errorf("%d pods are evicted at once, and one may be away", len(evicted))
	}
}
