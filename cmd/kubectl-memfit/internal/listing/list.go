// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package listing prints the results of commands in the formats of kubectl get: a table, names, and with cli-runtime's
// printers JSON, YAML and JSONPath. It is pure: the same list gives the same bytes.
package listing

import (
	"bytes"
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
	// Cells are its line of the table with those of -o wide; an empty one is shown as "-".
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

// lay aligns the cells of lines, which are separated by tabs.
func lay(lines []string) ([]string, error) {
	var out bytes.Buffer
	tabs := printers.GetNewTabWriter(&out)
	for _, line := range lines {
		fmt.Fprintln(tabs, line)
	}
	if err := tabs.Flush(); err != nil {
		return nil, fmt.Errorf("laying out the table: %w", err)
	}
	laid := strings.Split(out.String(), "\n")[:len(lines)] // the text ends with a line break
	for i := range laid {
		laid[i] = strings.TrimRight(laid[i], " ")
	}
	return laid, nil
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
			line = append(line, cellOf(namespace))
		}
		for _, text := range cells[:len(headings)] {
			line = append(line, cellOf(text))
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
	laid, err := lay(lines)
	if err != nil {
		return err
	}
	// Colors come last: the layout counts their bytes as columns.
	var out strings.Builder
	for i, color := range colors {
		out.WriteString(o.Colors.Paint(color, laid[i]) + "\n")
	}
	_, err = io.WriteString(w, out.String())
	return err
}

func cellOf(text string) string {
	if text = Line(text); text == "" {
		return "-"
	}
	return text
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
