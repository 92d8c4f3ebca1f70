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
	"strconv"
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
)

// pythonEdition counts malloc arenas with eight live threads, through ctypes.
func pythonEdition(name string, fetch func(*testing.T) string) edition {
	return edition{
		name: name, runtime: v1alpha1.RuntimePython, fetch: fetch, probe: []string{"arenas.py"}, facts: equations,
		trials:   func(t *testing.T, p *program) []trial { return arenaTrials(t, p, "") },
		controls: []control{{"an allocator that it does not know", "PYTHONMALLOC=nonsense", 1}},
	}
}

// rubyEdition counts malloc arenas through Fiddle. For Ruby memfit sets two arenas by default.
func rubyEdition() edition {
	return edition{
		name: "ruby-debian", runtime: v1alpha1.RuntimeRuby, fetch: fromDebian("/usr/bin/ruby", "ruby"),
		probe: []string{"arenas.rb"}, facts: equations,
		trials:   func(t *testing.T, p *program) []trial { return arenaTrials(t, p, "2") },
		controls: []control{{"an option that it does not know", "RUBYOPT=--nonsense", 1}},
	}
}

// nativeEdition is a C program linked with this machine's glibc.
func nativeEdition() edition {
	return edition{
		name: "native-glibc", runtime: v1alpha1.RuntimeNative, probe: nil, facts: equations,
		fetch: func(t *testing.T) string {
			t.Helper()
			needs(t, "cc", "gcc libc6-dev")
			source, err := os.ReadFile("testdata/arenas.c")
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(source)
			return filepath.Join(once(t, "arenas-c-"+hex.EncodeToString(sum[:6]), func(dir string) error {
				return finish(
					exec.CommandContext(t.Context(), "cc", "-O1", "-pthread", "-o", filepath.Join(dir, "arenas"), "testdata/arenas.c"),
				)
			}), "arenas")
		},
		trials: func(t *testing.T, p *program) []trial { return arenaTrials(t, p, "") },
	}
}

// arenaTrials returns trials of a program that reports glibc's number of arenas for eight live threads: one each and
// the main one, unless capped. byDefault is the cap that memfit sets without a tuning; "": none.
func arenaTrials(t *testing.T, p *program, byDefault string) []trial {
	t.Helper()
	alone := p.run(t, nil, nil).facts["arenas"]
	if n, err := strconv.Atoi(alone); err != nil || n < 6 {
		t.Fatalf("without settings the program reports %q arenas for eight threads, too few to test a cap", alone)
	}
	usual := byDefault
	if usual == "" {
		usual = alone
	}
	arenas := func(n string) map[string]string { return map[string]string{"arenas": n} }
	with := func(n int32) v1alpha1.TuningSpec { return v1alpha1.TuningSpec{ArenaMax: &n} }
	var trials []trial
	for _, limit := range []string{"", "64Mi", "512Mi", "4Gi", "32Gi"} {
		trials = append(trials, trial{name: "limit " + limit, limit: limit, want: arenas(usual)},
			trial{name: "arenaMax 2, limit " + limit, limit: limit, tuning: with(2), want: arenas("2")})
	}
	return append(trials,
		trial{name: "arenaMax 1", limit: "512Mi", tuning: with(1), want: arenas("1")},
		trial{name: "arenaMax 4", limit: "512Mi", tuning: with(4), want: arenas("4")},
		trial{name: "arenaMax 0 leaves it alone", limit: "512Mi", tuning: with(0), want: arenas(alone)},
		trial{
			name: "user: own number", limit: "512Mi", env: vars("MALLOC_ARENA_MAX", "3"), tuning: with(2), want: arenas("3"),
		},
		trial{
			name: "user: own number from a ConfigMap", limit: "512Mi", fromConfigMap: map[string]string{"MALLOC_ARENA_MAX": "3"},
			tuning: with(2), want: arenas("3"),
		},
		trial{
			name: "user: own tunable", limit: "512Mi", env: vars("GLIBC_TUNABLES", "glibc.malloc.arena_max=5"), tuning: with(2),
			want: arenas("5"),
		},
		trial{
			name: "user: another tunable", limit: "512Mi", env: vars("GLIBC_TUNABLES", "glibc.malloc.tcache_count=3"),
			tuning: with(2), want: arenas("2"),
		},
		trial{name: "replace what the user set", limit: "512Mi", env: vars("MALLOC_ARENA_MAX", "3"),
			tuning: v1alpha1.TuningSpec{
				ArenaMax: new(int32(2)), ConflictPolicy: v1alpha1.Replace, Replace: []v1alpha1.Setting{"MALLOC_ARENA_MAX"},
			}, want: arenas("2")},
		trial{
			name: "trimThreshold 128Ki", limit: "512Mi", tuning: v1alpha1.TuningSpec{TrimThreshold: size("128Ki")},
			want: map[string]string{"arenas": usual, "MALLOC_TRIM_THRESHOLD_": "131072"},
		},
		trial{
			name: "declared musl", limit: "512Mi", tuning: with(2),
			runtime: &v1alpha1.RuntimeSpec{Type: p.runtime, Libc: v1alpha1.LibcMusl}, unchanged: true,
		},
		trial{
			name: "declared wrong: Java", limit: "512Mi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM},
			want: arenas(alone),
		},
		trial{
			name: "declared wrong: Node.js", limit: "512Mi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS},
			want: arenas(alone),
		},
		trial{
			name: "mode Disabled", limit: "512Mi",
			tuning: v1alpha1.TuningSpec{ArenaMax: new(int32(2)), Mode: v1alpha1.TuningDisabled},
			want:   arenas(alone),
		},
	)
}

// phpEdition has nothing to set: PHP takes its memory_limit from php.ini.
func phpEdition() edition {
	return edition{
		name: "php-debian", runtime: v1alpha1.RuntimePHP, fetch: fromDebian("/usr/bin/php", "php-cli"),
		probe: []string{"probe.php"}, facts: equations,
		trials: func(*testing.T, *program) []trial {
			two := map[string]string{"MALLOC_ARENA_MAX": "2"}
			return []trial{
				{name: "limit 64Mi", limit: "64Mi", unchanged: true},
				{name: "limit 512Mi", limit: "512Mi", unchanged: true},
				{name: "no limit", unchanged: true},
				{name: "arenaMax 2", limit: "512Mi", tuning: v1alpha1.TuningSpec{ArenaMax: new(int32(2))}, want: two},
				{name: "user: own number", limit: "512Mi", env: vars("MALLOC_ARENA_MAX", "2"),
					tuning: v1alpha1.TuningSpec{ArenaMax: new(int32(4))}, want: two},
				{name: "user: own memory_limit", limit: "512Mi", args: []string{"-d", "memory_limit=99M"},
					want: map[string]string{"memory_limit": "99M"}},
			}
		},
	}
}
