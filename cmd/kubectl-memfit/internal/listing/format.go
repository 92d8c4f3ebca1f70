// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// The values of -o. Those that end in "=" are followed by an expression.
const (
	Wide     = "wide"
	JSON     = "json"
	YAML     = "yaml"
	Name     = "name"
	JSONPath = "jsonpath="
)

// The formats of commands: for a list, and for one object.
var (
	OfList = []string{Wide, JSON, YAML, Name, JSONPath}
	OfPage = []string{JSON, YAML, JSONPath}
)

// Format is a value of -o that was checked; the zero value is the table, or the page.
type Format struct {
	name string
	// printer writes JSON, YAML (with "---" between documents) and JSONPath.
	printer printers.ResourcePrinter
}

// Parse parses a value of -o; offered are the command's values, besides "".
func Parse(output string, offered []string) (Format, error) {
	name, expression, has := strings.Cut(output, "=")
	if has {
		name += "="
	}
	f := Format{name: name}
	switch {
	case output == "":
		return f, nil
	case !slices.Contains(offered, name):
		return Format{}, fmt.Errorf("-o %s is unknown: use %s", output, strings.Join(offered, ", "))
	case name == JSON:
		f.printer = &printers.JSONPrinter{}
	case name == YAML:
		f.printer = &printers.YAMLPrinter{}
	case name == JSONPath:
		path, err := printers.NewJSONPathPrinter(expression)
		if err != nil {
			return Format{}, fmt.Errorf("-o %s: %w (an example: -o jsonpath='{.items[*].name}')", output, err)
		}
		path.AllowMissingKeys(true)
		f.printer = path
	}
	return f, nil
}

// IsTable reports whether users read the output, so that it has notes and colors.
func (f Format) IsTable() bool { return f.name == "" || f.name == Wide }

// IsPage reports whether a command prints its page instead of a format for machines.
func (f Format) IsPage() bool { return f.name == "" }

// Colors reports whether a terminal supports colors.
type Colors bool

// The colors, as terminals number them.
const (
	Bold   = "1"
	Red    = "31"
	Yellow = "33"
)

// Paint colors a text.
func (c Colors) Paint(color, text string) string {
	if !c || text == "" || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
