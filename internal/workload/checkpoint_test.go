// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
)

// began is when everything in these tests begins.
var began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// killedPods are observations of pods in which every container was killed once.
func killedPods(namespace string, pods, containers int) []oom.Observation {
	var obs []oom.Observation
	for i := range pods * containers {
		pod := i / containers
		obs = append(obs, oom.Observation{
			Container: memory.ContainerRef{
				Namespace: namespace, Pod: fmt.Sprintf("web-%05d", pod),
				UID:       types.UID(fmt.Sprintf("%08x-1111-2222-3333-444444444444", pod)),
				Container: fmt.Sprintf("app-%02d", i%containers),
			},
			Class: oom.App, PodCreated: began, Restarts: 1, ContainerID: fmt.Sprintf("containerd://%012d-1", i),
			Running: began.Add(time.Minute),
			Limit:   256 * memory.MiB,
			Ended: []oom.Termination{{
				ContainerID: fmt.Sprintf("containerd://%012d-0", i), Reason: "OOMKilled", ExitCode: 137,
				Finished: began.Add(time.Minute),
			}},
		})
	}
	return obs
}

// full is what memfit remembers of a workload with that many killed pods, and with histories of as many containers as
// are kept.
func full(namespace string, pods, containers int) *State {
	m := NewState()
	m.ledger.Update(nil, m.peak, began.Add(-time.Minute))
	m.ledger.Update(killedPods(namespace, pods, containers), m.peak, began.Add(2*time.Minute))
	for c := range MaxContainers {
		ref := memory.ContainerRef{Namespace: namespace, Pod: "web-00000", UID: "u", Container: fmt.Sprintf("app-%02d", c)}
		for minute := range 3 * 24 * 60 {
			at := began.Add(time.Duration(minute) * time.Minute)
			m.addSamples(
				[]memory.Sample{
					{Container: ref, Time: at, Started: began, RSS: memory.Bytes(minute%977) * memory.MiB, HasRSS: true, Exact: true},
				},
				at,
			)
		}
	}
	return m
}

// TestACheckpointOfVeryManyKilledPodsFits: every history has room beside a ledger that is full, and what was read
// counts nothing again.
func TestACheckpointOfVeryManyKilledPodsFits(t *testing.T) {
	for _, tc := range []struct{ pods, containers int }{{10_000, 1}, {1000, 20}, {40_000, 1}} {
		written := packedWhole(t, full("shop", tc.pods, tc.containers))
		if n := len(written.Containers); n != MaxContainers {
			t.Errorf("%d pods: %d histories, want %d", tc.pods, n, MaxContainers)
		}
		again := NewState()
		if lost, err := again.Unpack(&v1alpha1.MemoryCheckpoint{Status: written}); err != nil || len(lost) > 0 {
			t.Fatalf("%d pods: what was written cannot be read: %v, lost %v", tc.pods, err, lost)
		}
		kills := again.ledger.Update(killedPods("shop", tc.pods, tc.containers), again.peak, began.Add(3*time.Minute))
		if len(kills) > 0 {
			t.Errorf("%d pods: %d kills are counted twice", tc.pods, len(kills))
		}
	}
}

func TestAFullLedgerIsSaidOnTheWorkload(t *testing.T) {
	m := NewState()
	m.ledger.Update(nil, m.peak, began.Add(-time.Minute))
	const pods = 40_000
	m.ledger.Update(killedPods("shop", pods, 1), m.peak, began.Add(2*time.Minute))
	governed := &Snapshot{Profile: &profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}}}
	c := oomCondition(governed, m, began.Add(2*time.Minute))
	if c.Reason != v1alpha1.ReasonLedgerFull || c.Status != "True" {
		t.Errorf("got %+v, want OOMObserved=True because of %s", c, v1alpha1.ReasonLedgerFull)
	}
	want := fmt.Sprintf("kills in %d pods are not counted until", m.ledger.NotFollowed())
	if !strings.Contains(c.Message, want) || m.ledger.NotFollowed() == 0 {
		t.Errorf("got %q, want it to say %q", c.Message, want)
	}
}

// TestHistoriesMakeRoom: when the rest takes much, histories go, the last ones first, and nothing else does.
func TestHistoriesMakeRoom(t *testing.T) {
	m := full("shop", 10, 1)
	status, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	status.Sizing = make([]byte, 760_000) // whatever else a later memfit remembers
	if err := m.PackHistories(&status); err != nil {
		t.Fatal(err)
	}
	if n := len(status.Containers); n == 0 || n == MaxContainers || status.Containers[0].Name != "app-00" {
		t.Errorf("%d histories fit, want some, and the first", n)
	}
	data, err := json.Marshal(v1alpha1.MemoryCheckpoint{Status: status})
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > MaxCheckpoint {
		t.Errorf("%d bytes, want at most %d", len(data), MaxCheckpoint)
	}
}
