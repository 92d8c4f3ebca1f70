// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/memory"
)

func limited(mib int, version string) Facts {
	b := memory.Bytes(mib) * memory.MiB
	return Facts{Version: ParseVersion(version), Limit: b, Cgroup: b, LimitText: b.String()}
}

// TestSemiSpaces is the table of measured defaults in docs/reference/settings.md: MiB of one semi-space by limit and
// version.
func TestSemiSpaces(t *testing.T) {
	for _, tc := range []struct {
		limits      []int
		upTo22, v24 memory.Bytes
	}{
		{[]int{64, 128, 256, 512}, 1, 1},
		{[]int{1024}, 4, 16},
		{[]int{1536, 2048}, 8, 32},
		{[]int{3072, 4096, 8192, 15360, 16384, 32768}, 16, 64},
	} {
		for _, limit := range tc.limits {
			for version, want := range map[string]memory.Bytes{
				"16.20.2": tc.upTo22, "20": tc.upTo22, "22.12.0": tc.upTo22, "24.0.0": tc.v24, "25": tc.v24, "": tc.v24,
			} {
				if got := semiSpace(limited(limit, version)); got != want*memory.MiB {
					t.Errorf("Node.js %q at %dMi: a semi-space of %s, want %dMi", version, limit, got, want)
				}
			}
		}
	}
}

// TestOldSpace has the results that docs/guide/runtimes.md states for the formula.
func TestOldSpace(t *testing.T) {
	for _, tc := range []struct {
		limit   int
		version string
		want    string
	}{
		{191, "20", ""}, {192, "20", "141"}, {256, "20", "189"}, {512, "", "381"}, {1024, "22", "756"}, {1024, "24", "720"},
		{2048, "22", "1512"}, {2048, "24", "1440"}, {4096, "22", "3024"}, {4096, "24", "2880"},
	} {
		want := tc.want
		if want != "" {
			want = "--max-old-space-size=" + want
		}
		if got := nodeOldSpace(limited(tc.limit, tc.version)); got.Value != want {
			t.Errorf("Node.js %q at %dMi: %+v, want %q", tc.version, tc.limit, got, want)
		}
	}
}

func TestTheHeapLeavesRoomUnderEveryLimit(t *testing.T) {
	for mib := 1; mib <= 33<<10; mib += 7 {
		for _, version := range []string{"", "20", "24"} {
			for _, percent := range []int32{0, 10, 60, 75, 80, 90, 100} {
				f := limited(mib, version)
				f.Tuning.HeapPercent = percent
				v := v8{name: "Node.js", semiSpace: semiSpace(f)}.oldSpace(f)
				if v.Value == "" {
					continue
				}
				if old := v8OldSpace(v.Value, 0); old+3*semiSpace(f) >= f.Limit || old < 96*memory.MiB {
					t.Fatalf(
						"limit %dMi, %d %%, Node.js %q: an old space of %s with semi-spaces of %s", mib, percent, version, old,
						semiSpace(f),
					)
				}
			}
		}
	}
}

func TestGrammars(t *testing.T) {
	for name, tc := range map[string]struct {
		g          *Grammar
		value      string
		want       []string
		wantUnsafe bool
	}{
		"node: spaces": {g: nodeOptions, value: "  --a  --b=c ", want: []string{"--a", "--b=c"}},
		"node: double quotes": {
			g: nodeOptions, value: `--require "./a b.js"`, want: []string{"--require", "./a b.js"},
		},
		"node: an escape inside quotes":   {g: nodeOptions, value: `"a \" \\ b"`, want: []string{`a " \ b`}},
		"node: no escape outside quotes":  {g: nodeOptions, value: `a\ b`, want: []string{`a\`, "b"}},
		"node: single quotes are letters": {g: nodeOptions, value: `'a b'`, want: []string{"'a", "b'"}},
		"node: nothing in quotes":         {g: nodeOptions, value: `a "" b`, want: []string{"a", "b"}},
		"node: newline":                   {g: nodeOptions, value: "a\n", want: []string{"a\n"}, wantUnsafe: true},
		"node: tab":                       {g: nodeOptions, value: "a\tb", want: []string{"a\tb"}, wantUnsafe: true},
		"node: carriage return":           {g: nodeOptions, value: "a\r", want: []string{"a\r"}, wantUnsafe: true},
		"node: open quote":                {g: nodeOptions, value: `a "b`, want: []string{"a", "b"}, wantUnsafe: true},
		"node: escape of nothing":         {g: nodeOptions, value: `"a\`, want: nil, wantUnsafe: true},
		"java: white space":               {g: javaToolOptions, value: " -a\t-b\n-c\r\n", want: []string{"-a", "-b", "-c"}},
		"java: both quotes": {
			g: javaToolOptions, value: `-Da='b c' -Dd="e 'f"`, want: []string{"-Da=b c", "-Dd=e 'f"},
		},
		"java: nothing escapes":   {g: javaToolOptions, value: `-Da=\"b`, want: []string{`-Da=\b`}, wantUnsafe: true},
		"java: open single quote": {g: javaToolOptions, value: `it's`, want: []string{"its"}, wantUnsafe: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, hazard := tc.g.Split(tc.value)
			if tc.want != nil && !slices.Equal(got, tc.want) {
				t.Errorf("words (-want +got):\n%s", cmp.Diff(tc.want, got))
			}
			if (hazard != "") != tc.wantUnsafe {
				t.Errorf("hazard %q, want one: %v", hazard, tc.wantUnsafe)
			}
		})
	}
}

// TestSharesLeaveRoomForMemoryVolumes: the runtime applies its share to the limit that it sees, which knows nothing of
// tmpfs.
func TestSharesLeaveRoomForMemoryVolumes(t *testing.T) {
	f := Facts{
		Limit: 448 * memory.MiB, Cgroup: 512 * memory.MiB, LimitText: "448Mi (512Mi less 64Mi of memory-backed volumes)",
		Tuning: Tuning{HeapPercent: 60},
	}
	for name, tc := range map[string]struct {
		derive func(Facts) Verdict
		want   string
	}{
		"jvm":     {maxRAM, "-XX:MaxRAMPercentage=52.5"}, // 268.8Mi of 512Mi
		"jvm min": {minRAM, "-XX:MinRAMPercentage=52.5"},
		".net":    {dotnetPercent, "0x34"}, // 52
	} {
		if v := tc.derive(f); v.Value != tc.want {
			t.Errorf("%s: %+v, want %s", name, v, tc.want)
		}
	}
	f.Tuning = Tuning{AutoMemLimit: true}
	if v := autoMemLimit(f); v.Value != "0.787" {
		t.Errorf("automemlimit: %+v, want 0.787", v)
	}
	f.Limit = 1 // volumes take it all
	for _, v := range []Verdict{maxRAM(f), minRAM(f), dotnetPercent(f), autoMemLimit(f)} {
		if v.Value != "" {
			t.Errorf("nothing is left for a heap, and yet %+v", v)
		}
	}
}

func TestAHeapThatNoJVMStartsWithIsNotAskedFor(t *testing.T) {
	for _, tc := range []struct {
		limit   int
		percent int32
		want    bool
	}{{16, 10, false}, {32, 40, false}, {32, 50, true}, {128, 10, false}, {160, 10, true}, {1024, 10, true}} {
		f := limited(tc.limit, "21")
		f.Tuning.HeapPercent = tc.percent
		if v := maxRAM(f); (v.Value != "") != tc.want {
			t.Errorf("%d %% of %dMi: %+v, want a value: %t", tc.percent, tc.limit, v, tc.want)
		}
	}
}
