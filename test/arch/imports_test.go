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

// listed is what `go list -json` says about a package, without its tests.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		seen[dir] = true
		r, ok := roomOf(dir)
		if !ok {
			continue
		}
		for _, imported := range p.Imports {
			if why := r.refuses(imported); why != "" {
				t.Errorf("%s imports %s: room %s %s", dir, imported, r.name, why)
			}
		}
		for _, dep := range p.Deps {
			if slices.ContainsFunc(r.never, matching(dep)) {
				t.Errorf("%s links in %s through others: room %s never does (go list -deps finds the way)", dir, dep, r.name)
			}
		}
	}
	// From the files, so that what go list left out is noticed.
	for dir := range goDirs(t) {
		inFree := slices.ContainsFunc(free, matching(dir))
		if _, ok := roomOf(dir); !ok && !inFree {
			t.Errorf("%s is in no room: add a line to rooms in test/arch/rooms_test.go that says what it may import", dir)
		}
		if !seen[dir] && !inFree {
			t.Errorf("%s holds Go files, but go list found no package there, so nothing was checked", dir)
		}
	}
}

// roomOf returns the room of a package; free packages and those no one thought of have none.
func roomOf(dir string) (room, bool) {
	i := slices.IndexFunc(rooms, func(r room) bool { return matching(dir)(r.dir) })
	if i < 0 {
		return room{}, false
	}
	return rooms[i], true
}

// refuses reports why the room may not import a package; "" means that it may.
func (r room) refuses(imported string) string {
	inner, isOurs := strings.CutPrefix(imported, module+"/")
	switch {
	case isOurs && slices.ContainsFunc(r.ours, matching(inner)):
	case isOurs && strings.HasSuffix(r.dir, "/...") && matching(inner)(r.dir): // a room may be divided
	case isOurs:
		return "may import of ours only: " + strings.Join(r.ours, ", ")
	case isStandard(imported):
		for _, not := range r.noStd {
			if matching(imported)(not + "/...") {
				return "may not use " + not
			}
		}
	case !slices.ContainsFunc(r.outside, matching(imported)):
		return "may import from outside only: " + strings.Join(r.outside, ", ")
	}
	return ""
}

// matching returns whether a pattern ("a/b" or "a/b/...") stands for path.
func matching(path string) func(pattern string) bool {
	return func(pattern string) bool {
		if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
			return path == tree || strings.HasPrefix(path, tree+"/")
		}
		return path == pattern
	}
}

// isStandard: import paths of modules start with a host name, and those have a dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", "e2e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
