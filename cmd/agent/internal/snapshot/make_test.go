// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
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

func TestWorthwhile(t *testing.T) {
	changed := func(change func(*v1alpha1.MemorySnapshotStatus)) *v1alpha1.MemorySnapshotStatus {
		s := status(100 * memory.MiB)
		change(s)
		return s
	}
	looked := func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].Memory = &v1alpha1.MemoryParts{} }
	for name, tc := range map[string]struct {
		now  *v1alpha1.MemorySnapshotStatus
		want bool
	}{
		"the same":        {status(100 * memory.MiB), false},
		"a tenth more":    {status(110 * memory.MiB), false},
		"a fifth more":    {status(120 * memory.MiB), true},
		"a fifth less":    {status(80 * memory.MiB), true},
		"another limit":   {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].Limit = amount(1) }), true},
		"no limit":        {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].Limit = nil }), true},
		"another high":    {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].High = amount(1) }), true},
		"inspected":       {changed(looked), true},
		"a pod's limit":   {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.PodLimit = amount(1) }), true},
		"another tier":    {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Tier = v1alpha1.AgentSee }), true},
		"no container":    {&v1alpha1.MemorySnapshotStatus{}, true},
		"it does not run": {changed(func(s *v1alpha1.MemorySnapshotStatus) { s.Containers[0].Usage = nil }), true},
	} {
		if got := Worthwhile(status(100*memory.MiB), tc.now); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	seen := func(mib int64) *v1alpha1.MemorySnapshotStatus {
		return changed(func(s *v1alpha1.MemorySnapshotStatus) {
			s.Containers[0].Memory = &v1alpha1.MemoryParts{Resident: *amount(memory.Bytes(mib) * memory.MiB)}
		})
	}
	if Worthwhile(seen(100), seen(110)) || !Worthwhile(seen(100), seen(200)) {
		t.Error("a look that found a tenth more is worth a write, or one that found twice as much is not")
	}
	if !Worthwhile(nil, status(0)) {
		t.Error("the first is not worth a write")
	}
}

func TestCarryOver(t *testing.T) {
	old, now := status(memory.MiB), status(memory.MiB)
	old.Containers[0].LastKill = &v1alpha1.KillSnapshot{Summary: "of before"}
	CarryOver(old, now)
	if k := now.Containers[0].LastKill; k == nil || k.Summary != "of before" {
		t.Errorf("%+v", k)
	}
	now.Containers[0].LastKill = &v1alpha1.KillSnapshot{Summary: "seen by itself"}
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
	killed.LastKill = &v1alpha1.KillSnapshot{Time: metav1.NewTime(start), Summary: "OOM kill of it"}
	s.Containers = append(s.Containers, killed)
	Summarize(s)
	want := "side: uses 100Mi of 512Mi, of which 90Mi cannot be reclaimed; 2026-11-22T10:00:00Z: OOM kill of it"
	if s.Summary != want {
		t.Errorf("%s\nwant\n%s", s.Summary, want)
	}
	s.Containers = s.Containers[:1]
	s.Containers[0].High = amount(460 * memory.MiB)
	Summarize(s)
	if want := "reclaimed; the kernel slows it down from 460Mi on (memory.high)"; !strings.HasSuffix(s.Summary, want) {
		t.Errorf("%s\nwant ... %s", s.Summary, want)
	}
	s.Containers = append(s.Containers, killed)
	killed.LastKill.Summary = strings.Repeat("é", summaryMost)
	Summarize(s)
	if len(s.Summary) > summaryMost || strings.ToValidUTF8(s.Summary, "?") != s.Summary {
		t.Errorf("%d bytes: %q", len(s.Summary), s.Summary[summaryMost-10:])
	}
}
