// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
)

// A stalled workload is dead now: it comes before one that was killed and is up again.
func TestAStallComesFirst(t *testing.T) {
	recs := shop(t)
	name := recs[len(recs)-1].Status.Workload.Name
	status := &recs[len(recs)-1].Status
	status.Stalls = 1
	status.RecentStalls = []v1alpha1.StallRecord{
		{Container: "app", Pod: "p-1", Limit: resource.MustParse("256Mi"),
			Summary: "Container app has been stalled at its limit of 256Mi"},
	}
	status.Conditions = append(status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionMemoryStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStallOngoing,
		Message: "Pod p-1: it stalls",
	})
	s := NewStatus(recs, nil)
	if first := s.Workloads[0]; first.Name != name || !first.Stalled ||
		!strings.Contains(strings.Join(first.Next, " "), "Pod p-1: it stalls") {
		t.Errorf("first is %+v, want %s with what to do", first, name)
	}
	var out bytes.Buffer
	if err := s.Write(&out, listing.Options{}); err != nil ||
		!strings.Contains(strings.Split(out.String(), "\n")[1], "stalled") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestAWorkloadThatIsNotManagedComesFirst: what its other conditions report is from before, so no step follows from it.
func TestAWorkloadThatIsNotManagedComesFirst(t *testing.T) {
	recs := shop(t)
	last := &recs[len(recs)-1]
	last.Status.Conditions = append(last.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCheckpointTooNew,
		Message: "Upgrade memfit",
	})
	s := NewStatus(recs, nil)
	first := s.Workloads[0]
	if want := []string{"Not managed (CheckpointTooNew): Upgrade memfit"}; first.Name != last.Status.Workload.Name ||
		!slices.Equal(first.Next, want) {
		t.Errorf("first is %s with %q, want %s with %q", first.Name, first.Next, last.Status.Workload.Name, want)
	}
	var out bytes.Buffer
	if err := s.Write(&out, listing.Options{}); err != nil ||
		!strings.Contains(strings.Split(out.String(), "\n")[1], "no (CheckpointTooNew)") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
