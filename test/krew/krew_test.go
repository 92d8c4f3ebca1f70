// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package krew

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const version = "v9.8.7"

// tools is the flag of `go tool` for the module that pins krew.
const tools = "-modfile=../../hack/tools/go.mod"

// TestKrewInstallsThePlugin checks that krew accepts the manifest and that the plugin it installs runs.
func TestKrewInstallsThePlugin(t *testing.T) {
	dist := t.TempDir()
	archive := packed(t, dist)
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64"} {
		other := filepath.Join(dist, "kubectl-memfit_"+platform+".tar.gz")
		if _, err := os.Stat(other); err != nil { // archives of other platforms are never unpacked here
			if err := os.WriteFile(other, []byte(platform), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	manifest := filepath.Join(dist, "memfit.yaml")
	run(t, exec.Command("hack/krew.sh", version, dist, "https://host.example/"+version, manifest))

	validate := exec.Command("go", "tool", tools, "validate-krew-manifest", "-skip-install", "-manifest="+manifest)
	if out, err := validate.CombinedOutput(); err != nil || !strings.Contains(string(out), "structural validation OK") {
		t.Errorf("krew refuses the manifest: %v\n%s", err, out)
	}

	home := filepath.Join(t.TempDir(), "krew")
	install := exec.Command("go", "tool", tools, "krew", "install", "--manifest="+manifest, "--archive="+archive)
	install.Env = append(os.Environ(), "KREW_ROOT="+home, "KREW_NO_UPGRADE_CHECK=1")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("krew install: %v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(home, "bin", "kubectl-memfit"), "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), version) {
		t.Errorf("kubectl memfit --version of the installed plugin: %v, %s", err, out)
	}

	// krew refuses an archive whose digest is not the manifest's.
	if err := os.WriteFile(archive, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := exec.Command("go", "tool", tools, "krew", "install", "--manifest="+manifest, "--archive="+archive)
	again.Env = append(os.Environ(), "KREW_ROOT="+filepath.Join(t.TempDir(), "krew"), "KREW_NO_UPGRADE_CHECK=1")
	if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), "checksum does not match") {
		t.Errorf("krew installs an archive with a wrong digest: %v\n%s", err, out)
	}
}

// packed builds the plugin for this machine, writes its archive as hack/release.sh does, and returns the path.
func packed(t *testing.T, dist string) string {
	t.Helper()
	program := filepath.Join(dist, "kubectl-memfit")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version,
		"-o", program, "./cmd/kubectl-memfit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	run(t, build)
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for file, mode := range map[string]int64{"../../LICENSE": 0o644, program: 0o755} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.Base(file), Mode: mode, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dist, "kubectl-memfit_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
	if err := errors.Join(w.Close(), zipped.Close(), os.WriteFile(name, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

// run runs a command in the repository's root directory.
func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}
