//go:build runtimes

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"strconv"
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
)

// denoEdition is a Deno from npm. It has V8 but not Node's options.
func denoEdition(version string) edition {
	return edition{
		name: "deno-" + version, runtime: v1alpha1.RuntimeDeno, version: version,
		fetch: fromNPM("@deno/linux-x64-glibc", version, "package/deno"),
		probe: []string{"run", "--allow-env", "--no-config", "probe.mjs"}, facts: equations, trials: denoTrials,
		controls: []control{{"a flag that V8 does not know", "DENO_V8_FLAGS=--nonsense", 1}},
	}
}

func denoTrials(t *testing.T, p *program) []trial {
	t.Helper()
	alone := bareHeap(t, p)
	young := heapOf(t, p.run(t, []string{"DENO_V8_FLAGS=--max-old-space-size=1000"}, nil)) - 1000
	heap := func(old int) map[string]string { return map[string]string{"heap": strconv.Itoa(old + young)} }
	tuned := v1alpha1.TuningSpec{HeapPercent: new(int32(75))}
	var trials []trial
	for _, limit := range []string{"", "64Mi", "512Mi", "4Gi", "32Gi"} { // without a heapPercent there is no cap
		trials = append(
			trials, trial{name: "limit " + limit, limit: limit, want: map[string]string{"heap": strconv.Itoa(alone)}},
		)
	}
	// Old space and semi-spaces together are 75 % of the limit. Deno's V8 does not read the limit: its semi-spaces are
	// 32 MiB each, on a machine of any size.
	if young != 96 {
		t.Errorf("Deno %s has %d MiB of semi-spaces, not 96: the formula has to change", p.version, young)
	}
	for limit, percent75 := range map[string]int{"256Mi": 192, "512Mi": 384, "1Gi": 768, "2Gi": 1536, "4Gi": 3072} {
		trials = append(
			trials, trial{name: "heapPercent 75 of " + limit, limit: limit, tuning: tuned, want: heap(percent75 - young)},
		)
	}
	return append(trials,
		trial{name: "heapLimit 256Mi", limit: "1Gi", tuning: v1alpha1.TuningSpec{HeapLimit: size("256Mi")}, want: heap(256)},
		trial{
			name: "user: own flag", limit: "1Gi", env: vars("DENO_V8_FLAGS", "--max-old-space-size=300"), tuning: tuned,
			want: heap(300),
		},
		trial{
			name: "user: another flag", limit: "1Gi", env: vars("DENO_V8_FLAGS", "--expose-gc"), tuning: tuned, unchanged: true,
		},
		trial{
			name: "user: flag from a ConfigMap", limit: "1Gi",
			fromConfigMap: map[string]string{"DENO_V8_FLAGS": "--max-old-space-size=300"}, tuning: tuned, want: heap(300),
		},
		trial{
			name: "declared wrong: Node.js", limit: "1Gi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS},
			unchanged: true,
		},
		trial{
			name: "nothing declared", limit: "1Gi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeAuto}, unchanged: true,
		},
	)
}

// bunEdition is a Bun from npm, a runtime without settings by memfit: it must start unchanged, whatever is declared.
func bunEdition(version string) edition {
	return edition{
		name: "bun-" + version, runtime: "Bun", version: version,
		fetch: fromNPM("@oven/bun-linux-x64", version, "package/bin/bun"),
		probe: []string{"run", "probe.mjs"},
		facts: func(output string) map[string]string {
			facts := equations(output)
			delete(facts, "heap") // Bun's changes from run to run on a busy machine: 255 to 263 MiB
			return facts
		},
		trials: func(*testing.T, *program) []trial {
			var trials []trial
			for _, declared := range []v1alpha1.RuntimeType{
				v1alpha1.RuntimeAuto, v1alpha1.RuntimeNodeJS, v1alpha1.RuntimeNative, v1alpha1.RuntimeDeno,
			} {
				for _, limit := range []string{"", "256Mi", "4Gi"} {
					trials = append(trials,
						trial{name: "declared " + string(declared) + ", limit " + limit, limit: limit, unchanged: true,
							runtime: &v1alpha1.RuntimeSpec{Type: declared}})
				}
			}
			return trials
		},
		controls: []control{{"a setting that it does not know", "BUN_JSC_nonsense=1", 1}},
	}
}
