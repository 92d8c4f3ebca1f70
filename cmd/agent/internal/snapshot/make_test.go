// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/flightrecorder"
	"github.com/memfit/memfit/internal/memory"
)

var start = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// status is of a pod with one container that uses so much.
func status(usage memory.Bytes) *v1alpha1.MemorySnapshotStatus {
	r := flightrecorder.New(true)
	r.Add(flightrecorder.Sample{At: start, PodLimit: cgroup.Unlimited, Reading: cgroup.Reading{
		Usage: usage, File: 10 * memory.MiB, Limit: 512 * memory.MiB, High: cgroup.Unlimited,
	}})
	return &v1alpha1.MemorySnapshotStatus{Containers: []v1alpha1.ContainerSnapshot{Container("app", r)}}
}

func TestChanged(t *testing.T) {
	changed := func(change func(*v1alpha1.MemorySnapshotStatus)) *v1alpha1.MemorySnapshotStatus {
		s := status(100 * memory.MiB)
		change(s)
		return s
	}
	looked := func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].Memory = &v1alpha1.MemoryParts{} }
	const same, other, jump = flightrecorder.Same, flightrecorder.Changed, flightrecorder.Jumped
	for name, tc := range map[string]struct {
		now  *v1alpha1.MemorySnapshotStatus
		want flightrecorder.Change
	}{
		"the same":        {status(100 * memory.MiB), same},
		"a tenth more":    {status(110 * memory.MiB), same},
		"a fifth more":    {status(120 * memory.MiB), other},
		"a fifth less":    {status(80 * memory.MiB), other},
		"half more":       {status(150 * memory.MiB), jump},
		"a third less":    {status(66 * memory.MiB), jump},
		"another limit":   {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].Limit = amount(1) }), other},
		"no limit":        {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].Limit = nil }), other},
		"another high":    {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].High = amount(1) }), other},
		"inspected":       {changed(looked), other},
		"a pod's limit":   {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.PodLimit = amount(1) }), other},
		"another tier":    {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Tier = v1alpha1.AgentSee }), other},
		"no container":    {&v1alpha1.MemorySnapshotStatus{}, other},
		"it does not run": {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].Usage = nil }), other},
	} {
		if got := Changed(status(100*memory.MiB), tc.now); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	seen := func(mib int64) *v1alpha1.MemorySnapshotStatus {
		return changed(func(s *v1alpha1.MemorySnapshotStatus) {
			s.Containers[0].Memory = &v1alpha1.MemoryParts{Resident: *amount(memory.Bytes(mib) * memory.MiB)}
		})
	}
	if Changed(seen(100), seen(110)) != same || Changed(seen(100), seen(200)) != jump {
		t.Error("a look that found a tenth more is worth a write, or one that found twice as much is no jump")
	}
	if Changed(nil, status(0)) != other {
		t.Error("the first is not worth a write")
	}
}

func TestCarryOver(t *testing.T) {
	old, now := status(memory.MiB), status(memory.MiB)
	old.Containers[0].LastKill = &v1alpha1.KillSnapshot{MinuteBefore: v1alpha1.MinuteBefore{Summary: "of before"}}
	CarryOver(old, now)
	if k := now.Containers[0].LastKill; k == nil || k.Summary != "of before" {
		t.Errorf("%+v", k)
	}
	now.Containers[0].LastKill = &v1alpha1.KillSnapshot{MinuteBefore: v1alpha1.MinuteBefore{Summary: "seen by itself"}}
	CarryOver(old, now)
	if k := now.Containers[0].LastKill; k.Summary != "seen by itself" {
		t.Errorf("%+v", k)
	}
	CarryOver(nil, now)
}

func TestSummarize(t *testing.T) {
	s := status(100 * memory.MiB)
	killed := s.Containers[0]
	killed.Container = "side"
	killed.LastKill = &v1alpha1.KillSnapshot{Time: metav1.NewTime(start)}
	killed.LastKill.Summary = "OOM kill of it"
	s.Containers = append(s.Containers, killed)
	Summarize(s)
	want := "side: uses 100Mi of 512Mi, of which 90Mi cannot be reclaimed; 2026-11-22T10:00:00Z: OOM kill of it"
	if s.Summary != want {
		t.Errorf("%s\nwant\n%s", s.Summary, want)
	}
	s.Containers = s.Containers[:1]
	s.Containers[0].High = amount(460 * memory.MiB)
	Summarize(s)
	if want := "reclaimed; the kernel slows it down above 460Mi (memory.high)"; !strings.HasSuffix(s.Summary, want) {
		t.Errorf("%s\nwant ... %s", s.Summary, want)
	}
	s.Containers = append(s.Containers, killed)
	killed.LastKill.Summary = strings.Repeat("é", maxSummary)
	Summarize(s)
	if len(s.Summary) > maxSummary || strings.ToValidUTF8(s.Summary, "?") != s.Summary {
		t.Errorf("%d bytes: %q", len(s.Summary), s.Summary[maxSummary-10:])
	}
}

// TestAnAlarmIsWhole: it replaces the one before in a merge patch, in which an absent field keeps its value.
func TestAnAlarmIsWhole(t *testing.T) {
	body, err := json.Marshal(v1alpha1.Alarm{})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil || len(fields) != reflect.TypeFor[v1alpha1.Alarm]().NumField() {
		t.Errorf("an empty alarm is %s (%v)", body, err)
	}
}
