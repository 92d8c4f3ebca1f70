// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"strings"
	"testing"

	"github.com/memfit/memfit/internal/memory"
)

func knob(t *testing.T, runtime, name string) *Knob {
	t.Helper()
	r := Lookup(runtime)
	for i := range r.Knobs {
		if r.Knobs[i].Name == name {
			return &r.Knobs[i]
		}
	}
	t.Fatalf("%s has no knob %s", runtime, name)
	return nil
}

func TestTight(t *testing.T) {
	percent, bytes := Tuning{HeapPercent: 60}, Tuning{HeapLimit: 256 * memory.MiB}
	for name, tc := range map[string]struct {
		runtime, knob string
		limit         int
		ask           Tuning
		live, proven  int
		want          string // a part of the reason; empty: it fits
	}{
		"nothing was seen":  {runtime: "NodeJS", knob: oldSpaceFlag, limit: 512},
		"it fits with room": {runtime: "NodeJS", knob: oldSpaceFlag, limit: 512, live: 317},
		"it fits without room": {
			runtime: "NodeJS", knob: oldSpaceFlag, limit: 512, live: 318,
			want: "a live heap of up to 318Mi, which takes a cap of 382Mi, and 381Mi (75 % of 512Mi less three semi-spaces of " +
				"1Mi) is less",
		},
		"it does not fit": {
			runtime: "NodeJS", knob: oldSpaceFlag, limit: 512, live: 420, want: "raise the limit to 736Mi",
		},
		"a small one": {
			runtime: "NodeJS", knob: oldSpaceFlag, limit: 256, live: 160, want: "raise the limit to 272Mi",
		},
		"others run with as little": {runtime: "NodeJS", knob: oldSpaceFlag, limit: 512, live: 420, proven: 381},
		"others run, but with more": {
			runtime: "NodeJS", knob: oldSpaceFlag, limit: 512, live: 420, proven: 382, want: "raise the limit",
		},
		"a heap that the profile states": {
			runtime: "NodeJS", knob: oldSpaceFlag, limit: 512, ask: bytes, live: 280,
			want: "256Mi (heapLimit of the profile) is less, so the process might run out of heap: set that much in the " +
				"profile, or raise the limit",
		},
		"deno, when asked": {
			runtime: "Deno", knob: denoFlags, limit: 512, ask: percent, live: 200, want: "raise the limit to",
		},
		"a JVM, whose RSS holds more than alive": {runtime: "JVM", knob: maxRAMName, limit: 512, ask: percent, live: 307},
		"a JVM with a larger heap": {
			runtime: "JVM", knob: maxRAMName, limit: 512, ask: percent, live: 308, want: "raise the limit to 528Mi",
		},
		"the same of the small share": {
			runtime: "JVM", knob: minRAMName, limit: 512, ask: percent, live: 308, want: "raise the limit to 528Mi",
		},
		".NET, a share": {
			runtime: "DotNet", knob: dotnetPercentName, limit: 512, ask: percent, live: 300, want: "raise the limit to 608Mi",
		},
		".NET, bytes": {
			runtime: "DotNet", knob: dotnetLimitName, limit: 512, ask: bytes, live: 220, want: "set that much",
		},
		"Go, whose limit gives way": {runtime: "Go", knob: "GOMEMLIMIT", limit: 512, live: 500},
		"an allocator's setting": {
			runtime: "NodeJS", knob: "MALLOC_ARENA_MAX", limit: 512, ask: Tuning{ArenaMax: new(int32(2))}, live: 500,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, f := knob(t, tc.runtime, tc.knob), limited(tc.limit, "")
			f.Tuning, f.Live, f.ProvenHeapCap = tc.ask, memory.Bytes(tc.live)*memory.MiB, memory.Bytes(tc.proven)*memory.MiB
			v := k.Derive(f)
			if v.Value == "" {
				t.Fatalf("nothing to judge: %+v", v)
			}
			got := k.BelowLiveHeap(v, f)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTheLimitThatIsNamedIsEnough: the limit that the reason names is enough for the cap.
func TestTheLimitThatIsNamedIsEnough(t *testing.T) {
	for _, r := range []string{"NodeJS", "Deno", "JVM", "DotNet"} {
		k := knob(t, r, Lookup(r).Heap)
		for limit := 192; limit < 4096; limit += 56 {
			for live := 100; live < limit; live += 77 {
				f := limited(limit, "22")
				f.Tuning, f.Live = Tuning{HeapPercent: 60}, memory.Bytes(live)*memory.MiB
				v := k.Derive(f)
				if v.Value == "" || k.BelowLiveHeap(v, f) == "" {
					continue
				}
				enough := k.limitFor(f, f.Live.Percent(k.MinPercentOfLive))
				f.Limit, f.Cgroup = enough, enough
				if why := k.BelowLiveHeap(k.Derive(f), f); enough == 0 || why != "" {
					t.Fatalf("%s, live heap %dMi at %dMi: %s is not enough: %s", r, live, limit, enough, why)
				}
			}
		}
	}
}

func TestHeapCapIn(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want memory.Bytes
	}{
		"nothing": {},
		"other words": {
			env: map[string]string{"NODE_OPTIONS": "--require ./trace.js", "JAVA_TOOL_OPTIONS": "-Dx=y"},
		},
		"Node.js": {
			env: map[string]string{"NODE_OPTIONS": "--max-old-space-size=381 --require ./trace.js"}, want: 381 * memory.MiB,
		},
		"Node.js, the user's wins": {
			env: map[string]string{"NODE_OPTIONS": "--max-old-space-size=381 --max_old_space_size=200"}, want: 200 * memory.MiB,
		},
		"Node.js, quoted": {
			env: map[string]string{"NODE_OPTIONS": `"--max-old-space-size=381"`}, want: 381 * memory.MiB,
		},
		"Deno, whose variable has commas": {
			env: map[string]string{"DENO_V8_FLAGS": "--expose-gc,--max-old-space-size=200,--trace-gc"}, want: 200 * memory.MiB,
		},
		"no number": {env: map[string]string{"NODE_OPTIONS": "--max-old-space-size=$(HEAP)"}},
		"a JVM's share": {
			env: map[string]string{
				"JAVA_TOOL_OPTIONS": "-XX:+IgnoreUnrecognizedVMOptions -XX:MaxRAMPercentage=52.5 -XX:MinRAMPercentage=52.5",
			},
			want: 512 * memory.MiB * 525 / 1000,
		},
		".NET, a share": {
			env: map[string]string{"DOTNET_GCHeapHardLimitPercent": "0x3C"}, want: (512 * memory.MiB).Percent(60),
		},
		".NET, more than there is": {env: map[string]string{"DOTNET_GCHeapHardLimitPercent": "75"}},
		".NET, bytes": {
			env: map[string]string{"DOTNET_GCHeapHardLimit": "0x10000000"}, want: 256 * memory.MiB,
		},
		"Go's limit is no cap": {env: map[string]string{"GOMEMLIMIT": "483183820"}},
		"of two runtimes the smaller": {
			env:  map[string]string{"NODE_OPTIONS": "--max-old-space-size=381", "DENO_V8_FLAGS": "--max-old-space-size=100"},
			want: 100 * memory.MiB,
		},
	} {
		if got := HeapCapIn(func(name string) string { return tc.env[name] }, 512*memory.MiB); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestHeapTurn: settings as internal/detect reports them.
func TestHeapTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		runtime  string
		settings []string
		want     memory.Bytes
	}{
		"Node.js":             {"NodeJS", []string{"--max-old-space-size=381"}, 381 * memory.MiB},
		"V8's other spelling": {"NodeJS", []string{"--max_old_space_size=200"}, 200 * memory.MiB},
		"the smallest":        {"NodeJS", []string{"--max-old-space-size=381", "--max-old-space-size=200"}, 200 * memory.MiB},
		"no cap":              {"NodeJS", []string{"--max-semi-space-size=1"}, 0},
		"not a word of it":    {"NodeJS", []string{"NODE_OPTIONS=--max-old-space-size=381"}, 0},
		"Go, in bytes":        {"Go", []string{"GOMEMLIMIT=483183820"}, 483183820},
		"Go, in its units":    {"Go", []string{"GOGC=off", "GOMEMLIMIT=460MiB"}, 460 * memory.MiB},
		"Go without a limit":  {"Go", []string{"GOMEMLIMIT=off"}, 0},
		"a negative amount":   {"Go", []string{"GOMEMLIMIT=-5MiB"}, 0},
		".NET":                {"DotNet", []string{"DOTNET_GCHeapHardLimit=0x10000000"}, 256 * memory.MiB},
		"a share of 512Mi":    {"JVM", []string{"-XX:MaxRAMPercentage=50.0"}, 256 * memory.MiB},
		"native code":         {"Native", []string{"MALLOC_ARENA_MAX=2"}, 0},
		"nothing":             {"Go", nil, 0},
	} {
		if got := Lookup(tc.runtime).CollectAt(tc.settings, 512*memory.MiB); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
