// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

type thing struct {
	Name  string             `json:"name"`
	Kills int64              `json:"kills"`
	Use   *resource.Quantity `json:"use,omitempty"`
	Text  string             `json:"text"`
}

func amount(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// things are three, of which one has no use, and the text of one would be obeyed by a terminal.
func things() *List {
	l := &List{
		Kind: "ThingList", Columns: []string{"NAME", "USE"}, Wide: []string{"TEXT"},
		More: map[string]any{"note": "n"},
	}
	for _, t := range []thing{
		{"large", 2, amount("1Gi"), "=HYPERLINK(\"x\")"}, {"none", 10, nil, "two\nlines \x1b[31mred"},
		{"small", 9, amount("64.5Mi"), ""},
	} {
		use := ""
		if t.Use != nil {
			use = t.Use.String()
		}
		l.Items = append(l.Items, Item{
			Object: t, Namespace: "shop", Name: "thing.example/" + t.Name, Cells: []string{t.Name, use, t.Text},
			Color: Red,
		})
	}
	return l
}

func TestPrint(t *testing.T) {
	for name, tc := range map[string]struct {
		output string
		o      Options
		want   string
	}{
		"a table": {want: "NAME    USE\nlarge   1Gi\nnone    -\nsmall   66048Ki\n"},
		"all columns": {
			output: "wide", o: Options{NoHeaders: true},
			want: "large   1Gi       =HYPERLINK(\"x\")\nnone    -         two lines [31mred\nsmall   66048Ki   -\n",
		},
		"namespaces": {
			o:    Options{Namespaces: true, NoHeaders: true},
			want: "shop   large   1Gi\nshop   none    -\nshop   small   66048Ki\n",
		},
		"in color": {
			o: Options{Colors: true},
			want: "\x1b[1mNAME    USE\x1b[0m\n\x1b[31mlarge   1Gi\x1b[0m\n\x1b[31mnone    -\x1b[0m\n" +
				"\x1b[31msmall   66048Ki\x1b[0m\n",
		},
		"names": {
			output: "name", want: "thing.example/large\nthing.example/none\nthing.example/small\n",
		},
		"a path":                    {output: "jsonpath={.items[*].name} {.note}", want: "large none small n\n"},
		"a path that finds nothing": {output: "jsonpath={.nope}", want: ""},
		"lines of a path":           {output: `jsonpath={range .items[*]}{.name}{"\n"}{end}`, want: "large\nnone\nsmall\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if tc.o.Format, err = Parse(tc.output, OfList); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := things().Print(&out, tc.o); err != nil || out.String() != tc.want {
				t.Errorf("%v\n%q\nwant\n%q", err, out.String(), tc.want)
			}
		})
	}
}

func TestForMachines(t *testing.T) {
	for output, want := range map[string]string{
		"json": "{\n    \"apiVersion\": \"cli.memfit.dev/v1alpha1\",\n    \"items\": [",
		"yaml": "apiVersion: cli.memfit.dev/v1alpha1\nitems:\n- kills: 2\n  name: large\n",
	} {
		f, err := Parse(output, OfPage)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := things().Print(&out, Options{Format: f}); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %v\n%s", output, err, out.String())
		}
		out.Reset()
		empty := List{Kind: "ThingList"}
		if err := empty.Print(&out, Options{Format: f}); err != nil ||
			!strings.Contains(out.String(), "[]") || strings.Contains(out.String(), "null") {
			t.Errorf("nothing in %s: %v\n%s", output, err, out.String())
		}
	}
}

func TestWhatCannotBePrinted(t *testing.T) {
	for output, want := range map[string]string{
		"xml":               "-o xml is unknown: use wide, json, yaml, name, jsonpath=",
		"jsonpath":          "-o jsonpath is unknown: use wide",
		"jsonpath={.items[": "an example: -o jsonpath='{.items[*].name}'",
		"json=x":            "-o json=x is unknown",
	} {
		if _, err := Parse(output, OfList); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", output, err, want)
		}
	}
	if _, err := Parse("csv", OfPage); err == nil || !strings.Contains(err.Error(), "use json, yaml, jsonpath=") {
		t.Errorf("csv of a page: %v", err)
	}
}
