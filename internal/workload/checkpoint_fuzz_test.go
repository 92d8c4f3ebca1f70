// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/test/budget"
)

// checkpointBudget is what reading a whole checkpoint may take, and writing what it became. A history takes a few KiB
// in memory.
var checkpointBudget = budget.Budget{Bytes: 1 << 20, PerByte: 256, CPU: time.Second}

// FuzzCheckpoint: whatever a checkpoint holds, it is refused or becomes something that fits into one again, is the same
// when that is read, and to which the next kill can be added, once.
func FuzzCheckpoint(f *testing.F) {
	m := full("shop", 3, 2)
	status, err := m.Pack()
	if err != nil {
		f.Fatal(err)
	}
	if err := m.PackHistories(&status); err != nil {
		f.Fatal(err)
	}
	sizing := []byte(
		`{"lastChange":"2026-03-02T08:00:00Z","refusals":[{"pod":"web-1","uid":"u1","until":"2026-03-02T09:00:00Z","reason":"DisruptionBudget","why":"x"}],"pastRestarts":[{"pod":"web-1","uid":"u1","at":"2026-03-02T08:00:00Z"}]}`,
	)
	// what is made once per process
	checkCheckpoint(f, v1alpha1.CheckpointVersion, status.Ledger, sizing, status.Containers[0].History, "app")
	f.Add(int32(v1alpha1.CheckpointVersion), status.Ledger, sizing, status.Containers[0].History, "app")
	f.Add(int32(1), []byte("\x02{}"), []byte("null"), []byte{}, "")
	f.Add(int32(v1alpha1.CheckpointVersion+1), []byte{}, []byte{}, []byte{}, "x")
	f.Fuzz(func(t *testing.T, version int32, ledger, sizing, history []byte, container string) {
		size := len(ledger) + len(sizing) + len(history) + len(container)
		budget.Check(
			t, checkpointBudget, size, func() { checkCheckpoint(t, version, ledger, sizing, history, container) },
		)
	})
}

func checkCheckpoint(t testing.TB, version int32, ledger, sizing, history []byte, container string) {
	t.Helper()
	c := &v1alpha1.MemoryCheckpoint{Status: v1alpha1.MemoryCheckpointStatus{
		Version: version, Ledger: ledger, Sizing: sizing,
		Containers: []v1alpha1.CheckpointContainer{{Name: container, History: history}},
	}}
	m := NewState()
	if _, err := m.Unpack(c); err != nil {
		if len(m.containers) > 0 || len(m.ledger.All()) > 0 {
			t.Errorf("a checkpoint that is refused (%v) left something behind", err)
		}
		return
	}
	written := packedWhole(t, m)
	again := NewState()
	if lost, err := again.Unpack(&v1alpha1.MemoryCheckpoint{Status: written}); err != nil || len(lost) > 0 {
		t.Fatalf("what was written cannot be read: %v, lost %v", err, lost)
	}
	if twice := packedWhole(t, again); !sameCheckpoint(&written, &twice) {
		t.Errorf("written %+v, and after reading it %+v", written, twice)
	}
	now := began.Add(24 * time.Hour)
	pod := []oom.Observation{killedBy(now)}
	if first, second := m.ledger.Update(pod, m.peak, now), m.ledger.Update(
		pod, m.peak, now.Add(time.Minute),
	); len(first) > 1 || len(second) > 0 {
		t.Errorf("one kill was counted %d and %d times", len(first), len(second))
	}
}

// killedBy is a pod that was born after every checkpoint here and has been killed once.
func killedBy(now time.Time) oom.Observation {
	return oom.Observation{
		Container:  memory.ContainerRef{Namespace: "shop", Pod: "web-new", UID: "uid-of-a-new-pod", Container: "app"},
		Class:      oom.App,
		PodCreated: now.Add(-time.Hour), Restarts: 1, ContainerID: "containerd://new-1", Running: now,
		Limit: 256 * memory.MiB,
		Ended: []oom.Termination{{ContainerID: "containerd://new-0", Reason: "OOMKilled", ExitCode: 137, Finished: now}},
	}
}

func packedWhole(t testing.TB, st *State) v1alpha1.MemoryCheckpointStatus {
	t.Helper()
	status, err := st.Pack()
	if err == nil {
		err = st.PackHistories(&status)
	}
	if err != nil {
		t.Fatalf("what was read cannot be written: %v", err)
	}
	data, err := json.Marshal(v1alpha1.MemoryCheckpoint{Status: status})
	if err != nil || len(data) > MaxCheckpoint {
		t.Errorf("%d bytes, and etcd takes %d (%v)", len(data), MaxCheckpoint, err)
	}
	return status
}

func sameCheckpoint(a, b *v1alpha1.MemoryCheckpointStatus) bool {
	same := bytes.Equal(a.Published, b.Published) && bytes.Equal(a.Observed, b.Observed) &&
		bytes.Equal(a.Ledger, b.Ledger) && bytes.Equal(a.Sizing, b.Sizing) &&
		len(a.Containers) == len(b.Containers)
	for i := range a.Containers {
		same = same && a.Containers[i].Name == b.Containers[i].Name &&
			bytes.Equal(a.Containers[i].History, b.Containers[i].History)
	}
	return same
}
