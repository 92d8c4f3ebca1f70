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

// TestFuzzersHaveBudgets: what another party writes is read within a budget, which the fuzzer of its reader asserts.
// The table of docs/reference/security.md has a row for each, with the numbers of the code: a fuzzer without a row, a
// row without a fuzzer and a number that has changed fail.
func TestFuzzersHaveBudgets(t *testing.T) {
	want := map[string]string{}
	for folder, sources := range testFiles(t) {
		for name, declared := range declarations(t, sources) {
			if _, function := declared.(*ast.FuncDecl); !function || !strings.HasPrefix(name, "Fuzz") {
				continue
			}
			found := reached{of: declarations(t, sources), seen: map[string]bool{}}
			found.from(name)
			if !found.checks || len(found.budgets) == 0 {
				t.Errorf(
					"%s of %s asserts no budget (test/budget): whatever the input, it must cost a bounded number of bytes and of "+
						"seconds",
					name, folder,
				)
			}
			want[name+" "+folder] = strings.Join(slices.Sorted(maps.Keys(found.budgets)), "; ")
		}
	}
	if len(want) == 0 {
		t.Fatal("no fuzzer is found")
	}
	documented := fuzzersOfDocs(t)
	for fuzzer, budgets := range want {
		name, folder, _ := strings.Cut(fuzzer, " ")
		switch got, ok := documented[fuzzer]; {
		case !ok:
			t.Errorf(
				"docs/reference/security.md has no row for %s of %s: | what is read | how much of it | %s | `%s` | `%s` |",
				name, folder,
				budgets, name, folder,
			)
		case got != budgets:
			t.Errorf("docs/reference/security.md says that %s of %s may take %q, the code %q", name, folder, got, budgets)
		}
	}
	for fuzzer := range documented {
		if _, ok := want[fuzzer]; !ok {
			t.Errorf("docs/reference/security.md has a row for %s, and there is no such fuzzer", fuzzer)
		}
	}
}

// fuzzersOfDocs are the budgets that docs/reference/security.md tells, by the name and folder of the fuzzer.
func fuzzersOfDocs(t *testing.T) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for line := range bytes.Lines(read(t, "docs/reference/security.md")) {
		cells := strings.Split(strings.Trim(string(line), "| \n"), " | ")
		if len(cells) == 5 && strings.HasPrefix(cells[3], "`Fuzz") {
			if strings.TrimSpace(cells[0]) == "" || strings.TrimSpace(cells[1]) == "" {
				t.Errorf("the row of %s does not say what is read, and how much of it", cells[3])
			}
			rows[strings.ReplaceAll(cells[3]+" "+cells[4], "`", "")] = cells[2]
		}
	}
	return rows
}

// testFiles are the test files of each folder that has a fuzzer.
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

// declarations are the functions, methods and variables of these files, by name.
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

// reached is what a function uses of its package's tests, directly and through others.
type reached struct {
	of      map[string]ast.Node
	seen    map[string]bool
	checks  bool // it calls budget.Check
	budgets map[string]bool
}

func (r *reached) from(name string) {
	declared := r.of[name]
	if declared == nil || r.seen[name] {
		return
	}
	r.seen[name] = true
	ast.Inspect(declared, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			r.from(n.Name)
		case *ast.CallExpr:
			r.checks = r.checks || types.ExprString(n.Fun) == "budget.Check"
		case *ast.CompositeLit:
			if n.Type != nil && types.ExprString(n.Type) == "budget.Budget" {
				if r.budgets == nil {
					r.budgets = map[string]bool{}
				}
				r.budgets[told(n)] = true
			}
		}
		return true
	})
}

// told is a budget as the docs tell it: "256 KiB + 16 per byte, 1 s".
func told(literal *ast.CompositeLit) string {
	fields := map[string]string{}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return "a budget without names: " + types.ExprString(literal)
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

// size is a constant expression in the largest unit that it is a multiple of.
func size(expression string) string {
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	if err != nil || v.Value == nil {
		return expression + " (no constant)"
	}
	n, _ := constant.Int64Val(v.Value)
	for _, unit := range []struct {
		name string
		of   int64
	}{{"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.of && n%unit.of == 0 {
			return fmt.Sprintf("%d %s", n/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
