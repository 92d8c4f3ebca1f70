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

// noSize are the constants of these packages that no size follows from.
var noSize = map[string]string{
	"day":        "a unit",
	"maxReasons": "bounds what a status holds",
	"maxAdvice":  "bounds what a status holds",
	"minRuns":    "is for the description of runs", "minRunsOfMode": "is for the description of runs",
	"modesApart": "is for the description of runs",
	"version":    "the version of the encoding",
	"compressed": "a mark in the encoding",
}

// TestSizingConstantsAreTold: docs/design/sizing.md has every number that a size follows from, as it is in
// internal/recommend
// and internal/history, with what a quarter more or less of it does, or why no replay can say that. The prices of
// Frugal and Cautious are in its table of postures, in words.
func TestSizingConstantsAreTold(t *testing.T) {
	told := tableRows(string(read(t, "docs/design/sizing.md")))
	all := sizingConstants(t, "recommend", 40)
	for name, value := range sizingConstants(t, "history", 20) {
		if other, both := all[name]; both && other != value {
			t.Errorf("%s is %s in internal/recommend and %s in internal/history: rename one", name, other, value)
		}
		all[name] = value
	}
	for name, value := range all {
		if _, exempt := noSize[name]; exempt || name == "Frugal" || name == "Cautious" {
			continue
		}
		cell, found := told[name]
		if over, ok := told[name+" - 100"]; !found && ok {
			n, err := strconv.Atoi(over)
			if err != nil {
				t.Errorf("docs/design/sizing.md: %s - 100 is %q, which is no number", name, over)
			}
			cell, found = strconv.Itoa(n+100), true
		}
		switch {
		case !found:
			t.Errorf("docs/design/sizing.md has no row for the constant %s, which is %s: add what -sensitivity prints for it, "+
				"or why "+
				"the simulator cannot weigh it", name, value)
		case cell != value && !strings.HasPrefix(cell, value+" "): // a unit may follow
			t.Errorf("docs/design/sizing.md says that %s is %q, and the code says %q", name, cell, value)
		}
	}
}

// TestThePricesOfPosturesAreTold: what a kill costs is the same in the code, in docs/design/sizing.md and in the text
// of the API.
func TestThePricesOfPosturesAreTold(t *testing.T) {
	told := tableRows(string(read(t, "docs/design/sizing.md")))
	text := string(read(t, "api/v1alpha1/memoryprofile_types.go"))
	all := sizingConstants(t, "recommend", 40)
	for _, row := range []string{"Frugal", "Balanced (default)", "Cautious"} {
		name := strings.Fields(row)[0]
		price := all[name]
		if want := strings.Replace(price, "Gi", " GiB for a day", 1); price == "" || told[row] != want {
			t.Errorf("docs/design/sizing.md says that a kill costs %q with %s, and the code says %q", told[row], name, want)
		}
		if want := row + " " + price; !strings.Contains(text, want) {
			t.Errorf("the text of sizing.posture does not have %q", want)
		}
	}
}

// tableRows are the second cells of the tables of a page, by their first.
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

// sizingConstants are the numbers of a package with their values as the documentation writes them: those of
// DefaultModel, and all that are declared as constants.
func sizingConstants(t *testing.T, room string, least int) map[string]string {
	t.Helper()
	all := map[string]string{}
	dir := filepath.Join(root, "internal", room)
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
		t.Fatalf("only %d constants were found in internal/%s: %v", len(all), room, all)
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

// fieldsOf reads a literal of a struct; false for anything else.
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

// units are how the documentation writes them.
var units = map[string]string{
	"memory.KiB": "Ki", "memory.MiB": "Mi", "memory.GiB": "Gi",
	"time.Second": " s", "time.Minute": " min", "time.Hour": " h", "day": " days",
	"period.Minute": " min", "period.Hour": " h", "period.Day": " days",
}

// inDocs is a number as the documentation has it; false for what is none.
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

// named is "day" or "memory.MiB".
func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return named(e.X) + "." + e.Sel.Name
	}
	return ""
}
