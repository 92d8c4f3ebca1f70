// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sentences

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	root = "../.."
	// simulated is the package whose simulations are played.
	simulated = "internal/workload"
)

// packages are those that make sentences for users while they decide.
var packages = []string{
	"internal/constraints", "internal/drift", "internal/inject", "internal/oom", "internal/profile", "internal/recommend",
	"internal/report", "internal/rollout", "internal/shape", "internal/workload", "internal/workloadkind",
}

// TestNoSentenceDecides plays the same simulation with the sentences as they are and with each of them replaced by a
// key. A wording may be changed at any time, so both must decide the same.
func TestNoSentenceDecides(t *testing.T) {
	overlay := map[string]string{}
	driver := absolute(t, "testdata/decisions_test.go")
	added := absolute(t, filepath.Join(root, simulated, "zz_decisions_test.go"))
	overlay[added] = driver
	want, shown := play(t, overlay)
	if len(want) < 100_000 || !bytes.Contains(want, []byte(`"Decrease"`)) || !bytes.Contains(want, []byte(`"newPods"`)) {
		t.Fatalf("the simulation decided too little to compare: %d bytes", len(want))
	}

	keys := 0
	for _, dir := range packages {
		keys += replace(t, dir, overlay)
	}
	if keys < 600 {
		t.Errorf("%d sentences were found, want most of them", keys)
	}
	got, keyed := play(t, overlay)
	if bytes.Equal(shown, keyed) || !bytes.Contains(keyed, []byte("sentence-")) {
		t.Error("users were shown the same with keys, so that nothing was tested")
	}
	if at := differ(want, got); at != "" {
		t.Errorf("with other sentences another decision was made: a text is read back\n%s", at)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
}

// play runs the simulation with some files replaced, and returns what was decided and what users were shown.
func play(t *testing.T, overlay map[string]string) (decided, shown []byte) {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"DECIDED": filepath.Join(dir, "decided"), "SHOWN": filepath.Join(dir, "shown")}
	run := exec.CommandContext(t.Context(), "go", "test", "-overlay="+list, "-vet=off", "-count=1", "-run=^TestDecisions$",
		"./"+simulated)
	run.Dir, run.Env = root, os.Environ()
	for env, file := range files {
		run.Env = append(run.Env, env+"="+file)
	}
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("playing the simulation: %v\n%s", err, out)
	}
	read := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return read(files["DECIDED"]), read(files["SHOWN"])
}

// replace adds the files of a package to the overlay, with keys for sentences, and returns how many there are.
func replace(t *testing.T, dir string, overlay map[string]string) (keys int) {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, source, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		found := keyed(file, strings.TrimSuffix(filepath.Base(source), ".go"))
		if found == 0 {
			continue
		}
		keys += found
		var out bytes.Buffer
		if err := format.Node(&out, set, file); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, filepath.Base(source))
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[absolute(t, source)] = path
	}
	return keys
}

// sentence matches a text with two words or more; verb matches what fmt fills in.
var (
	sentence = regexp.MustCompile(`[A-Za-z%][^ ]* +[A-Za-z%]|[A-Za-z]{2}[^ ]* $|^ [A-Za-z]{2}`)
	verb     = regexp.MustCompile(`%[-+# 0]*(\[\d+\])?[\d.]*[a-zA-Z%]`)
)

// keyed replaces the sentences of a file by keys and returns how many it found. Texts that something is compared with
// stay: if that is a sentence of memfit's own, the comparison fails from now on.
func keyed(file *ast.File, name string) (keys int) {
	stays := map[*ast.BasicLit]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		for _, part := range compared(n) {
			ast.Inspect(part, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok {
					stays[literal] = true
				}
				return true
			})
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || stays[literal] {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil || !sentence.MatchString(text) {
			return true
		}
		keys++
		key := fmt.Sprintf("sentence-%s-%d", name, keys)
		literal.Value = strconv.Quote(strings.Join(append([]string{key}, verb.FindAllString(text, -1)...), " "))
		return true
	})
	return keys
}

// compared are the parts of a node whose texts are no sentences for users, or are compared with something.
func compared(n ast.Node) (parts []ast.Node) {
	switch n := n.(type) {
	case *ast.ImportSpec:
		parts = append(parts, n)
	case *ast.Field:
		if n.Tag != nil {
			parts = append(parts, n.Tag)
		}
	case *ast.CaseClause:
		for _, e := range n.List {
			parts = append(parts, e)
		}
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			parts = append(parts, n.X, n.Y)
		}
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			break
		}
		of, _ := f.X.(*ast.Ident)
		searches := of != nil && (of.Name == "strings" || of.Name == "regexp") && f.Sel.Name != "Join"
		if searches || f.Sel.Name == "Format" {
			for _, e := range n.Args {
				parts = append(parts, e)
			}
		}
	}
	return parts
}

// differ returns the first lines that differ; empty: none.
func differ(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, x[i], y[i])
		}
	}
	if len(x) != len(y) {
		return fmt.Sprintf("%d lines and %d", len(x), len(y))
	}
	return ""
}
