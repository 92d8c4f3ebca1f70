// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package listing prints the results of commands in the formats of kubectl get: a table, names, and with cli-runtime's
// printers JSON, YAML and JSONPath. It is pure: the same list gives the same bytes.
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
	// Kind names the list for machines, as in "WorkloadStatusList".
	Kind string
	// Columns are the headings of the table, and Wide those that -o wide adds. The namespace precedes them on request. A
	// list without items has no table.
	Columns, Wide []string
	Items         []Item
	// Notes are lines below the table.
	Notes string
	// More are further fields of the list, for machines.
	More map[string]any
}

// Item is one result.
type Item struct {
	// Object is the item for machines.
	Object    any
	Namespace string
	// Name is what -o name prints ("deployment.apps/web"). Consecutive items with equal names are printed once.
	Name string
	// Cells are its line of the table, also for -o wide; an empty one is shown as "-".
	Cells []string
	// Color is the color of its line, if colors are enabled; empty: none.
	Color string
}

// Options control how a list is printed.
type Options struct {
	Format    Format
	NoHeaders bool
	// Namespaces adds this column to the table.
	Namespaces bool
	Colors     Colors
}

// Print prints a list.
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

// Object prints one value for machines, with this kind unless the value has a kind.
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
	// kubectl prints no line break after the result of a path; readers of lines need one.
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
	shown := func(namespace string, cells []string) string {
		var line []string
		if o.Namespaces {
			line = append(line, cmp.Or(Line(namespace), "-"))
		}
		for _, text := range cells[:len(headings)] {
			line = append(line, cmp.Or(Line(text), "-"))
		}
		return strings.Join(line, "\t")
	}
	var lines, colors []string
	if !o.NoHeaders {
		lines, colors = append(lines, shown("NAMESPACE", headings)), append(colors, Bold)
	}
	for i := range l.Items {
		item := &l.Items[i]
		lines = append(lines, shown(item.Namespace, item.Cells))
		colors = append(colors, item.Color)
	}
	var table, out strings.Builder
	tabs := printers.GetNewTabWriter(&table)
	fmt.Fprintln(tabs, strings.Join(lines, "\n"))
	_ = tabs.Flush() // a strings.Builder returns no error
	// Colors come last: the layout counts their bytes as columns.
	laid := strings.Split(table.String(), "\n")
	for i, color := range colors {
		out.WriteString(o.Colors.Paint(color, strings.TrimRight(laid[i], " ")) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Line returns a text from the cluster without line breaks and terminal control characters.
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
