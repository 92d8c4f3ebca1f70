// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
)

func observed(pod, container string, restarts int32) *oom.Observation {
	return &oom.Observation{
		Container: memory.ContainerRef{Namespace: "shop", Pod: pod, UID: types.UID(pod), Container: container},
		Restarts:  restarts,
	}
}

func restartsOf(e *PendingEvents, pod, container string) (all []int32) {
	for i := range e.Observations {
		if c := e.Observations[i].Container; c.Pod == pod && c.Container == container {
			all = append(all, e.Observations[i].Restarts)
		}
	}
	return all
}

// TestObservationsOfAContainerStayInOrder: whatever the other containers do, the first and the newest are kept.
func TestObservationsOfAContainerStayInOrder(t *testing.T) {
	var older, e PendingEvents
	for restarts := range int32(20) {
		into := &e
		if restarts < 5 {
			into = &older
		}
		for _, c := range []string{"app", "proxy"} {
			into.AddObservation(observed("web-1", c, restarts))
			into.AddObservation(observed("web-1", c, restarts))
			into.AddObservation(observed("web-2", c, restarts/10))
		}
	}
	copied := older.Clone()
	copied.Observations = slices.Delete(copied.Observations, 0, 3) // as a step drops what is not of its workload
	copied.AddObservation(observed("web-1", "app", 77))
	older.Append(&e)
	for _, c := range []string{"app", "proxy"} {
		if got := restartsOf(&older, "web-1", c); !slices.Equal(got, []int32{0, 13, 14, 15, 16, 17, 18, 19}) {
			t.Errorf("restarts of web-1/%s: %v, want the first and the seven newest", c, got)
		}
		if got := restartsOf(&older, "web-2", c); !slices.Equal(got, []int32{0, 1}) {
			t.Errorf("restarts of web-2/%s: %v, want each once", c, got)
		}
	}
	if got := restartsOf(&copied, "web-1", "app"); got[len(got)-1] != 77 {
		t.Errorf("restarts in the copy: %v, want the newest last", got)
	}
}

// TestObservationsOfDeletedPodsAreBounded: while a checkpoint cannot be written, a Deployment whose pods fail and are
// replaced leaves observations of ever more pods.
func TestObservationsOfDeletedPodsAreBounded(t *testing.T) {
	var e PendingEvents
	e.AddObservation(observed("still-there", "app", 3))
	const pods = 5 * MaxDeparted
	for i := range pods {
		name := fmt.Sprintf("web-%d", i)
		e.AddObservation(observed(name, "app", 1))
		e.AddDeparted(Departure{Pod: types.UID(name), Owner: "web"})
	}
	if len(e.Departed) > MaxDeparted || len(e.Observations) > MaxDeparted+1 {
		t.Errorf("%d deleted pods with %d observations, want at most %d", len(e.Departed), len(e.Observations), MaxDeparted)
	}
	newest := fmt.Sprintf("web-%d", pods-1)
	if len(restartsOf(&e, newest, "app")) != 1 || len(restartsOf(&e, "still-there", "app")) != 1 {
		t.Error("the newest, or a pod that exists, was dropped")
	}
	e.AddObservation(observed(newest, "app", 2))
	if got := restartsOf(&e, newest, "app"); !slices.Equal(got, []int32{1, 2}) {
		t.Errorf("restarts of the newest: %v, want 1 and 2", got)
	}
}
