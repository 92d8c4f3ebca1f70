// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
)

func TestUnreadableHistoryIsBegunAfreshAndTheLedgerKept(t *testing.T) {
	written := NewState()
	ledger, err := written.ledger.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	c := &v1alpha1.MemoryCheckpoint{Status: v1alpha1.MemoryCheckpointStatus{
		Version: v1alpha1.CheckpointVersion, Ledger: ledger,
		Containers: []v1alpha1.CheckpointContainer{{Name: "app", History: []byte("of another time")}},
	}}
	m := NewState()
	lost, err := m.Unpack(c)
	if err != nil {
		t.Fatalf("the workload is not looked at any more: %v", err)
	}
	if len(lost) != 1 || !strings.Contains(lost[0].Error(), "container app") {
		t.Errorf("lost %v, want the history of container app named", lost)
	}
	if m.containers["app"] == nil {
		t.Error("container app has no history to go on with")
	}

	c.Status.Ledger = []byte("{")
	if _, err := NewState().Unpack(c); err == nil {
		t.Error("a ledger that cannot be read was taken for an empty one")
	}
	c.Status.Version = v1alpha1.CheckpointVersion + 1
	if _, err := NewState().Unpack(c); err == nil || !strings.Contains(err.Error(), "newer memfit") {
		t.Errorf("got %v, want a refusal that names the newer memfit", err)
	}
}

// TestNamesOfOldVersionsAreForgotten: a workload whose containers have another name in each version costs no more than
// one that has many.
func TestNamesOfOldVersionsAreForgotten(t *testing.T) {
	m := NewState()
	m.History("app")
	for version := range 1000 {
		name := fmt.Sprintf("a-%04d", version) // before app, as names go
		m.History(name)
		m.forgetNames([]*corev1.Pod{build.Pod("shop", "web").Container("app").Container(name).Obj()})
	}
	if n := len(m.containers); n > MaxContainers || m.containers["app"] == nil || m.containers["a-0999"] == nil {
		t.Errorf(
			"%d histories, app among them: %t, the newest version among them: %t", n, m.containers["app"] != nil,
			m.containers["a-0999"] != nil,
		)
	}
}

// afterRestart is the state that a new process of memfit reads.
func afterRestart(t *testing.T, st *State) *State {
	t.Helper()
	again := NewState()
	if lost, err := again.Unpack(&v1alpha1.MemoryCheckpoint{Status: packedWhole(t, st)}); err != nil || len(lost) > 0 {
		t.Fatalf("what was written cannot be read: %v, lost %v", err, lost)
	}
	return again
}

// TestSourcesAreRecalledAsTheyWere: where usage comes from outlives a restart of memfit, also where only the past was
// read: it is not a source of what is used now.
func TestSourcesAreRecalledAsTheyWere(t *testing.T) {
	for _, want := range []struct{ source, past string }{
		{"kubelet", ""}, {"", "prometheus"}, {"metrics-api", "prometheus"},
	} {
		st := NewState()
		st.Source, st.Past = want.source, want.past
		if again := afterRestart(t, st); again.Source != want.source || again.Past != want.past {
			t.Errorf("%+v is recalled as %q, %q", want, again.Source, again.Past)
		}
	}
}

// TestWhatWasPublishedIsRecalledFromTheCheckpoint: a restart of memfit forgets nothing that decisions and Events rest
// on, and does not need the MemoryRecommendation for it.
func TestWhatWasPublishedIsRecalledFromTheCheckpoint(t *testing.T) {
	st := NewState()
	size := memory.Size{Request: memory.GiB, Limit: 2 * memory.GiB}
	st.Published = map[string]published{"app": {Size: size, Program: "p1"}}
	st.Used = map[string]used{"app": {Most: memory.MiB, Seen: began}}
	st.LiveSets = map[string]history.LiveSet{"app": {Bytes: 3 * memory.MiB, Seen: began}}
	st.Found = map[string]*v1alpha1.FoundRuntime{"app": {Type: v1alpha1.RuntimeJVM, Version: "21", Replicas: 2}}
	st.announced = announced{
		Drifting: v1alpha1.ReasonClimb, Outliers: []string{"web-1"}, OutOfDate: true, Conflicted: true, LedgerFull: true,
	}
	again := afterRestart(t, st)
	all := cmp.AllowUnexported(published{}, used{}, announced{}, history.LiveSet{})
	of := func(st *State) []any {
		return []any{st.Published, st.LiveSets, st.Found, st.announced}
	}
	if diff := cmp.Diff(of(st), of(again), all); diff != "" {
		t.Error(diff)
	}
	if want := (used{Most: memory.MiB, Seen: began, restored: true}); again.Used["app"] != want {
		t.Errorf("used %+v, want %+v", again.Used["app"], want)
	}
}
