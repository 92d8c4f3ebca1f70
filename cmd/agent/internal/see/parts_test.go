// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/scan"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// TestPartsAddUp: two processes with both kinds of arenas. What glibc's reader found free lies in the arenas, not in
// its large blocks, and never exceeds them.
func TestPartsAddUp(t *testing.T) {
	process := attribution.Result{
		Regions: []attribution.Region{
			{Kind: attribution.Files, RSS: 3 * memory.MiB},
			{Kind: attribution.Arena, RSS: 10 * memory.MiB, Owner: "glibc"},
			{Kind: attribution.Arena, RSS: 20 * memory.MiB, Owner: "glibc"},
			{Kind: attribution.GlibcMmap, RSS: 50 * memory.MiB, Owner: "glibc"},
			{Kind: attribution.Jemalloc, RSS: memory.MiB, Owner: "jemalloc"},
			{Kind: attribution.Other, RSS: 2 * memory.MiB},
		},
		Usages: []amounts.Usage{
			{Reader: "glibc", FreeResident: 25 * memory.MiB, Coverage: 1},
			{Reader: "jemalloc", FreeResident: memory.MiB, Coverage: 1},
		},
		RSS: 86 * memory.MiB, Unexplained: 2 * memory.MiB,
	}
	s := newSum(scan.Inspection{})
	s.add(&process, &attribution.Snapshot{})
	s.add(&process, &attribution.Snapshot{})
	got := map[string]string{}
	all := memory.FromQuantity(s.parts(time.Unix(0, 0)).Unexplained)
	for _, p := range s.parts(time.Unix(0, 0)).Parts {
		text := string(p.Group) + " " + p.Resident.String()
		if p.Free != nil {
			text += " free " + p.Free.String()
		}
		got[p.Name] = text
		all += memory.FromQuantity(p.Resident)
	}
	want := map[string]string{
		"program and libraries": "Files 6Mi", "glibc arenas": "Native 60Mi free 50Mi", "glibc large blocks": "Native 100Mi",
		"jemalloc": "Native 2Mi",
	}
	if diff := cmp.Diff(want, got); diff != "" || all != 2*process.RSS {
		t.Errorf("%s of %s; parts (-want +got):\n%s", all, 2*process.RSS, diff)
	}
	if attribution.Arena != v1alpha1.PartArenas {
		t.Errorf("the plugin looks for the part %s", v1alpha1.PartArenas)
	}
	if api := (&partSum{v1alpha1.PartNative, memory.MiB, memory.GiB}).api("x"); api.Free.Cmp(api.Resident) != 0 {
		t.Errorf("%s free of %s", api.Free, &api.Resident)
	}
}
