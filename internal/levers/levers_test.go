// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package levers

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/golang"
	"github.com/memfit/memfit/internal/attribution/hotspot"
	"github.com/memfit/memfit/internal/attribution/readers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// TestLeversAreComplete: each runtime has levers, whose readers and knobs exist, and whose texts fit the API.
func TestLeversAreComplete(t *testing.T) {
	var names []string
	for _, r := range readers.All(nil) {
		names = append(names, r.Name())
	}
	for _, row := range runtimes.All() {
		if row.HeapReader != "" && !slices.Contains(names, row.HeapReader) {
			t.Errorf("%s: no reader is called %s", row.Name, row.HeapReader)
		}
		if len(row.Levers) == 0 {
			t.Errorf("%s has no lever", row.Name)
		}
		for _, l := range row.Levers {
			if !slices.Contains(names, l.Reader) {
				t.Errorf("%s: lever %q is of a reader %s that does not exist", row.Name, l.Action, l.Reader)
			}
			if l.Action == "" || l.How == "" || len(l.Action) > 64 || len(l.How) > 256 {
				t.Errorf("%s: lever %q says how as %q, which the API has no room for", row.Name, l.Action, l.How)
			}
			if l.Knob != "" && !slices.ContainsFunc(row.Knobs, func(k runtimes.Knob) bool { return k.Name == l.Knob }) {
				t.Errorf("%s: lever %q is of a knob %s that it does not have", row.Name, l.Action, l.Knob)
			}
		}
	}
}

// TestFlagsOfLeversAreRead: a flag that a lever depends on and that is not read would always be 0.
func TestFlagsOfLeversAreRead(t *testing.T) {
	for _, flag := range []string{
		amounts.MaxHeapSize, amounts.MinHeapSize, amounts.MaxHeapFreeRatio, amounts.TrimNativeHeapInterval,
		amounts.MaxRAMPercentage, amounts.MinRAMPercentage, "UseG1GC", "UseSerialGC", "UseParallelGC", "UseShenandoahGC",
	} {
		if !slices.Contains(hotspot.Flags, flag) {
			t.Errorf("flag %s is not read", flag)
		}
	}
}

// usage is what a reader found, in MiB.
func usage(reader string, inUse, free, returnable, partial int64, details ...map[string]int64) amounts.Usage {
	all := map[string]int64{}
	for _, d := range details {
		maps.Copy(all, d)
	}
	return amounts.Usage{
		Reader: reader, InUse: memory.Bytes(inUse) * memory.MiB, FreeResident: memory.Bytes(free) * memory.MiB,
		Returnable: memory.Bytes(returnable) * memory.MiB, FreePartial: memory.Bytes(partial) * memory.MiB, Coverage: 1,
		Details: all,
	}
}

// readTo is a usage of which only a share could be read.
func readTo(u amounts.Usage, coverage float64) amounts.Usage {
	u.Coverage = coverage
	return u
}

func mib(name string, n int64) map[string]int64 { return map[string]int64{name: n << 20} }

func count(name string, n int64) map[string]int64 { return map[string]int64{name: n} }

// arenas are glibc's in a process with many threads: 4 arenas with 100 MiB, of which 40 are in use.
func arenas() amounts.Usage {
	return usage(
		"glibc", 40, 52, 50, 8, count(amounts.Arenas, 4), mib(amounts.Retained, 60), mib(amounts.ArenasBeyondTwo, 30),
		mib(amounts.TopsBeyondThreshold, 3),
	)
}

// TestPredictions: what each lever would give, as bounds, in the order of certainty.
func TestPredictions(t *testing.T) {
	for name, tc := range map[string]struct {
		of    []Process
		limit memory.Bytes
		want  []string // action and bounds in MiB
	}{
		"a C program with four arenas": {
			of:   []Process{{RSS: 110 * memory.MiB, Usages: []amounts.Usage{arenas()}}},
			want: []string{"malloc_trim 50", "MALLOC_TRIM_THRESHOLD_=131072 3..52", "MALLOC_ARENA_MAX=2 0..30"},
		},
		"a heap of which 4 % changed while they were read": {
			of:   []Process{{RSS: 110 * memory.MiB, Usages: []amounts.Usage{readTo(usage("glibc", 36, 52, 50, 8), 0.96)}}},
			want: []string{"malloc_trim 50..54", "MALLOC_TRIM_THRESHOLD_=131072 0..52", "MALLOC_ARENA_MAX=2 0"},
		},
		"one of which less than a prediction may err by did": {
			of:   []Process{{RSS: 110 * memory.MiB, Usages: []amounts.Usage{readTo(usage("glibc", 36, 52, 50, 8), 0.98)}}},
			want: []string{"malloc_trim 50", "MALLOC_TRIM_THRESHOLD_=131072 0..52", "MALLOC_ARENA_MAX=2 0"},
		},
		"two workers of it, of which one has the setting": {
			of: []Process{
				{RSS: 110 * memory.MiB, Usages: []amounts.Usage{arenas()}},
				{RSS: 110 * memory.MiB, Usages: []amounts.Usage{arenas()}, Env: map[string]string{"MALLOC_ARENA_MAX": "2"}},
			},
			want: []string{"malloc_trim 100", "MALLOC_TRIM_THRESHOLD_=131072 6..104", "MALLOC_ARENA_MAX=2 0..30"},
		},
		"what is not resident, nobody gives back": {
			of:   []Process{{RSS: 40 * memory.MiB, Usages: []amounts.Usage{arenas()}}},
			want: []string{"malloc_trim 40", "MALLOC_TRIM_THRESHOLD_=131072 3..40", "MALLOC_ARENA_MAX=2 0..30"},
		},
		"two arenas are as many as the setting allows": {
			of: []Process{{Usages: []amounts.Usage{
				usage("glibc", 40, 5, 5, 1, count(amounts.Arenas, 2), mib(amounts.Retained, 6)),
			}}},
			want: []string{"malloc_trim 5", "MALLOC_TRIM_THRESHOLD_=131072 0..5", "MALLOC_ARENA_MAX=2 0"},
		},
		"G1 keeps 70 % free at most: 60 in use are 200": {
			of: []Process{{Usages: []amounts.Usage{
				usage("hotspot", 60, 540, 0, 0, count("UseG1GC", 1), count("MaxHeapFreeRatio", 70), mib("MinHeapSize", 8)),
				arenas(),
			}}},
			want: []string{
				"a full collection 400..592", "-XX:TrimNativeHeapInterval 50", "MALLOC_TRIM_THRESHOLD_=131072 3..52",
				"MALLOC_ARENA_MAX=2 0..30",
			},
		},
		"Serial keeps all, and the trim is effective": {
			of: []Process{{Usages: []amounts.Usage{
				usage("hotspot", 60, 540, 0, 0, count("UseSerialGC", 1), count("TrimNativeHeapInterval", 60000)), arenas(),
			}}},
			want: []string{
				"MALLOC_TRIM_THRESHOLD_=131072 3..52", "-XX:+UseG1GC 0..540", "MALLOC_ARENA_MAX=2 0..30",
				"-XX:TrimNativeHeapInterval 0", "a full collection 0",
			},
		},
		"an old JDK does not know the trim": {
			of: []Process{{Runtime: "JVM", Version: "11.0.13", Usages: []amounts.Usage{
				usage("hotspot", 60, 540, 0, 0, count("UseParallelGC", 1)), arenas(),
			}}},
			want: []string{
				"MALLOC_TRIM_THRESHOLD_=131072 3..52", "-XX:+UseG1GC 0..540", "MALLOC_ARENA_MAX=2 0..30",
				"-XX:TrimNativeHeapInterval 0", "a full collection 0",
			},
		},
		"a trim that Node.js has no call for comes last": {
			of: []Process{{Runtime: "NodeJS", Usages: []amounts.Usage{arenas()}}},
			want: []string{
				"MALLOC_TRIM_THRESHOLD_=131072 3..52", "MALLOC_ARENA_MAX=2 0..30", "malloc_trim 50",
			},
		},
		"Node.js: the pool goes for certain, a cap below the old generation too": {
			limit: 512 * memory.MiB,
			of: []Process{{Runtime: "NodeJS", Version: "24.21.0", Usages: []amounts.Usage{
				usage(
					"v8", 500, 148, 0, 20, mib(amounts.OldInUse, 481), mib(amounts.YoungResident, 60),
					mib(amounts.PoolResident, 148),
				),
			}}},
			want: []string{ // 75 % of 512Mi less three semi-spaces of 1Mi is 381Mi
				"a full collection 148..668", "--max-old-space-size 100..481", "--max-semi-space-size=16 12",
			},
		},
		"Node.js below its cap": {
			limit: 512 * memory.MiB,
			of: []Process{{Usages: []amounts.Usage{
				usage("v8", 120, 0, 0, 20, mib(amounts.OldInUse, 100), mib(amounts.YoungResident, 4)),
			}}},
			want: []string{"a full collection 0..140", "--max-old-space-size 0"},
		},
		"Go without a memory limit": {
			limit: 500 * memory.MiB,
			of: []Process{{Usages: []amounts.Usage{
				usage(
					"go", 300, 180, 180, 40, mib(amounts.Objects, 300), mib(golang.HeapInUse, 340),
					mib(amounts.MappedReady, 530),
				),
			}}},
			want: []string{"debug.FreeOSMemory 180..520", "GOMEMLIMIT 80"},
		},
		"Go within its memory limit": {
			limit: 500 * memory.MiB,
			of: []Process{{Usages: []amounts.Usage{
				usage("go", 30, 10, 10, 4, mib(amounts.Objects, 30), mib(golang.HeapInUse, 34), mib(amounts.MappedReady, 50)),
			}}},
			want: []string{"debug.FreeOSMemory 10..44", "GOMEMLIMIT 0"},
		},
		"Python": {
			of: []Process{{Usages: []amounts.Usage{usage("cpython", 30, 10, 0, 50), arenas()}}},
			want: []string{
				"malloc_trim 50", "MALLOC_TRIM_THRESHOLD_=131072 3..52", "a fresh worker process 0..120",
				"MALLOC_ARENA_MAX=2 0..30",
			},
		},
		"a heap that was understood too little tells nothing": {
			of: []Process{{Usages: []amounts.Usage{{Reader: "glibc", Returnable: memory.GiB, Coverage: 0.9}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Predict(tc.of, tc.limit).Predictions {
				text := p.Action + " " + number(p.Least)
				if !p.Exact() {
					text += ".." + number(p.Most)
				}
				got = append(got, text)
				if len(p.Why) == 0 || len(p.Why) > 256 {
					t.Errorf("%s: its method has %d characters: %s", p.Action, len(p.Why), p.Why)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestBusyCollector: a Go program near its memory limit has a limit that helps, one far below has none. What its
// collector costs is reported of both, where enough was measured and, far below, where a higher limit saves something.
func TestBusyCollector(t *testing.T) {
	const (
		near    = "the last collection found 58Mi alive, which leaves 11Mi of GOMEMLIMIT=79Mi: "
		nothing = "the last collection found 58Mi alive, which leaves 0 of GOMEMLIMIT=64Mi: "
		higher  = "a higher one helps (128Mi leaves as much as is alive)"
		calm    = "GOMEMLIMIT is already effective: it does not return the memory that is free now"
		byGOGC  = "the collector took 40 % of its processor time, a limit higher by 64Mi would save 26 % or more"
		saves   = "the collector took 40 % of its processor time, a limit higher by 64Mi would save 29 % or more"
	)
	type measured struct {
		between     memory.Bytes
		collections int64
		busy, took  time.Duration
	}
	often := measured{20 * memory.MiB, 1000, 100 * time.Second, 40 * time.Second}
	for name, tc := range map[string]struct {
		limit, gogc string
		measured    measured
		want        string
	}{
		"near":                   {"79MiB", "", measured{}, near + higher},
		"beyond":                 {"67108864", "", measured{}, nothing + higher},
		"far below":              {"202MiB", "", measured{}, calm},
		"off":                    {"off", "", measured{}, calm},
		"near, up to GOGC":       {"79MiB", "", often, near + byGOGC + "; " + higher},
		"near, GOGC is off":      {"79MiB", "off", often, near + saves + "; " + higher},
		"far below, GOGC is off": {"202MiB", "off", often, calm + "; " + saves},
		"far below, by GOGC":     {"202MiB", "", measured{58 * memory.MiB, 1000, 100 * time.Second, 40 * time.Second}, calm},
		"far below, less before": {"202MiB", "", often, calm},
		"near, a low GOGC":       {"79MiB", "10", often, calm},
		"little is saved": {
			"202MiB", "off", measured{10 * memory.MiB, 1000, 100 * time.Second, 3 * time.Second}, calm,
		},
		"just started":    {"79MiB", "", measured{10 * memory.MiB, 1000, 9 * time.Second, 4 * time.Second}, near + higher},
		"few collections": {"79MiB", "", measured{10 * memory.MiB, 15, 100 * time.Second, 40 * time.Second}, near + higher},
	} {
		heap := usage("go", 70, 2, 2, 4, mib(amounts.Objects, 70), mib(golang.HeapInUse, 72),
			mib(amounts.HeapIdle, 2), mib(amounts.MappedReady, 80), mib(amounts.Live, 58))
		heap.Details[amounts.Allocated] = tc.measured.collections * int64(tc.measured.between)
		heap.Details[amounts.Collections] = tc.measured.collections
		heap.Details[amounts.BusyTime] = int64(tc.measured.busy)
		heap.Details[amounts.CollectorTime] = int64(tc.measured.took)
		out := Predict([]Process{{
			Usages: []amounts.Usage{heap}, Env: map[string]string{"GOMEMLIMIT": tc.limit, "GOGC": tc.gogc},
		}}, 0)
		i := slices.IndexFunc(out.Predictions, func(p Prediction) bool { return p.Action == "GOMEMLIMIT" })
		if i < 0 || out.Predictions[i].Why != tc.want || out.Predictions[i].Most != 0 {
			t.Errorf("%s: %+v, want %s", name, out.Predictions, tc.want)
		}
	}
}

// TestCostOfAJVM: what its collector takes is reported where enough was measured and the share is worth a sentence,
// before what else gives nothing back, so that a recommendation, which has five lines, has it.
func TestCostOfAJVM(t *testing.T) {
	for name, tc := range map[string]struct {
		collector, busy time.Duration
		want            string
	}{
		"a third":      {33 * time.Second, 99 * time.Second, "the collector took 33 % of its processor time"},
		"all":          {99 * time.Second, 99 * time.Second, "the collector took 100 % of its processor time"},
		"little":       {2 * time.Second, 100 * time.Second, ""},
		"just started": {4 * time.Second, 9 * time.Second, ""},
		"not known":    {0, 0, ""},
		"less than 0":  {-99 * time.Second, 99 * time.Second, ""},
		"impossible":   {100 * time.Second, 99 * time.Second, ""},
	} {
		heap := usage("hotspot", 60, 540, 0, 0, count("UseSerialGC", 1), count("TrimNativeHeapInterval", 60000))
		heap.Details[amounts.CollectorTime], heap.Details[amounts.BusyTime] = int64(tc.collector), int64(tc.busy)
		out := Predict([]Process{{Usages: []amounts.Usage{heap, arenas()}}}, 0)
		i := slices.IndexFunc(out.Predictions, func(p Prediction) bool { return p.Action == "a larger heap" })
		if tc.want == "" {
			if i >= 0 {
				t.Errorf("%s: %+v", name, out.Predictions[i])
			}
			continue
		}
		if i < 0 || i > 4 || out.Predictions[i].Why != tc.want || out.Predictions[i].Most != 0 {
			t.Errorf("%s: %+v, want %s among the first five", name, out.Predictions, tc.want)
		}
	}
}

// TestCostliestOfJVMs: of several, the one whose collector takes most is reported.
func TestCostliestOfJVMs(t *testing.T) {
	jvm := func(collector time.Duration) Process {
		heap := usage("hotspot", 60, 540, 0, 0, count("UseSerialGC", 1), count("TrimNativeHeapInterval", 60000))
		heap.Details[amounts.CollectorTime], heap.Details[amounts.BusyTime] = int64(collector), int64(100*time.Second)
		return Process{Usages: []amounts.Usage{heap}}
	}
	out := Predict([]Process{jvm(4 * time.Second), jvm(60 * time.Second), jvm(5 * time.Second)}, 0)
	i := slices.IndexFunc(out.Predictions, func(p Prediction) bool { return p.Action == "a larger heap" })
	if i < 0 || out.Predictions[i].Cost.Collector != 0.6 {
		t.Errorf("%+v", out.Predictions)
	}
}

// TestLongestCost: what is reported of a collector fits the API, whatever its numbers.
func TestLongestCost(t *testing.T) {
	heap := usage("go", 1000, 2, 2, 4, mib(amounts.Objects, 1000), mib(golang.HeapInUse, 1000),
		mib(amounts.HeapIdle, 2), mib(amounts.MappedReady, 1003), mib(amounts.Live, 1000),
		mib(amounts.Allocated, 1<<20), count(amounts.Collections, 1000))
	heap.Details[amounts.BusyTime], heap.Details[amounts.CollectorTime] = int64(time.Hour), int64(time.Hour)
	out := Predict([]Process{{
		Usages: []amounts.Usage{heap}, Env: map[string]string{"GOMEMLIMIT": "1001MiB", "GOGC": "off"},
	}}, 1023*memory.MiB)
	for _, p := range out.Predictions {
		if len(p.Why) > 256 {
			t.Errorf("%d bytes: %s", len(p.Why), p.Why)
		}
	}
}

// TestEase: the limit that is recommended for a busy collector holds as much garbage as live memory, at the share of
// the limit that GOMEMLIMIT has; for one that is not busy none is recommended.
func TestEase(t *testing.T) {
	of := func(limit string) []Process {
		return []Process{{
			Usages: []amounts.Usage{usage("go", 70, 2, 2, 4, mib(amounts.Objects, 70), mib(golang.HeapInUse, 72),
				mib(amounts.HeapIdle, 2), mib(amounts.MappedReady, 80), mib(amounts.Live, 58))},
			Env: map[string]string{"GOMEMLIMIT": limit},
		}}
	}
	find := func(out Outcome) Prediction {
		i := slices.IndexFunc(out.Predictions, func(p Prediction) bool { return p.Action == "GOMEMLIMIT" })
		return out.Predictions[i]
	}
	const container = 88 * memory.MiB
	got := find(Predict(of("79MiB"), container))
	told := got.Limit.Percent(100 * 79 / 88) // GOMEMLIMIT at that limit
	free := told.Minus(told.Percent(3)).Minus(8 * memory.MiB).Minus(58 * memory.MiB)
	if free < 57*memory.MiB || free > 60*memory.MiB || !strings.Contains(got.Why, "a limit of "+got.Limit.String()+")") {
		t.Errorf("a limit of %s, which leaves %s beside 58Mi alive: %s", got.Limit, free, got.Why)
	}
	if calm := find(Predict(of("202MiB"), 224*memory.MiB)); calm.Limit != 0 {
		t.Errorf("a collector with room is told a limit of %s", calm.Limit)
	}
	if unlimited := find(Predict(of("79MiB"), 0)); unlimited.Limit != 0 {
		t.Errorf("a container without a limit is told one of %s", unlimited.Limit)
	}
}

// TestCapInEffect: a cap that is not reached has no effect, and what would help is reported; one that is reached has.
func TestCapInEffect(t *testing.T) {
	for options, want := range map[string]string{
		"--max-old-space-size=768": "the old generation holds 322Mi, garbage included, and the cap in effect is 768Mi; " +
			"with a lower one (heapLimit in the profile) V8 collects earlier",
		"--max_old_space_size=322": "--max-old-space-size is already effective: it does not return the memory that " +
			"is free now",
	} {
		out := Predict([]Process{{
			Usages: []amounts.Usage{usage("v8", 322, 0, 0, 20, mib(amounts.OldInUse, 322))},
			Env:    map[string]string{"NODE_OPTIONS": options},
		}}, 0)
		i := slices.IndexFunc(out.Predictions, func(p Prediction) bool { return p.Action == "--max-old-space-size" })
		if i < 0 || out.Predictions[i].Why != want || out.Predictions[i].Most != 0 {
			t.Errorf("%s: %+v, want %s", options, out.Predictions, want)
		}
	}
}

func number(b memory.Bytes) string { return strings.TrimSuffix(b.String(), "Mi") }

// TestSummary: the summary of a container whose memory is in use says so, and not what helped elsewhere.
func TestSummary(t *testing.T) {
	full := usage("glibc", 812, 2, 2, 1, count(amounts.Arenas, 2))
	for want, p := range map[string]Process{
		"malloc_trim would give back 50Mi of the 110Mi that are resident": {
			RSS: 110 * memory.MiB, Usages: []amounts.Usage{arenas()},
		},
		"no action gives back more than 2Mi of the 820Mi that are resident: 812Mi of heaps are in use, so only a smaller " +
			"working set or a higher limit helps": {RSS: 820 * memory.MiB, Usages: []amounts.Usage{full}},
		"a full collection may give back up to 820Mi of the 820Mi that are resident; no gain is certain": {
			RSS: 820 * memory.MiB, Usages: []amounts.Usage{usage("v8", 800, 0, 0, 20)},
		},
		"a fresh worker process may give back up to 120Mi of the 200Mi that are resident; only 2Mi are certain, by " +
			"malloc_trim": {RSS: 200 * memory.MiB, Usages: []amounts.Usage{
			usage("cpython", 30, 60, 0, 58), usage("glibc", 40, 2, 2, 0, count(amounts.Arenas, 1), mib(amounts.Retained, 2)),
		}},
		// 50Mi that a trim would give back, but nothing in Node.js can
		"MALLOC_TRIM_THRESHOLD_=131072 may give back up to 52Mi of the 110Mi that are resident; only 3Mi are certain, by " +
			"MALLOC_TRIM_THRESHOLD_=131072": {
			RSS: 110 * memory.MiB, Runtime: "NodeJS", Usages: []amounts.Usage{arenas()},
		},
		"-XX:+UseG1GC may give back up to 102Mi of the 188Mi that are resident; no gain is certain": {
			RSS: 188 * memory.MiB, Usages: []amounts.Usage{usage("hotspot", 26, 102, 0, 0, count("UseSerialGC", 1))},
		},
		// what a dead pool of a runtime keeps, and no lever reaches
		"no action gives back more than 0 of the 90Mi that are resident: 50Mi are free, and their allocators keep them": {
			RSS: 90 * memory.MiB, Usages: []amounts.Usage{
				usage("hotspot", 26, 50, 0, 0, count("UseShenandoahGC", 1)),
				usage("glibc", 4, 0, 0, 0, count(amounts.Arenas, 1)),
			},
		},
		"no action is known to help: the heaps of its processes could not be read": {
			Usages: []amounts.Usage{{Reader: "glibc"}},
		},
		"no action is known to help: memfit found no heap that it can read": {RSS: memory.MiB},
	} {
		if got := Predict([]Process{p}, 0).Summary; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestString(t *testing.T) {
	for want, p := range map[string]Prediction{
		"x: nothing (counted)":           {Least: 0, Most: 0},
		"x: 2Mi (counted); do it":        {Least: 2 * memory.MiB, Most: 2 * memory.MiB},
		"x: 0 to 2Mi (counted); do it":   {Most: 2 * memory.MiB},
		"x: 1Mi to 2Mi (counted); do it": {Least: memory.MiB, Most: 2 * memory.MiB},
	} {
		p.Action, p.Why, p.How = "x", "counted", "do it"
		if got := p.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
