// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// kept are the changes as they are stored, one a line.
func (c *cluster) kept() string {
	c.t.Helper()
	var b strings.Builder
	for _, change := range c.state().Changes {
		fmt.Fprintf(&b, "%s %d %s in %s: %s; %s\n", change.Kind, change.Pods, change.Pod, change.At.Sub(change.Since),
			change.Sizes, change.Why)
	}
	return b.String()
}

func (c *cluster) expectKept(want string) {
	c.t.Helper()
	if got := c.kept(); got != want {
		c.t.Errorf("kept are\n%swant\n%s", got, want)
	}
}

// TestWhatWasDoneToPodsIsKept: a raise of three pods is one line, also beside what the third could not have.
func TestWhatWasDoneToPodsIsKept(t *testing.T) {
	c := newCluster(t, 3, memory.Size{Request: 70 * mib, Limit: 100 * mib})
	c.wants(big, true)
	for range 4 {
		c.reconcile()
		c.passes(5 * time.Second)
	}
	const raised = "Resized 3 web-3 in 0s: limit of container app 100Mi to 256Mi (request 70Mi to 200Mi); " +
		"limit 256Mi: nine days of evidence\n"
	c.expectKept(raised)

	c.passes(25 * time.Hour)
	c.lowersTheCanary()
	c.killed(0)
	c.passes(time.Second)
	c.reconcile()
	c.passes(5 * time.Second)
	c.reconcile()
	lines := strings.Split(c.kept(), "\n")
	for i, want := range []string{
		raised[:len(raised)-1],
		"Resized 1 web-1 in 0s: limit of container app 256Mi to 100Mi (request 200Mi to 70Mi)",
		"Reverted 1 web-1 in 0s: limit of container app 100Mi to 256Mi; pod web-1 was OOM-killed at that limit",
		"Resized 1 web-1 in 0s: limit of container app 100Mi to 256Mi",
	} {
		if len(lines) != 5 || !strings.HasPrefix(lines[i], want) {
			t.Errorf("a lower limit that killed is kept as\n%swant in line %d\n%s", c.kept(), i+1, want)
		}
	}
}

// TestAChangeKeepsItsOwnReason: a raise that is raised further on the way has two reasons, each with the change that it
// led to.
func TestAChangeKeepsItsOwnReason(t *testing.T) {
	c := newCluster(t, 2, memory.Size{Request: 70 * mib, Limit: 100 * mib})
	c.wants(big, true)
	c.reconcile()
	c.wants(memory.Size{Request: 400 * mib, Limit: 512 * mib}, true)
	for range 6 {
		c.passes(5 * time.Second)
		c.reconcile()
	}
	kept := strings.Split(c.kept(), "\n")
	for _, line := range kept[:len(kept)-1] {
		to, why, _ := strings.Cut(line, "; ")
		if _, to, _ = strings.Cut(to, "Mi to "); !strings.HasPrefix(why, "limit "+strings.Fields(to)[0]+": ") {
			t.Errorf("the reason of another change: %q", line)
		}
	}
	if len(kept) < 3 {
		t.Errorf("only %q", kept)
	}
}

func TestWhatTheKubeletDidNotDoIsKept(t *testing.T) {
	c := newCluster(t, 1, memory.Size{Request: 70 * mib, Limit: 100 * mib})
	c.wants(big, true)
	c.node = func(p *Pod) { p.Resize.Infeasible, p.Resize.Message = true, "Node didn't have enough capacity" }
	c.reconcile()
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectKept("NotResized 1 web-1 in 0s: limit of container app 100Mi to 256Mi (request 70Mi to 200Mi); " +
		"the node cannot hold it: Node didn't have enough capacity\n")
}

func TestARestartForMemoryIsKept(t *testing.T) {
	c := newCluster(t, 2, big)
	c.passes(time.Hour)
	c.in.Restart = &Candidate{Pod: "web-1", UID: "uid-1", Why: "its memory climbs"}
	c.reconcile()
	c.in.Restart = nil
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectKept("")
	c.in.Pods[0].Ready = true
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectKept("RestartedForMemory 1 web-3 in 0s: ; instead of web-1: its memory climbs\n")
}

// TestChangesAreBounded: those of long ago go first.
func TestChangesAreBounded(t *testing.T) {
	var s State
	for i := range 3 * maxChanges {
		at := start.Add(time.Duration(i) * time.Hour)
		s.record(Change{Kind: Resized, At: at, Pod: "web-1", Sizes: fmt.Sprintf("limit %d", i)}, at)
	}
	if n := len(s.Changes); n != maxChanges || s.Changes[n-1].Sizes != fmt.Sprintf("limit %d", 3*maxChanges-1) {
		t.Errorf("%d are kept, the last is %+v", n, s.Changes[n-1])
	}
}
