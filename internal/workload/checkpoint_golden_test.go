// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/golden"
)

// remembered is a state in which each part of a checkpoint has something.
func remembered() *State {
	st := NewState()
	st.ledger.Update(nil, st.peak, began.Add(-time.Minute))
	st.ledger.Update(killedPods("shop", 2, 2), st.peak, began.Add(2*time.Minute))
	h := history.New()
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-00000", UID: "u", Container: "app"}
	for minute := range 300 {
		h.Add(memory.Sample{
			Container: ref, Time: began.Add(time.Duration(minute) * time.Minute), Started: began,
			RSS: memory.Bytes(100+minute%7) * memory.MiB, HasRSS: true, Exact: true, WorkingSet: 120 * memory.MiB,
		}, 256*memory.MiB)
	}
	size := memory.Size{Request: 128 * memory.MiB, Limit: 160 * memory.MiB}
	st.containers["app"] = []*evidence{{
		Program: "p1", Owner: memory.Size{Limit: 256 * memory.MiB}, Since: began, Seen: began.Add(5 * time.Hour),
		Kin: []string{"p1", "p0"}, Running: size, history: h,
	}}
	st.rollout = rollout.State{
		LastChange: began, PastRestarts: []rollout.PastRestart{{Pod: "web-00001", UID: "u1", At: began}},
	}
	st.Source, st.Past = "kubelet", "prometheus"
	st.Published = map[string]published{"app": {Size: size, Program: "p1"}}
	st.announced = announced{Drifting: v1alpha1.ReasonClimb, Outliers: []string{"web-00001"}, OutOfDate: true}
	st.Used = map[string]used{"app": {Most: 106 * memory.MiB, Seen: began}}
	st.LiveSets = map[string]history.LiveSet{"app": {Bytes: 90 * memory.MiB, Seen: began}}
	st.Found = map[string]*v1alpha1.FoundRuntime{
		"app": {Type: v1alpha1.RuntimeJVM, Version: "21.0.4", Image: "web:1", HeapPercent: 75, Replicas: 2},
	}
	return st
}

// TestCheckpointFormat: what memfit writes is what the golden file of the version holds, and each version that has a
// golden file can be read. A change of the format needs a new version and a golden file of its own; the file of a
// released version is never changed. Until v0.1.0 is tagged the file may change, and oldest of test/skew with it.
func TestCheckpointFormat(t *testing.T) {
	written, err := json.MarshalIndent(packedWhole(t, remembered()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, fmt.Sprintf("checkpoint-v%d.json", v1alpha1.CheckpointVersion), string(written)+"\n")

	files, err := filepath.Glob("testdata/checkpoint-v*.json")
	if err != nil || len(files) != v1alpha1.CheckpointVersion {
		t.Fatalf("%d golden files, want one per version (%v)", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var stored v1alpha1.MemoryCheckpointStatus
		if err := json.Unmarshal(data, &stored); err != nil {
			t.Fatal(err)
		}
		st := NewState()
		lost, err := st.Unpack(&v1alpha1.MemoryCheckpoint{Status: stored})
		if err != nil || len(lost) > 0 {
			t.Fatalf("%s cannot be read: %v, lost %v", file, err, lost)
		}
		want, got := packedWhole(t, remembered()), packedWhole(t, st)
		if !sameCheckpoint(&want, &got) {
			t.Errorf("%s is read as something else", file)
		}
	}
}
