// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// schema has the fields of a CRD's schema that decide compatibility with older objects and programs.
type schema struct {
	Type       string
	Properties map[string]schema
	Items      *schema
	Required   []string
	Enum       []any
	MaxLength  *int64
	MaxItems   *int64
	Maximum    *float64
	Minimum    *float64
	Pattern    string
}

// broken returns the incompatible changes from an older to a newer schema. Added fields and values are compatible.
func broken(at string, older, newer schema) []string {
	var out []string
	report := func(incompatible bool, format string, args ...any) {
		if incompatible {
			out = append(out, at+": "+fmt.Sprintf(format, args...))
		}
	}
	report(older.Type != newer.Type, "type changed from %q to %q", older.Type, newer.Type)
	report(older.Pattern != newer.Pattern, "pattern changed from %q to %q", older.Pattern, newer.Pattern)
	report(newer.MaxLength != nil && (older.MaxLength == nil || *newer.MaxLength < *older.MaxLength), "maxLength lowered")
	report(newer.MaxItems != nil && (older.MaxItems == nil || *newer.MaxItems < *older.MaxItems), "maxItems lowered")
	report(newer.Maximum != nil && (older.Maximum == nil || *newer.Maximum < *older.Maximum), "maximum lowered")
	report(newer.Minimum != nil && (older.Minimum == nil || *newer.Minimum > *older.Minimum), "minimum raised")
	for _, field := range newer.Required {
		report(!slices.Contains(older.Required, field), "requires %s", field)
	}
	for _, value := range older.Enum {
		report(len(newer.Enum) > 0 && !slices.Contains(newer.Enum, value), "no longer accepts %v", value)
	}
	report(len(older.Enum) == 0 && len(newer.Enum) > 0, "accepts only %v", newer.Enum)
	for name, field := range older.Properties {
		if _, exists := newer.Properties[name]; !exists {
			out = append(out, at+"."+name+": removed")
			continue
		}
		out = append(out, broken(at+"."+name, field, newer.Properties[name])...)
	}
	if older.Items != nil && newer.Items != nil {
		out = append(out, broken(at+"[]", *older.Items, *newer.Items)...)
	}
	slices.Sort(out)
	return out
}

// schemas returns a CRD's schemas by kind and version.
func schemas(t *testing.T, text []byte) map[string]schema {
	t.Helper()
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	found := map[string]schema{}
	for _, v := range crd.Spec.Versions {
		found[crd.Spec.Names.Kind+" "+v.Name] = v.Schema.OpenAPIV3Schema
	}
	if len(found) == 0 {
		t.Fatalf("no schema found in %.100s", text)
	}
	return found
}

// TestCRDsTakeWhatTheyTook compares the CRDs with those of the latest tag, or with themselves if there is no tag. To
// test the comparison, it also compares each CRD with a copy without fields.
func TestCRDsTakeWhatTheyTook(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("%d CRDs, want 5: %v", len(files), err)
	}
	tag := ""
	if out, err := exec.Command("git", "describe", "--tags", "--abbrev=0", "--match=v*").Output(); err == nil {
		tag = strings.TrimSpace(string(out))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		newer := schemas(t, text)
		older := newer
		if tag != "" {
			was, err := exec.Command("git", "show", tag+":config/crd/bases/"+filepath.Base(file)).Output()
			if err != nil {
				continue // a new kind
			}
			older = schemas(t, was)
		}
		for version, s := range older {
			for _, what := range broken(version, s, newer[version]) {
				t.Errorf("since %s: %s. Announce it under Deprecated one release earlier (docs/guide/upgrading.md)", tag, what)
			}
			less := s
			less.Properties = map[string]schema{}
			if got := broken(version, s, less); len(got) != len(s.Properties) || len(got) == 0 {
				t.Errorf("%s without its fields: %v", version, got)
			}
		}
	}
}

func TestBroken(t *testing.T) {
	bound := func(n int64) *int64 { return &n }
	older := schema{
		Type: "object", Required: []string{"a"}, Properties: map[string]schema{
			"a": {Type: "string", Enum: []any{"X", "Y"}},
			"b": {Type: "array", MaxItems: bound(3), Items: &schema{Type: "string", MaxLength: bound(9)}},
			"c": {Type: "integer"},
		},
	}
	newer := schema{
		Type: "object", Required: []string{"a", "d"}, Properties: map[string]schema{
			"a": {Type: "string", Enum: []any{"X", "Z"}},
			"b": {Type: "array", MaxItems: bound(4), Items: &schema{Type: "string", MaxLength: bound(8)}},
			"d": {Type: "string"},
		},
	}
	want := []string{".a: no longer accepts Y", ".b[]: maxLength lowered", ".c: removed", ": requires d"}
	got := broken("", older, newer)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	older.Required = []string{"a", "b"}
	if got := broken("", older, older); len(got) != 0 {
		t.Errorf("compared with itself: %v", got)
	}
}
