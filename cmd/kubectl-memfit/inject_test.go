// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: app, resources: {limits: {memory: 512Mi}}}]}
`

const goProfile = `apiVersion: memfit.dev/v1alpha1
kind: MemoryProfile
metadata: {name: web, namespace: shop}
spec: {runtime: {type: Go}}
`

// run runs the plugin as main does and returns what it wrote and its exit code.
func run(stdin string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	err := cmd.Execute()
	var e exit
	switch {
	case errors.As(err, &e):
		code = int(e)
	case err != nil:
		code = exitFailed
		errs.WriteString(err.Error())
	}
	return out.String(), errs.String(), code
}

func TestInject(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pod, profile, empty := file("pod.yaml", manifest), file("profile.yaml", goProfile), file("empty.yaml", "\n")
	of := func(name, spec string) string {
		return file(name, strings.Replace(goProfile, "runtime: {type: Go}", spec, 1))
	}
	dry, off := of(
		"dry.yaml", "runtime: {type: Go}, tuning: {mode: DryRun}",
	), of("off.yaml", "runtime: {type: Go}, tuning: {mode: Disabled}")
	php, rust := of("php.yaml", "runtime: {type: PHP}"), of("rust.yaml", "runtime: {type: Rust}")
	lost := file(
		"lost.yaml",
		strings.Replace(manifest, "namespace: shop", "namespace: shop, annotations: {memfit.dev/profile: nope}", 1),
	)

	for name, tc := range map[string]struct {
		stdin    string
		args     []string
		wantCode int
		wantOut  string
		wantErr  string
	}{
		"yaml": {
			args: []string{"-f", pod, "--profile", profile}, wantOut: `value: "483183820"`,
			wantErr: "Pod shop/web, container app: GOMEMLIMIT=483183820 (90 % of 512Mi)",
		},
		"quiet": {args: []string{"-q", "-f", pod, "--profile", profile}, wantOut: `value: "483183820"`},
		"stdin": {
			stdin: manifest, args: []string{"-f", "-", "--profile", profile, "-q"}, wantOut: `value: "483183820"`,
		},
		"profile from stdin": {
			stdin: goProfile, args: []string{"-f", pod, "--profile", "-", "-q"}, wantOut: `value: "483183820"`,
		},
		"nothing to do": {
			args: []string{"-f", pod}, wantOut: manifest, wantErr: "Pod shop/web: unchanged, no profile governs it",
		},
		"diff": {
			args: []string{"-f", pod, "--profile", profile, "-o", "diff", "-q"}, wantCode: 1,
			wantOut: "+++ Pod shop/web with memfit\n",
		},
		"diff of nothing": {args: []string{"-q", "-f", pod, "-o", "diff"}},
		"a profile that is not there": {
			args: []string{"-f", lost, "-q"}, wantCode: 3, wantOut: "kind: Pod", wantErr: `names "nope"`,
		},
		"no file": {wantCode: 2, wantErr: "-f FILE"},
		"a file that is not there": {
			args: []string{"-f", filepath.Join(dir, "nope")}, wantCode: 2, wantErr: "reading manifests: open",
		},
		"a profile that the API refuses": {
			args: []string{"-f", pod, "--profile", rust}, wantCode: 2,
			wantErr: rust + `: profile document 1: MemoryProfile web: spec.runtime.type: Unsupported value: "Rust": ` +
				`supported values: "Auto", "`,
		},
		"a profile that the API refuses, among the manifests": {
			stdin: strings.Replace(goProfile, "type: Go", "type: Rust", 1) + "---\n" + manifest, args: []string{"-f", "-"},
			wantCode: 3, wantOut: "type: Rust",
			wantErr: "document 1 is unchanged: MemoryProfile web: spec.runtime.type: Unsupported value",
		},
		"an unknown output": {
			args: []string{"-f", pod, "-o", "xml"}, wantCode: 2, wantErr: "-o xml is unknown: use yaml, diff",
		},
		"a file without its flag": {
			args: []string{"pod.yaml"}, wantCode: 2,
			wantErr: `unexpected argument "pod.yaml": name manifests with -f, as in -f pod.yaml`,
		},
		"dry run": {
			args: []string{"-f", pod, "--profile", dry}, wantOut: `"dryRun":true`,
			wantErr: "GOMEMLIMIT=483183820 (90 % of 512Mi; not set: tuning.mode is DryRun)",
		},
		"off": {
			args: []string{"-f", pod, "--profile", off}, wantOut: manifest,
			wantErr: "Pod shop/web, container app: tuning.mode is Disabled",
		},
		"nothing to set unasked": {
			args: []string{"-f", pod, "--profile", php}, wantOut: "kind: Pod",
			wantErr: "Pod shop/web, container app: nothing to set: PHP (declared by the profile)",
		},
		"an unknown flag": {args: []string{"--nope"}, wantCode: 2, wantErr: "unknown flag"},
		"both from stdin": {
			args: []string{"-f", "-", "--profile", "-"}, wantCode: 2, wantErr: "cannot both read standard input",
		},
		"an empty profile file": {args: []string{"-f", pod, "--profile", empty}, wantCode: 2, wantErr: "is empty"},
		"a broken manifest on stdin": {
			stdin: manifest + "\n---\na: [", args: []string{"-f", "-", "--profile", profile, "-q"}, wantCode: 3,
			wantOut: `value: "483183820"`, wantErr: "document 2 is unchanged: yaml:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := run(tc.stdin, append([]string{"inject"}, tc.args...)...)
			if code != tc.wantCode || !strings.Contains(out, tc.wantOut) || !strings.Contains(errs, tc.wantErr) {
				t.Errorf(
					"exit %d\nstdout: %s\nstderr: %s\nwant exit %d, %q, %q", code, out, errs, tc.wantCode, tc.wantOut, tc.wantErr,
				)
			}
			if (tc.wantOut == "") != (out == "") || (tc.wantErr == "") != (errs == "") {
				t.Errorf("stdout %q, stderr %q: something was said that should not be, or the other way round", out, errs)
			}
		})
	}
}
