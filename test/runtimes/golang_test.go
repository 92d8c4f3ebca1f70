//go:build runtimes

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
)

// goEdition builds testdata/goprobe with a Go toolchain, which the go command fetches itself, and caches the program.
func goEdition(version string) edition {
	minor := strings.Join(strings.Split(version, ".")[:2], ".")
	e := edition{
		name: "go-" + version, runtime: v1alpha1.RuntimeGo, version: minor,
		fetch:  func(t *testing.T) string { return goProbe(t, version) },
		facts:  equations,
		trials: goTrials,
	}
	if minor != "1.18" {
		e.controls = []control{
			{"a Kubernetes unit", "GOMEMLIMIT=512Mi", 2},
			{"a percentage", "GOMEMLIMIT=90%", 2},
		}
	}
	return e
}

func goProbe(t *testing.T, version string) string {
	t.Helper()
	source, err := os.ReadFile("testdata/goprobe/main.go")
	if err != nil {
		t.Fatal(err)
	}
	limit, err := os.ReadFile("testdata/goprobe/limit.go")
	if err != nil {
		t.Fatal(err)
	}
	none, err := os.ReadFile("testdata/goprobe/limit_none.go")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(string(source) + string(limit) + string(none)))
	return filepath.Join(once(t, "goprobe-"+version+"-"+hex.EncodeToString(sum[:6]), func(dir string) error {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(dir, "goprobe"), ".")
		cmd.Dir = "testdata/goprobe"
		// GOTOOLCHAIN makes the go command fetch and check that version; goprobe has a go.mod of its own.
		cmd.Env = append(os.Environ(), "GOTOOLCHAIN=go"+version, "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
		return finish(cmd)
	}), "goprobe")
}

func goTrials(t *testing.T, p *program) []trial {
	t.Helper()
	// A Go without GOMEMLIMIT reports no limit, whatever the environment.
	limit := func(bytes string, more ...string) map[string]string {
		want := map[string]string{"limit": bytes, "gogc": "100"}
		if p.version == "1.18" {
			want["limit"] = "unknown"
		}
		for i := 0; i < len(more); i += 2 {
			want[more[i]] = more[i+1]
		}
		return want
	}
	const none = "9223372036854775807"
	onlyAtLimit := v1alpha1.TuningSpec{HeapPercent: new(int32(100)), Go: &v1alpha1.GoTuning{GC: "OnlyAtLimit"}}
	off := "-1"
	if p.version == "1.18" {
		off = "100" // GOGC=off without a limit would never collect
	}

	var trials []trial
	for _, l := range []struct{ limit, want string }{
		{"", none}, {"32Mi", none}, {"63Mi", none}, // too small for a soft limit to help
		{"64Mi", "60397977"}, {"128Mi", "120795955"}, {"256Mi", "241591910"}, {"512Mi", "483183820"}, {"1Gi", "966367641"},
		{"2Gi", "1932735283"}, {"8Gi", "7730941132"}, {"32Gi", "30923764531"}, {"1e9", "900000000"},
		{"128974848000m", "116077363"},
	} {
		trials = append(trials, trial{name: "limit " + l.limit, limit: l.limit, want: limit(l.want)})
	}
	return append(trials,
		trial{
			name: "user: own limit with a unit of Go", limit: "512Mi", env: vars("GOMEMLIMIT", "100MiB"),
			want: limit("104857600"),
		},
		trial{name: "user: limit switched off", limit: "512Mi", env: vars("GOMEMLIMIT", "off"), want: limit(none)},
		trial{name: "user: empty value", limit: "512Mi", env: vars("GOMEMLIMIT", ""), unchanged: true},
		trial{
			name: "user: own limit from a ConfigMap", limit: "512Mi",
			fromConfigMap: map[string]string{"GOMEMLIMIT": "104857600"}, want: limit("104857600"),
		},
		trial{name: "user: own GOGC", limit: "512Mi", env: vars("GOGC", "50"), want: limit("483183820", "gogc", "50")},
		trial{
			name: "user: own GOGC against OnlyAtLimit", limit: "512Mi", env: vars("GOGC", "50"), tuning: onlyAtLimit,
			want: limit("536870912", "gogc", "50"),
		},
		trial{name: "replace what the user set", limit: "512Mi", env: vars("GOMEMLIMIT", "100MiB"),
			tuning: v1alpha1.TuningSpec{
				ConflictPolicy: v1alpha1.Replace, Replace: []v1alpha1.Setting{"GOMEMLIMIT"},
			}, want: replaced(p, limit, "483183820", "104857600")},
		trial{
			name: "the article: the limit itself and the collector only there", limit: "512Mi", tuning: onlyAtLimit,
			want: limit("536870912", "gogc", off),
		},
		trial{name: "OnlyAtLimit without a limit", tuning: onlyAtLimit, want: limit(none)},
		trial{
			name: "heapPercent 60", limit: "512Mi", tuning: v1alpha1.TuningSpec{HeapPercent: new(int32(60))},
			want: limit("322122547"),
		},
		trial{
			name: "heapLimit 256Mi", limit: "512Mi", tuning: v1alpha1.TuningSpec{HeapLimit: size("256Mi")},
			want: limit("268435456"),
		},
		trial{
			name: "heapLimit above the limit", limit: "512Mi", tuning: v1alpha1.TuningSpec{HeapLimit: size("1Gi")},
			want: limit(none),
		},
		trial{
			name: "cgo used", limit: "512Mi", tuning: v1alpha1.TuningSpec{Go: &v1alpha1.GoTuning{Cgo: "Used"}},
			want: limit("429496729"),
		},
		trial{
			name: "automemlimit", limit: "512Mi",
			tuning: v1alpha1.TuningSpec{Go: &v1alpha1.GoTuning{MemoryLimitBy: "AUTOMEMLIMIT"}},
			want:   limit(none, "AUTOMEMLIMIT", "0.9"),
		},
		trial{name: "shared memory comes off the limit", limit: "1Gi", shm: "512Mi", want: limit("483183820")},
		trial{
			name: "nothing declared", limit: "512Mi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeAuto},
			want: limit("483183820"),
		},
		trial{
			name: "version not declared", limit: "512Mi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo},
			want: limit("483183820"),
		},
		trial{
			name: "declared wrong: Java", limit: "512Mi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM},
			want: limit(none),
		},
		trial{name: "mode DryRun", limit: "512Mi", tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDryRun}, unchanged: true},
	)
}

// replaced returns the expected limit: memfit sets no GOMEMLIMIT for a Go before 1.19, which also ignores the user's.
func replaced(p *program, limit func(string, ...string) map[string]string, ours, users string) map[string]string {
	if p.version == "1.18" {
		return limit(users)
	}
	return limit(ours)
}
