// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
)

const conditionsIntro = `# Conditions, reasons, Events and annotations

What memfit writes into ` + "`status.conditions`" + ` and Events, what it means, and what to do.

`

// Conditions returns the page of conditions, reasons, Events and annotations, which automation matches by name. Each
// source is the text of a Go file whose commented constants it lists.
func Conditions(sources ...string) (string, error) {
	var page strings.Builder
	page.WriteString(conditionsIntro)
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments)
		if err != nil {
			return "", fmt.Errorf("parsing the constants: %w", err)
		}
		for _, decl := range file.Decls {
			group, is := decl.(*ast.GenDecl)
			if !is || group.Tok != token.CONST || !group.Lparen.IsValid() {
				continue
			}
			text, err := constants(group)
			if err != nil {
				return "", err
			}
			page.WriteString(text)
		}
	}
	return strings.TrimSuffix(page.String(), "\n"), nil
}

// constants returns a section about a group of constants. The first sentence of the group's comment is the title, and
// each constant has a row.
func constants(group *ast.GenDecl) (string, error) {
	title, more, _ := strings.Cut(strings.Join(strings.Fields(group.Doc.Text()), " "), ".")
	var rows [][]string
	for _, spec := range group.Specs {
		constant, _ := spec.(*ast.ValueSpec)
		name := constant.Names[0].Name
		value, err := valueOf(constant.Values[0])
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		meaning := constant.Doc.Text()
		for _, prefix := range []string{name + ": ", name + " is ", name + " "} {
			meaning = strings.TrimPrefix(meaning, prefix)
		}
		rows = append(rows, []string{code(value), sentence(plain(meaning))})
	}
	section := "## " + title + "\n\n"
	if more = strings.TrimSpace(more); more != "" {
		section += more + "\n\n"
	}
	return section + table([]string{"name", "meaning"}, rows) + "\n", nil
}

// valueOf returns the value of a string literal, of the constant Group, or of a sum of these.
func valueOf(e ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.BinaryExpr:
		left, leftErr := valueOf(e.X)
		right, rightErr := valueOf(e.Y)
		if leftErr != nil {
			return "", leftErr
		}
		return left + right, rightErr
	case *ast.Ident:
		if e.Name == "Group" {
			return v1alpha1.Group, nil
		}
	}
	return "", fmt.Errorf("%T is neither a string literal nor Group", e)
}

var reference = regexp.MustCompile(`\[?\b(?:Reason|Event|Condition)([A-Z]\w+)\]?`)

// plain replaces names of constants by the values that users see.
func plain(comment string) string { return reference.ReplaceAllString(comment, "`$1`") }
