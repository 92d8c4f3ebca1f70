// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package listing prints the results of the plugin's commands in the formats of kubectl get: table, names, JSON, YAML
// and JSONPath. It is pure: the same list gives the same bytes.
package listing

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/memfit/memfit/internal/quote"
)

// APIVersion is the version of the plugin's own kinds, which no API server serves.
const APIVersion = "cli.memfit.dev/v1alpha1"

// List is the result of a command.
type List struct {
	// Kind is the kind of the list in JSON and YAML, such as "WorkloadStatusList".
	Kind string
	// Columns are the headings of the table; -o wide adds Wide.
	Columns, Wide []string
	Items         []Item
	// Notes are lines below the table.
	Notes string
	// More has further fields of the list in JSON and YAML.
	More map[string]any
}

// Item is one result.
type Item struct {
	// Object is the item in JSON and YAML.
	Object    any
	Namespace string
	// Name is the output of -o name ("deployment.apps/web"). Consecutive items with equal names are printed once.
	Name string
	// Cells are the cells for Columns and Wide; an empty cell is printed as "-".
	Cells []string
	// Color is the color of the table row; empty: none.
	Color string
}

// Options control how a list is printed.
type Options struct {
	Format     Format
	NoHeaders  bool
	Namespaces bool // the table has a NAMESPACE column
	Colors     Colors
}

// Print prints a list. A list without items has no table.
func (l *List) Print(w io.Writer, o Options) error {
	switch o.Format.name {
	case "", Wide:
		if err := l.table(w, o); err != nil || l.Notes == "" || o.NoHeaders {
			return err
		}
		_, err := io.WriteString(w, "\n"+l.Notes)
		return err
	case Name:
		return l.names(w)
	}
	objects := make([]any, 0, len(l.Items))
	for i := range l.Items {
		objects = append(objects, l.Items[i].Object)
	}
	all := map[string]any{"items": objects}
	maps.Copy(all, l.More)
	return Object(w, o.Format, l.Kind, all)
}

// Object prints value as JSON, YAML or JSONPath. It sets kind unless the value has a kind.
func Object(w io.Writer, f Format, kind string, value any) error {
	fields, err := fieldsOf(value)
	if err != nil {
		return err
	}
	if _, has := fields["kind"]; !has {
		fields["apiVersion"], fields["kind"] = APIVersion, kind
	}
	var out bytes.Buffer
	if err := f.printer.PrintObj(&unstructured.Unstructured{Object: fields}, &out); err != nil {
		return fmt.Errorf("-o %s: %w", strings.TrimSuffix(f.name, "="), err)
	}
	// The JSONPath printer ends without a line break; scripts that read lines need one.
	if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteByte('\n')
	}
	_, err = w.Write(out.Bytes())
	return err
}

func fieldsOf(value any) (map[string]any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing %T: %w", value, err)
	}
	fields := map[string]any{}
	if err := kubejson.Unmarshal(text, &fields); err != nil { // keeps integers
		return nil, fmt.Errorf("writing %T: %w", value, err)
	}
	return fields, nil
}

func (l *List) table(w io.Writer, o Options) error {
	if len(l.Items) == 0 {
		return nil
	}
	headings := l.Columns
	if o.Format.name == Wide {
		headings = slices.Concat(l.Columns, l.Wide)
	}
	row := func(namespace string, cells []string) string {
		var texts []string
		if o.Namespaces {
			texts = append(texts, cmp.Or(Line(namespace), "-"))
		}
		for _, text := range cells[:len(headings)] {
			texts = append(texts, cmp.Or(Line(text), "-"))
		}
		return strings.Join(texts, "\t")
	}
	var rows, colors []string
	if !o.NoHeaders {
		rows, colors = append(rows, row("NAMESPACE", headings)), append(colors, Bold)
	}
	for i := range l.Items {
		item := &l.Items[i]
		rows = append(rows, row(item.Namespace, item.Cells))
		colors = append(colors, item.Color)
	}
	var table, out strings.Builder
	tabs := printers.GetNewTabWriter(&table)
	fmt.Fprintln(tabs, strings.Join(rows, "\n"))
	_ = tabs.Flush() // a strings.Builder returns no error
	// Colors are added last, because the tab writer would count their bytes as columns.
	lines := strings.Split(table.String(), "\n")
	for i, color := range colors {
		out.WriteString(o.Colors.Paint(color, strings.TrimRight(lines[i], " ")) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Line returns text from the cluster on one line, without terminal control characters.
func Line(text string) string {
	return strings.Join(strings.Fields(quote.Plain(text)), " ")
}

func (l *List) names(w io.Writer) error {
	names := make([]string, 0, len(l.Items))
	for i := range l.Items {
		names = append(names, Line(l.Items[i].Name)+"\n")
	}
	_, err := io.WriteString(w, strings.Join(slices.Compact(names), ""))
	return err
}

// The values of -o. An expression follows a value that ends in "=".
const (
	Wide     = "wide"
	JSON     = "json"
	YAML     = "yaml"
	Name     = "name"
	JSONPath = "jsonpath="
)

// The formats of commands that print a list (OfList) or a page about one object (OfPage).
var (
	OfList = []string{Wide, JSON, YAML, Name, JSONPath}
	OfPage = []string{JSON, YAML, JSONPath}
)

// Format is a valid value of -o. The zero value prints a table or a page.
type Format struct {
	name string
	// printer writes JSON, YAML (with "---" between documents) and JSONPath.
	printer printers.ResourcePrinter
}

// Parse parses a value of -o, which must be one of offered or empty.
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

// IsTable reports whether a list is printed as a table, with notes and colors.
func (f Format) IsTable() bool { return f.name == "" || f.name == Wide }

// IsPage reports whether a command prints a page for users instead of an object.
func (f Format) IsPage() bool { return f.name == "" }

// Colors is true if the output may contain colors.
type Colors bool

// ANSI codes of the colors.
const (
	Bold   = "1"
	Red    = "31"
	Yellow = "33"
)

// Paint returns text in a color, or unchanged if c is false.
func (c Colors) Paint(color, text string) string {
	if !c || text == "" || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
