// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// notSizing are the constants of internal/recommend and internal/history that do not affect a size, with the reason.
var notSizing = map[string]string{
	"day":        "a unit",
	"maxReasons": "bounds a status",
	"maxAdvice":  "bounds a status",
	"minRuns":    "describes runs", "minRunsOfMode": "describes runs",
	"modesApart": "describes runs",
	"version":    "the version of the encoding",
	"compressed": "a flag of the encoding",
}

// TestSizingConstantsAreDocumented checks that docs/design/sizing.md has the value of every constant that affects a
// size. Its table of postures has the prices of Frugal and Cautious, which TestPosturePricesAreDocumented checks.
func TestSizingConstantsAreDocumented(t *testing.T) {
	documented := tableRows(string(read(t, "docs/design/sizing.md")))
	all := sizingConstants(t, "recommend", 40)
	for name, value := range sizingConstants(t, "history", 20) {
		if other, both := all[name]; both && other != value {
			t.Errorf("%s is %s in internal/recommend and %s in internal/history: rename one", name, other, value)
		}
		all[name] = value
	}
	for name, value := range all {
		if _, exempt := notSizing[name]; exempt || name == "Frugal" || name == "Cautious" {
			continue
		}
		cell, found := documented[name]
		if over, ok := documented[name+" - 100"]; !found && ok {
			n, err := strconv.Atoi(over)
			if err != nil {
				t.Errorf("docs/design/sizing.md: %s - 100 is %q, want a number", name, over)
			}
			cell, found = strconv.Itoa(n+100), true
		}
		switch {
		case !found:
			t.Errorf("docs/design/sizing.md has no row for the constant %s, which is %s: add the output of -sensitivity, "+
				"or why the simulator cannot measure it", name, value)
		case cell != value && !strings.HasPrefix(cell, value+" "): // a unit may follow
			t.Errorf("docs/design/sizing.md has %q for %s, the code %q", cell, name, value)
		}
	}
}

// TestPosturePricesAreDocumented checks that each posture's price of a kill in the code is also in
// docs/design/sizing.md and in the API's field docs.
func TestPosturePricesAreDocumented(t *testing.T) {
	documented := tableRows(string(read(t, "docs/design/sizing.md")))
	text := string(read(t, "api/v1alpha1/memoryprofile_types.go"))
	all := sizingConstants(t, "recommend", 40)
	for _, row := range []string{"Frugal", "Balanced (default)", "Cautious"} {
		name := strings.Fields(row)[0]
		price := all[name]
		if want := strings.Replace(price, "Gi", " GiB for a day", 1); price == "" || documented[row] != want {
			t.Errorf("docs/design/sizing.md has %q as the price of a kill with %s, the code %q", documented[row], name, want)
		}
		if want := row + " " + price; !strings.Contains(text, want) {
			t.Errorf("the field docs of sizing.posture lack %q", want)
		}
	}
}

// tableRows returns the second cell of each table row of a page by the first cell.
func tableRows(page string) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) > 3 {
			rows[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[2])
		}
	}
	return rows
}

// sizingConstants returns the numeric constants of a package below internal and the fields of its DefaultModel, by
// name, in the format of the docs. The test fails if there are fewer than least.
func sizingConstants(t *testing.T, pkg string, least int) map[string]string {
	t.Helper()
	all := map[string]string{}
	dir := filepath.Join(root, "internal", pkg)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				constantsOf(d, all)
			case *ast.FuncDecl:
				if d.Name.Name == "DefaultModel" {
					ast.Inspect(d, func(n ast.Node) bool { return !fieldsOf(n, all) })
				}
			}
		}
	}
	if len(all) < least {
		t.Fatalf("found %d constants in internal/%s, want at least %d: %v", len(all), pkg, least, all)
	}
	return all
}

func constantsOf(d *ast.GenDecl, all map[string]string) {
	if d.Tok != token.CONST {
		return
	}
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range v.Names {
			if i < len(v.Values) {
				if text, number := inDocs(v.Values[i]); number {
					all[name.Name] = text
				}
			}
		}
	}
}

// fieldsOf adds the numeric fields of a struct literal to all. It returns false for any other node.
func fieldsOf(n ast.Node, all map[string]string) bool {
	literal, ok := n.(*ast.CompositeLit)
	if !ok {
		return false
	}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, _ := pair.Key.(*ast.Ident)
		if text, number := inDocs(pair.Value); number {
			all[key.Name] = text
		}
	}
	return true
}

// units maps units in the code to units in the docs.
var units = map[string]string{
	"memory.KiB": "Ki", "memory.MiB": "Mi", "memory.GiB": "Gi",
	"time.Second": " s", "time.Minute": " min", "time.Hour": " h", "day": " days",
	"period.Minute": " min", "period.Hour": " h", "period.Day": " days",
}

// inDocs returns a number in the format of the docs, and false for any other expression.
func inDocs(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value, e.Kind == token.INT || e.Kind == token.FLOAT
	case *ast.BinaryExpr:
		n, ok := inDocs(e.X)
		unit, known := units[named(e.Y)]
		if times, number := inDocs(e.Y); ok && number && !known { // 2 * 24
			a, errA := strconv.Atoi(n)
			b, errB := strconv.Atoi(times)
			return strconv.Itoa(a * b), errA == nil && errB == nil && e.Op == token.MUL
		}
		return n + unit, ok && known && e.Op == token.MUL
	default:
		unit, known := units[named(e)]
		return "1" + unit, known
	}
}

// named returns an identifier's or selector's name: "day", "memory.MiB".
func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return named(e.X) + "." + e.Sel.Name
	}
	return ""
}
