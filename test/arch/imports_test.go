// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// goPackage is the output of `go list -json` for one package, without its tests.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		seen[dir] = true
		l, ok := layerOf(dir)
		if !ok {
			continue
		}
		for _, imported := range p.Imports {
			if why := l.refuses(imported); why != "" {
				t.Errorf("%s imports %s: layer %s %s", dir, imported, l.name, why)
			}
		}
		for _, dep := range p.Deps {
			if slices.ContainsFunc(l.never, matching(dep)) {
				t.Errorf("%s imports %s indirectly: layer %s may not (go list -deps finds the path)", dir, dep, l.name)
			}
		}
	}
	// List the packages from the files too, to detect those that go list omitted.
	for dir := range goDirs(t) {
		inFree := slices.ContainsFunc(free, matching(dir))
		if _, ok := layerOf(dir); !ok && !inFree {
			t.Errorf("%s is in no layer: add its allowed imports to layers in test/arch/layers_test.go", dir)
		}
		if !seen[dir] && !inFree {
			t.Errorf("%s has Go files, but go list found no package there, so its imports are unchecked", dir)
		}
	}
}

// layerOf returns the first layer that matches a package folder, and false when no layer does.
func layerOf(dir string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return matching(dir)(l.dir) })
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

// refuses returns why the layer may not import a package, or "" when it may.
func (l layer) refuses(imported string) string {
	inner, isOurs := strings.CutPrefix(imported, module+"/")
	switch {
	case isOurs && slices.ContainsFunc(l.ours, matching(inner)):
	case isOurs && strings.HasSuffix(l.dir, "/...") && matching(inner)(l.dir): // packages of one layer
	case isOurs:
		return "may import only these memfit packages: " + strings.Join(l.ours, ", ")
	case isStandard(imported):
		for _, not := range l.noStd {
			if matching(imported)(not + "/...") {
				return "may not import " + not
			}
		}
	case !slices.ContainsFunc(l.outside, matching(imported)):
		return "may import only these third-party packages: " + strings.Join(l.outside, ", ")
	}
	return ""
}

// matching returns a function that reports whether its pattern ("a/b" or "a/b/...") matches path.
func matching(path string) func(pattern string) bool {
	return func(pattern string) bool {
		if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
			return path == tree || strings.HasPrefix(path, tree+"/")
		}
		return path == pattern
	}
}

// isStandard reports whether path is in the standard library. Module paths start with a host name, which has a dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", "e2e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
