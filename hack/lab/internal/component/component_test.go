// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package component

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
			t.Errorf("%s: the key stayed %s", name, got)
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
	if want := []string{"kubernetes", "etcd"}; !slices.Equal(names, want) {
		t.Errorf("selected %v, want %v", names, want)
	}
	if want := []string{"kubeproxy"}; !slices.Equal(unknown, want) {
		t.Errorf("unknown = %v, want %v", unknown, want)
	}
}

func TestKubernetesVersionsAreThoseThatAreBuilt(t *testing.T) {
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
			t.Errorf("FindKubernetes(%q) says %v; want what there is", wanted, err)
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
		if len(files) != 3 {
			t.Errorf("%s is built from %d files, want its pins, its sums and the program", v.Version, len(files))
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
			if b.Package != "." && !strings.Contains(string(files["go.mod"]), b.Package) {
				t.Errorf("%s: go.mod has no tool line for %s, so `go mod tidy` would drop what it needs", c.Name, b.Package)
			}
		}
	}
}

func TestManifestNoticesChangedBytes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "etcd")
	if err := os.WriteFile(path, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum, err := fileSHA256(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := (manifest{GoVersion: "go1.26.0", SHA256: map[string]string{"etcd": sum}}).write(dir); err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !m.holds(dir, "etcd") {
		t.Error("the binary is as it was built, but the manifest does not know it")
	}
	if err := os.WriteFile(path, []byte("binarz"), 0o755); err != nil {
		t.Fatal(err)
	}
	if m.holds(dir, "etcd") {
		t.Error("the binary changed, but the manifest did not notice")
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), []byte(`{"sha256":`), 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err := readManifest(dir); err != nil || m.holds(dir, "etcd") {
		t.Errorf("half a manifest: got %v, %v; want an empty one, so that everything is built again", m, err)
	}
}
