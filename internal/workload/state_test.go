// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"

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
		Version: CheckpointVersion, Ledger: ledger,
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
	c.Status.Version = CheckpointVersion + 1
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

// TestSourcesAreRecalledAsTheyWere: where usage comes from outlives a restart of memfit, also where only the past was
// read: it is no source of what is used now.
func TestSourcesAreRecalledAsTheyWere(t *testing.T) {
	h := history.New()
	h.Add(memory.Sample{Time: began, WorkingSet: memory.MiB}, 0)
	for _, want := range []v1alpha1.Evidence{
		{Source: "kubelet", Certainty: "WorkingSetOnly"}, {HistorySource: "prometheus", Certainty: "WorkingSetOnly"},
		{Source: "metrics-api", HistorySource: "prometheus", Certainty: "WorkingSetOnly"},
	} {
		var e v1alpha1.Evidence
		setSources(&e, want.Source, want.HistorySource, h)
		st := NewState()
		st.Recall(&v1alpha1.MemoryRecommendationStatus{
			Containers: []v1alpha1.ContainerRecommendation{{Container: "app", Evidence: e}},
		})
		if e != want || st.source != want.Source || st.past != want.HistorySource {
			t.Errorf("%+v is written as %+v and recalled as %q, %q", want, e, st.source, st.past)
		}
	}
}
