// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package component

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// severalVersions are modules that may have different versions. containerd and runc keep the version of ebpf that they
// were released with, and containerd 2.3 does not compile with the CRI modules of Kubernetes 1.37.
var severalVersions = map[string]bool{
	"github.com/cilium/ebpf": true, "k8s.io/cri-api": true, "k8s.io/cri-streaming": true,
}

// TestOneVersionOfEveryModule: with another version, its packages and all that import them are compiled again.
func TestOneVersionOfEveryModule(t *testing.T) {
	lab := filepath.Join("..", "..")
	lists := []string{filepath.Join(lab, "go.mod"), filepath.Join(lab, "..", "..", "go.mod")}
	for _, c := range Without(All(versions[0]), CertManager) {
		modfile := c.Modfile
		if modfile == "" {
			modfile = "go.mod"
		}
		lists = append(lists, filepath.Join(lab, "modules", c.module(), modfile))
	}
	type pin struct{ version, list string }
	known := map[string]pin{}
	for _, list := range lists {
		for module, version := range pinsOf(t, list) {
			if first, found := known[module]; found && first.version != version && !severalVersions[module] {
				t.Errorf("%s is %s in %s and %s in %s: use the newer one in both",
					module, first.version, first.list, version, list)
			}
			known[module] = pin{version, list}
		}
	}
	if len(known) < 200 {
		t.Errorf("only %d modules were found in %v", len(known), lists)
	}
}

// TestKubernetesIsCompiledOnce: modules of tests and tools have the operator's versions of all modules that client-go
// imports. Otherwise most of Kubernetes' packages are compiled again for them.
func TestKubernetesIsCompiledOnce(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	operators := pinsOf(t, filepath.Join(root, "go.mod"))
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.GoMod}}", "k8s.io/client-go")
	list.Dir = root
	path, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	imported := pinsOf(t, strings.TrimSpace(string(path)))
	imported["k8s.io/client-go"] = operators["k8s.io/client-go"]
	for _, folder := range []string{"test/chart", "test/monitoring", "test/peers", "hack/tools"} {
		pins, shared := pinsOf(t, filepath.Join(root, folder, "go.mod")), 0
		for module, version := range pins {
			want := operators[module]
			switch {
			case imported[module] == "" || want == "":
			case version == want:
				shared++
			default:
				t.Errorf("%s is %s in %s and %s in the operator: go -C %s mod edit -exclude=%s@%s -require=%s@%s",
					module, version, folder, want, folder, module, version, module, want)
			}
		}
		if shared < 25 {
			t.Errorf("%s has only %d modules that client-go imports", folder, shared)
		}
	}
}

// pinsOf returns the version of each module in a go.mod. A replacement's version replaces the required one.
func pinsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pins := map[string]string{}
	excluded := regexp.MustCompile(`(?s)\nexclude \(.*?\n\)`)
	for line := range strings.Lines(excluded.ReplaceAllString(string(text), "")) {
		line, _, _ = strings.Cut(line, "//")
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		switch {
		case len(fields) == 4 && fields[1] == "=>":
			pins[fields[0]] = fields[3]
		case len(fields) == 2 && strings.HasPrefix(fields[1], "v"):
			pins[fields[0]] = fields[1]
		}
	}
	return pins
}
