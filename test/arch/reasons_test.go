// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasonsFile declares every reason of conditions and Events.
const reasonsFile = "api/v1alpha1/reasons.go"

// reasonPackages are the packages whose reasons appear in conditions and Events. internal/inject is not among them: its
// reasons are sentences about settings.
var reasonPackages = []string{
	"controllers/", "internal/rollout", "internal/conditions", "internal/recommend", "internal/workload",
}

// TestReasonsAreDocumented checks that each reason of reasonsFile is one CamelCase word, has a comment and is used.
func TestReasonsAreDocumented(t *testing.T) {
	var sources strings.Builder
	for _, f := range goFiles(t) {
		if shipped(f) && !strings.HasSuffix(f, "_test.go") {
			sources.Write(read(t, f))
		}
	}
	found := 0
	for _, decl := range parsed(t, reasonsFile).Decls {
		group, isGroup := decl.(*ast.GenDecl)
		if !isGroup || group.Tok != token.CONST {
			t.Errorf("%s has a declaration other than constants", reasonsFile)
			continue
		}
		for _, spec := range group.Specs {
			constant, _ := spec.(*ast.ValueSpec)
			name := constant.Names[0].Name
			value, _ := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			found++
			if doc := constant.Doc.Text(); !strings.HasPrefix(doc, name+": ") || len(strings.Fields(doc)) < 3 {
				t.Errorf("%s: the comment of %s lacks what it means and what to do: %q", reasonsFile, name, doc)
			}
			if !strings.HasPrefix(name, "Reason") && !strings.HasPrefix(name, "Event") || value == "" ||
				strings.ContainsAny(value, " -_.") {
				t.Errorf("%s: %s = %q is not a reason of a condition or an Event", reasonsFile, name, value)
			}
			if !strings.Contains(sources.String(), "v1alpha1."+name) {
				t.Errorf("%s: %s is unused", reasonsFile, name)
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d reasons in %s, want at least 50: fix this test's search", found, reasonsFile)
	}
}

// TestReasonsComeFromTheAPI checks that packages use the constants of reasonsFile instead of string literals.
func TestReasonsComeFromTheAPI(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f, "_test.go") ||
			!slices.ContainsFunc(reasonPackages, func(p string) bool { return strings.HasPrefix(f, p) }) {
			continue
		}
		for _, text := range reasonTexts(parsed(t, f)) {
			t.Errorf("%s has the reason %s: make it a constant of %s, with its meaning and what to do", f, text, reasonsFile)
		}
	}
	const source = `package p
const ReasonA = "A"
func refuse(kind int, reason, message string) {}
func guard() (reason, message string, refused bool) { return "B", "b b", true }
func all(e Event) {
	refuse(1, "C", "c c")
	e.Reason, e.Note = "D", "d d"
	reason := "E"
	use(Event{Reason: "F" + reason, Action: "Used"})
	ready.False("G", "g g")
	if e.Reason == "H" { return }
	return
}`
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := reasonTexts(file)
	slices.Sort(got)
	if want := []string{`"A"`, `"B"`, `"C"`, `"D"`, `"E"`, `"F"`, `"G"`, `"H"`}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, read(t, file), parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// reasonTexts returns the string literals of a file that are used as a reason: values of a field, variable, constant,
// parameter or result named reason, and values compared with one.
func reasonTexts(file *ast.File) (found []string) {
	parameters := map[string]int{"True": 0, "False": 0, "Unknown": 0} // index by function; these are conditions.Kind's
	for _, decl := range file.Decls {
		if f, isFunc := decl.(*ast.FuncDecl); isFunc {
			if at := reasonAt(f.Type.Params); at >= 0 {
				parameters[f.Name.Name] = at
			}
			found = append(found, returnedReasons(f)...)
		}
	}
	pair := func(names, values []ast.Expr) {
		for i := range names {
			if len(names) == len(values) && isReason(names[i]) {
				found = append(found, textsIn(values[i])...)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			pair([]ast.Expr{n.Key}, []ast.Expr{n.Value})
		case *ast.AssignStmt:
			pair(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					pair([]ast.Expr{name}, n.Values[i:i+1])
				}
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				pair([]ast.Expr{n.X, n.Y}, []ast.Expr{n.Y, n.X})
			}
		case *ast.CallExpr:
			if at, takesOne := parameters[nameOf(n.Fun)]; takesOne && at < len(n.Args) {
				found = append(found, textsIn(n.Args[at])...)
			}
		}
		return true
	})
	return found
}

// returnedReasons returns the string literals that a function returns as its result named reason.
func returnedReasons(f *ast.FuncDecl) (found []string) {
	at := reasonAt(f.Type.Results)
	if at < 0 || f.Body == nil {
		return nil
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if r, isReturn := n.(*ast.ReturnStmt); isReturn && at < len(r.Results) {
			found = append(found, textsIn(r.Results[at])...)
		}
		return true
	})
	return found
}

// reasonAt returns the index of the field named reason, or -1.
func reasonAt(fields *ast.FieldList) int {
	if fields == nil {
		return -1
	}
	at := 0
	for _, field := range fields.List {
		for _, name := range field.Names {
			if isReason(name) {
				return at
			}
			at++
		}
	}
	return -1
}

// isReason reports whether e names a reason: Reason, reason, e.Reason, ReasonDisruptionBudget, EventResized.
func isReason(e ast.Expr) bool {
	name := nameOf(e)
	return name == "reason" || strings.HasPrefix(name, "Reason") && name != "Reasons" ||
		strings.HasPrefix(name, "Event") && name != "Event"
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// textsIn returns the nonempty string literals of an expression.
func textsIn(e ast.Expr) (found []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if text, isText := n.(*ast.BasicLit); isText && text.Kind == token.STRING && text.Value != `""` {
			found = append(found, text.Value)
		}
		return true
	})
	return found
}
