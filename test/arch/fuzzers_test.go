// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestFuzzersHaveBudgets checks that each fuzzer asserts a budget of bytes and CPU time for reading untrusted input,
// and that the table of docs/reference/security.md has exactly one row for each fuzzer, with the budgets of the code.
func TestFuzzersHaveBudgets(t *testing.T) {
	want := map[string]string{}
	for folder, sources := range testFiles(t) {
		for name, declared := range declarations(t, sources) {
			if _, function := declared.(*ast.FuncDecl); !function || !strings.HasPrefix(name, "Fuzz") {
				continue
			}
			found := reached{declared: declarations(t, sources), seen: map[string]bool{}}
			found.visit(name)
			if !found.checks || len(found.budgets) == 0 {
				t.Errorf("%s of %s asserts no budget (test/budget): bound the bytes and seconds of every input", name, folder)
			}
			want[name+" "+folder] = strings.Join(slices.Sorted(maps.Keys(found.budgets)), "; ")
		}
	}
	if len(want) == 0 {
		t.Fatal("no fuzzer found")
	}
	documented := fuzzersOfDocs(t)
	for fuzzer, budgets := range want {
		name, folder, _ := strings.Cut(fuzzer, " ")
		switch got, ok := documented[fuzzer]; {
		case !ok:
			t.Errorf(
				"docs/reference/security.md has no row for %s of %s: | what is read | how much of it | %s | `%s` | `%s` |",
				name, folder, budgets, name, folder,
			)
		case got != budgets:
			t.Errorf("docs/reference/security.md has the budget %q for %s of %s, the code %q", got, name, folder, budgets)
		}
	}
	for fuzzer := range documented {
		if _, ok := want[fuzzer]; !ok {
			t.Errorf("docs/reference/security.md has a row for %s, but that fuzzer does not exist", fuzzer)
		}
	}
}

// fuzzersOfDocs returns the budgets in docs/reference/security.md by the fuzzer's name and folder.
func fuzzersOfDocs(t *testing.T) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for line := range bytes.Lines(read(t, "docs/reference/security.md")) {
		cells := strings.Split(strings.Trim(string(line), "| \n"), " | ")
		if len(cells) == 5 && strings.HasPrefix(cells[3], "`Fuzz") {
			if strings.TrimSpace(cells[0]) == "" || strings.TrimSpace(cells[1]) == "" {
				t.Errorf("the row of %s lacks what is read or how much of it", cells[3])
			}
			rows[strings.ReplaceAll(cells[3]+" "+cells[4], "`", "")] = cells[2]
		}
	}
	return rows
}

// testFiles returns the test files of each folder that has a fuzzer.
func testFiles(t *testing.T) map[string][]string {
	t.Helper()
	folders, fuzzed := map[string][]string{}, map[string]bool{}
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f, "_test.go") {
			folders[path.Dir(f)] = append(folders[path.Dir(f)], f)
			fuzzed[path.Dir(f)] = fuzzed[path.Dir(f)] || bytes.Contains(read(t, f), []byte("\nfunc Fuzz"))
		}
	}
	maps.DeleteFunc(folders, func(folder string, _ []string) bool { return !fuzzed[folder] })
	return folders
}

// declarations returns the functions, methods and variables of the files by name.
func declarations(t *testing.T, sources []string) map[string]ast.Node {
	t.Helper()
	found := map[string]ast.Node{}
	for _, f := range sources {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, read(t, f), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				found[d.Name.Name] = d
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for _, name := range v.Names {
							found[name.Name] = v
						}
					}
				}
			}
		}
	}
	return found
}

// reached collects what a function uses of its package's tests, directly and indirectly.
type reached struct {
	declared map[string]ast.Node // declarations by name
	seen     map[string]bool
	checks   bool // budget.Check is called
	budgets  map[string]bool
}

func (r *reached) visit(name string) {
	declared := r.declared[name]
	if declared == nil || r.seen[name] {
		return
	}
	r.seen[name] = true
	ast.Inspect(declared, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			r.visit(n.Name)
		case *ast.CallExpr:
			r.checks = r.checks || types.ExprString(n.Fun) == "budget.Check"
		case *ast.CompositeLit:
			if n.Type != nil && types.ExprString(n.Type) == "budget.Budget" {
				if r.budgets == nil {
					r.budgets = map[string]bool{}
				}
				r.budgets[docsBudget(n)] = true
			}
		}
		return true
	})
}

// docsBudget returns a budget in the format of the docs: "256 KiB + 16 B each, 1 s".
func docsBudget(literal *ast.CompositeLit) string {
	fields := map[string]string{}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return "a budget without field names: " + types.ExprString(literal)
		}
		fields[types.ExprString(pair.Key)] = strings.TrimSpace(types.ExprString(pair.Value))
	}
	var parts []string
	if fields["Bytes"] != "" {
		parts = append(parts, size(fields["Bytes"]))
	}
	if fields["PerByte"] != "" {
		parts = append(parts, size(fields["PerByte"])+" each")
	}
	amount, unit, found := strings.Cut(fields["CPU"], "time.")
	unit = map[string]string{"Second": "s", "Millisecond": "ms"}[unit]
	return fmt.Sprintf(
		"%s, %s %s", strings.Join(parts, " + "), cmp.Or(strings.Trim(amount, " *"), "1"),
		cmp.Or(unit, fmt.Sprintf("of an unknown unit (%t)", found)),
	)
}

// size returns the value of a constant expression in bytes, in the largest unit that divides it.
func size(expression string) string {
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	if err != nil || v.Value == nil {
		return expression + " (not a constant)"
	}
	n, _ := constant.Int64Val(v.Value)
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
