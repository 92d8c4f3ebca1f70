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
	// simulated is the package whose simulations the test runs.
	simulated = "internal/workload"
)

// packages are the packages that decide and that write sentences for users.
var packages = []string{
	"internal/constraints", "internal/drift", "internal/inject", "internal/oom", "internal/profile", "internal/recommend",
	"internal/report", "internal/rollout", "internal/shape", "internal/workload", "internal/workloadkind",
}

// TestNoSentenceDecides runs the same simulation with the original sentences and with each sentence replaced by a key.
// Both must decide the same, because wording may change at any time.
func TestNoSentenceDecides(t *testing.T) {
	overlay := map[string]string{}
	driver := absolute(t, "testdata/decisions_test.go")
	added := absolute(t, filepath.Join(root, simulated, "zz_decisions_test.go"))
	overlay[added] = driver
	want, shown := simulate(t, overlay)
	if len(want) < 100_000 || !bytes.Contains(want, []byte(`"Decrease"`)) || !bytes.Contains(want, []byte(`"newPods"`)) {
		t.Fatalf("the simulation made too few decisions to compare: %d bytes", len(want))
	}

	keys := 0
	for _, dir := range packages {
		keys += replace(t, dir, overlay)
	}
	if keys < 600 {
		t.Errorf("%d sentences found, want at least 600", keys)
	}
	got, keyed := simulate(t, overlay)
	if bytes.Equal(shown, keyed) || !bytes.Contains(keyed, []byte("sentence-")) {
		t.Error("text for users is the same with keys, so the comparison is ineffective")
	}
	if at := differ(want, got); at != "" {
		t.Errorf("decisions differ with other sentences: memfit parses a text (-original +keys)\n%s", at)
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

// simulate runs the simulation with some files replaced, and returns the decisions and the text for users.
func simulate(t *testing.T, overlay map[string]string) (decided, shown []byte) {
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
		t.Fatalf("running the simulation: %v\n%s", err, out)
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

// replace adds the files of a package to the overlay, with keys for sentences, and returns the number of keys.
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

// sentence matches a text with at least two words; verb matches a format verb of package fmt.
var (
	sentence = regexp.MustCompile(`[A-Za-z%][^ ]* +[A-Za-z%]|[A-Za-z]{2}[^ ]* $|^ [A-Za-z]{2}`)
	verb     = regexp.MustCompile(`%[-+# 0]*(\[\d+\])?[\d.]*[a-zA-Z%]`)
)

// keyed replaces the sentences of a file with keys and returns their number. It keeps the texts of comparisons: a
// comparison with one of memfit's own sentences thus fails with keys.
func keyed(file *ast.File, name string) (keys int) {
	kept := map[*ast.BasicLit]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		for _, part := range compared(n) {
			ast.Inspect(part, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok {
					kept[literal] = true
				}
				return true
			})
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || kept[literal] {
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

// compared returns the parts of a node whose texts are not for users, or are compared with another text.
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
		pkg, _ := f.X.(*ast.Ident)
		searches := pkg != nil && (pkg.Name == "strings" || pkg.Name == "regexp") && f.Sel.Name != "Join"
		if searches || f.Sel.Name == "Format" {
			for _, e := range n.Args {
				parts = append(parts, e)
			}
		}
	}
	return parts
}

// differ returns the first lines that differ, or "".
func differ(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, x[i], y[i])
		}
	}
	if len(x) != len(y) {
		return fmt.Sprintf("%d lines, %d with keys", len(x), len(y))
	}
	return ""
}
