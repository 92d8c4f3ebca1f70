// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package component

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memfit/memfit/hack/lab/internal/progress"
)

func TestKeyChangesWithEverythingThatChangesTheBytes(t *testing.T) {
	base := Component{Name: "etcd", LDFlags: "-s -w"}
	tc := Toolchain{Version: "go1.26.0", OS: "linux", Arch: "amd64"}
	files := map[string][]byte{"go.mod": []byte("module a\n"), "go.sum": []byte("b\n")}
	want := Key(base, tc, files)

	different := map[string]string{
		"another Go version": Key(base, Toolchain{Version: "go1.27.0", OS: "linux", Arch: "amd64"}, files),
		"another tag":        Key(Component{Name: "etcd", LDFlags: "-s -w", Tags: "x"}, tc, files),
		"other linker flags": Key(Component{Name: "etcd"}, tc, files),
		"cgo":                Key(Component{Name: "etcd", LDFlags: "-s -w", CGO: true}, tc, files),
		"another go.sum":     Key(base, tc, map[string][]byte{"go.mod": []byte("module a\n"), "go.sum": []byte("c\n")}),
		"a moved boundary":   Key(base, tc, map[string][]byte{"go.mod": []byte("module a\nb\n"), "go.sum": nil}),
	}
	for name, got := range different {
		if got == want {
			t.Errorf("%s: the key is still %s", name, got)
		}
	}

	same := base
	same.Binaries = packages("example.com/etcd")
	if got := Key(same, tc, files); got != want {
		t.Errorf("another selection of binaries: key = %s, want %s", got, want)
	}
	if got := Key(base, tc, map[string][]byte{"go.mod": []byte("module a\r\n"), "go.sum": []byte("b\n")}); got != want {
		t.Errorf("a checkout with CRLF: key = %s, want %s", got, want)
	}
}

func TestSelect(t *testing.T) {
	selected, unknown := Select(All(versions[0]), []string{"kubectl", "etcd", "kube-apiserver", "kubeproxy"})
	var names []string
	for _, c := range selected {
		for _, b := range c.Binaries {
			names = append(names, b.Name)
		}
	}
	if want := []string{"kube-apiserver", "kubectl", "etcd"}; !slices.Equal(names, want) {
		t.Errorf("selected %v, want %v", names, want)
	}
	if want := []string{"kubeproxy"}; !slices.Equal(unknown, want) {
		t.Errorf("unknown = %v, want %v", unknown, want)
	}
}

func TestVersionsMatchTheirModfiles(t *testing.T) {
	for _, v := range versions {
		mod, err := os.ReadFile(filepath.Join("..", "..", "modules", "kubernetes", v.modfile))
		if err != nil {
			t.Fatal(err)
		}
		if want := "k8s.io/kubernetes " + v.Version + "\n"; !strings.Contains(string(mod), want) {
			t.Errorf("modules/kubernetes/%s does not require %q: change the table of versions with it", v.modfile, want)
		}
	}
}

func TestFindKubernetes(t *testing.T) {
	for wanted, want := range map[string]string{
		"": versions[0].Version, "1.36": "v1.36.3", "1.37": "v1.37.2", "v1.37": "v1.37.2", "v1.37.2": "v1.37.2",
		"1.35": "v1.35.4", "1.34": "v1.34.4",
	} {
		if got, err := FindKubernetes(wanted); err != nil || got.Version != want {
			t.Errorf("FindKubernetes(%q) = %s, %v; want %s", wanted, got.Version, err, want)
		}
	}
	for _, wanted := range []string{"1.3", "latest", "1.36.99"} {
		if _, err := FindKubernetes(wanted); err == nil || !strings.Contains(err.Error(), "it has 1.37, 1.36, 1.35, 1.34") {
			t.Errorf("FindKubernetes(%q) returns %v; want the known versions", wanted, err)
		}
	}
}

func TestAnotherVersionIsAnotherEntry(t *testing.T) {
	keys := map[string]string{}
	for _, v := range versions {
		c := All(v)[0]
		files, err := sources(filepath.Join("..", "..", "modules", c.module()), c.Modfile)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 5 {
			t.Errorf("%s is built from %d files, want go.mod, go.sum and three programs", v.Version, len(files))
		}
		key := Key(c, Toolchain{}, files)
		if keys[key] != "" {
			t.Errorf("%s and %s share the cache entry %s", v.Version, keys[key], key)
		}
		keys[key] = v.Version
	}
}

func TestEveryComponentHasItsModule(t *testing.T) {
	for _, c := range All(versions[0]) {
		files, err := sources(filepath.Join("..", "..", "modules", c.module()), c.Modfile)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		for _, b := range c.Binaries {
			if !strings.HasPrefix(b.Package, ".") && !strings.Contains(string(files["go.mod"]), b.Package) {
				t.Errorf("%s: go.mod has no tool line for %s, so `go mod tidy` would drop its requirements", c.Name, b.Package)
			}
		}
	}
}

// TestBuiltOnce: an incomplete binary is built again, a complete one is not, and view has links with all names.
func TestBuiltOnce(t *testing.T) {
	dir := t.TempDir()
	module := filepath.Join(dir, "modules", "tiny")
	if err := os.MkdirAll(module, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module tiny\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { print(\"built\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all := []Component{{Name: "tiny", Binaries: []Binary{{Name: "tiny", Package: ".", Names: []string{"one", "two"}}}}}
	b := Builder{
		All: all, Modules: filepath.Dir(module), Store: filepath.Join(dir, "store"), Report: progress.New(io.Discard, 1),
	}
	view, err := b.Ensure(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		if out, err := exec.Command(filepath.Join(view, name)).CombinedOutput(); string(out) != "built" {
			t.Errorf("%s prints %q, %v", name, out, err)
		}
	}
	entry, err := b.entry(all[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(entry, "tiny")
	if err := os.Rename(path, path+".new"); err != nil {
		t.Fatal(err)
	}
	var built [2]os.FileInfo
	for i := range built {
		if _, err := b.Ensure(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		if built[i], err = os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	if !os.SameFile(built[0], built[1]) {
		t.Error("a complete program was built again")
	}
}
