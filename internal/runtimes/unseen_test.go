// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"testing"

	"github.com/memfit/memfit/internal/memory"
)

// TestAJVMThatDoesNotSeeItsLimit gets the limit together with its share, and its heap follows no limit by itself.
func TestAJVMThatDoesNotSeeItsLimit(t *testing.T) {
	jvm := Lookup("JVM")
	blind := Facts{
		Limit: memory.GiB, Cgroup: memory.GiB, LimitText: "1Gi", LimitUnseen: true, Tuning: Tuning{HeapPercent: 60},
	}
	with := func(change func(*Facts)) Facts {
		f := blind
		change(&f)
		return f
	}
	for name, tc := range map[string]struct {
		f    Facts
		want string
	}{
		"a share is asked for":    {blind, "-XX:MaxRAM=1073741824"},
		"a volume takes a part":   {with(func(f *Facts) { f.Limit = 512 * memory.MiB }), "-XX:MaxRAM=1073741824"},
		"it sees the limit":       {with(func(f *Facts) { f.LimitUnseen = false }), ""},
		"no share is asked for":   {with(func(f *Facts) { f.Tuning.HeapPercent = 0 }), ""},
		"no limit":                {with(func(f *Facts) { f.Limit, f.Cgroup = 0, 0 }), ""},
		"OpenJ9":                  {with(func(f *Facts) { f.Variant = openJ9 }), ""},
		"a buildpack sets -Xmx":   {with(func(f *Facts) { f.Variant = buildpack }), ""},
		"a share of nothing much": {with(func(f *Facts) { f.Limit, f.Cgroup = memory.MiB, memory.MiB }), ""},
	} {
		if got := maxRAMBytes(tc.f).Value; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if !maxRAM(blind).AtCreation || maxRAM(with(func(f *Facts) { f.LimitUnseen = false })).AtCreation {
		t.Error("with -XX:MaxRAM a share is one of the limit at creation, and only then")
	}
	asked := with(func(f *Facts) { f.Tuning.HeapPercent = 0 })
	if v := maxRAM(asked); v.Suggest == "" {
		t.Errorf("nothing is suggested: %+v", v)
	}
	if g := jvm.Growth(asked, false); g.HeapPercent != 0 {
		t.Errorf("a heap that is a share of the node follows the limit: %+v", g)
	}
	if g := jvm.Growth(blind, true); g.HeapPercent != 60 {
		t.Errorf("a heap that is a share of -XX:MaxRAM does not follow the limit of new pods: %+v", g)
	}
	options := map[string]string{javaEnv: "-XX:MaxRAMPercentage=60.0 -XX:MinRAMPercentage=60.0 -XX:MaxRAM=1073741824"}
	got := HeapCapIn(func(name string) string { return options[name] }, 4*memory.GiB)
	if want := memory.GiB.Percent(60); got != want {
		t.Errorf("after a raise to 4Gi the heap cap is %s, want %s of -XX:MaxRAM", got, want)
	}
}
